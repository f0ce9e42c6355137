import type { AssemblyProof } from '../../objects/assembly-proof.js';
import type { ObjectId } from '../../objects/ids.js';
import type { SetChanges } from '../../objects/sets.js';
import type { Step } from '../../objects/step.js';
import type { HistoryHead } from '../../store/snapshot-rows.js';

/** The state of an object from a step on: a line, its text, or its text and pinned. */
export type BandState = 'line' | 'active' | 'pinned';

type Way = readonly { readonly step: number; readonly state: BandState }[];
/** The states of objects over the steps of a session. */
export type Ways = ReadonlyMap<ObjectId, Way>;

/**
 * Returns the states that a step's changes cause. A discovered object gets a line; any other change
 * in the same step takes precedence.
 */
const BROUGHT: readonly (readonly [keyof SetChanges, (isActive: boolean) => BandState])[] = [
  ['index', () => 'line'],
  ['deactivate', () => 'line'],
  ['activate', () => 'active'],
  ['pin', () => 'pinned'],
  ['unpin', (isActive) => (isActive ? 'active' : 'line')],
];

/**
 * Returns the states of each object over time, in the order of discovery. `before` has the states
 * before the first of these steps.
 */
export function bandWays(
  steps: readonly Pick<Step, 'seq' | 'changes'>[],
  before: ReadonlyMap<ObjectId, BandState> = new Map<ObjectId, BandState>(),
): Ways {
  const ways = new Map<ObjectId, { step: number; state: BandState }[]>();
  for (const { seq, changes } of steps) {
    for (const [name, brought] of BROUGHT) {
      for (const id of changes[name] ?? []) {
        const way = ways.get(id) ?? [];
        ways.set(id, way);
        const last = way.at(-1);
        const was = last?.state ?? before.get(id);
        const state = name === 'activate' && was === 'pinned' ? 'pinned' : brought(was !== 'line' && was !== undefined);
        if (last?.step === seq) last.state = state;
        else if (was !== state) way.push({ step: seq, state });
      }
    }
  }
  return ways;
}

/** A range of consecutive calls, by the steps of the first and the last one. */
export interface CallRange {
  readonly from: number;
  readonly to: number;
  readonly calls: number;
}

/** Groups consecutive calls into ranges. */
export function callRanges(calls: readonly number[], isIn: (step: number) => boolean): readonly CallRange[] {
  const ranges: { from: number; to: number; calls: number }[] = [];
  let running = false;
  for (const step of calls) {
    const last = ranges.at(-1);
    if (!isIn(step)) running = false;
    else if (running && last !== undefined) Object.assign(last, { to: step, calls: last.calls + 1 });
    else {
      ranges.push({ from: step, to: step, calls: 1 });
      running = true;
    }
  }
  return ranges;
}

/** The calls whose context had a text whole, and those whose context had only its object's line. */
export interface Exposure {
  readonly whole: readonly CallRange[];
  readonly asLine: readonly CallRange[];
}

const stateAt = (
  way: readonly { readonly step: number; readonly state: BandState }[] = [],
  step: number,
): BandState | undefined => way.findLast((one) => one.step <= step)?.state;

/**
 * Returns whether a record's context used a version of an object, given all its versions by valid
 * time.
 */
function heldBy(record: AssemblyProof, heads: readonly HistoryHead[], place: number): boolean {
  const hash = heads[place]?.document?.object_hash;
  const ahead = record.ahead?.find(({ id }) => id === heads[place]?.document?.['xt/id']);
  if (ahead !== undefined) return ahead.object_hash === hash;
  const [at, txId] = [record.basis?.validTime ?? record.at, record.basis?.txId ?? Number.POSITIVE_INFINITY];
  return heads.findLastIndex((head) => head.txId <= txId && head.validTime.getTime() <= at) === place;
}

/**
 * Returns the contexts that had one version of an object, by the sets and the versions at each
 * call. A context of an epoch keeps its initial versions until the next epoch.
 */
export function exposureOf(
  { records, way }: { readonly records: readonly AssemblyProof[]; readonly way: Way | undefined },
  { heads, place }: { readonly heads: readonly HistoryHead[]; readonly place: number },
): Exposure {
  const steps = records.map(({ step }) => step);
  const held = new Set(records.filter((record) => heldBy(record, heads, place)).map(({ step }) => step));
  const isShown = (step: number): boolean => held.has(step) && (stateAt(way, step) ?? 'line') !== 'line';
  const isLine = (step: number): boolean => held.has(step) && stateAt(way, step) === 'line';
  return { whole: callRanges(steps, isShown), asLine: callRanges(steps, isLine) };
}

/** Returns the contexts that had a message: every context from its step on. */
export const exposureOfMessage = (records: readonly AssemblyProof[], seq: number): Exposure => ({
  whole: callRanges(
    records.map(({ step }) => step),
    (step) => step >= seq,
  ),
  asLine: [],
});

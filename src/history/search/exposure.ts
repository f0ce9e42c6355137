import type { AssemblyProof } from '../../objects/assembly-proof.js';
import type { ObjectId } from '../../objects/ids.js';
import type { SetChanges } from '../../objects/sets.js';
import type { Step } from '../../objects/step.js';
import type { HistoryHead } from '../../store/snapshot-rows.js';
import type { SessionRequest } from '../rebuild/session-requests.js';
import { type Presence, presentAt } from '../rebuild/transcript-presence.js';

/**
 * The state of an object in some of a session's requests. `line`: only its line. `active`: its
 * text. `pinned`: its text, and the object is pinned. `part` and `out` occur only in transcripts: a
 * part of its text, or nothing.
 */
export type BandState = 'line' | 'active' | 'pinned' | 'part' | 'out';

type Way = readonly { readonly step: number; readonly state: BandState }[];
/** The states of objects over the steps of a session. */
export type Ways = ReadonlyMap<ObjectId, Way>;

/**
 * The state that each change of the sets causes. A discovered object gets a line, but any other
 * change in the same step takes precedence.
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

/**
 * The model calls whose contexts had a text in full, a part of its file, or only its object's line.
 */
export interface Exposure {
  readonly whole: readonly CallRange[];
  readonly inPart: readonly CallRange[];
  readonly asLine: readonly CallRange[];
}

/** The requests of a session, and which requests of a transcript had an object. */
export interface SeenRequests {
  /** Recorded requests, and requests that only a transcript shows. */
  readonly requests: readonly SessionRequest[];
  readonly presences: readonly Presence[];
}

const stateAt = (
  way: readonly { readonly step: number; readonly state: BandState }[] = [],
  step: number,
): BandState | undefined => way.findLast((one) => one.step <= step)?.state;

/** The versions of an object by valid time, and the place of the wanted version. */
interface WantedVersion {
  readonly heads: readonly HistoryHead[];
  readonly place: number;
}

/** Returns whether a record's context used a version of an object. */
function heldBy(record: AssemblyProof, { heads, place }: WantedVersion): boolean {
  const hash = heads[place]?.document?.object_hash;
  const ahead = record.ahead?.find(({ id }) => id === heads[place]?.document?.['xt/id']);
  if (ahead !== undefined) return ahead.object_hash === hash;
  const [at, txId] = [record.basis?.validTime ?? record.at, record.basis?.txId ?? Number.POSITIVE_INFINITY];
  return heads.findLastIndex((head) => head.txId <= txId && head.validTime.getTime() <= at) === place;
}

/** Returns whether a version was valid when its object appeared in a transcript's requests. */
const showedAt = (at: number, { heads, place }: WantedVersion): boolean =>
  heads.length === 1 || heads.findLastIndex(({ validTime }) => validTime.getTime() <= at) === place;

/**
 * Returns the contexts that had one version of an object. For recorded contexts, the sets and
 * versions at each model call decide, also inside an epoch. For a transcript, the time at which the
 * object appeared in the requests decides.
 */
export function exposureOf(
  { requests, way, presences }: SeenRequests & { readonly way: Way | undefined },
  version: WantedVersion,
): Exposure {
  const shown = presences.filter(({ at }) => showedAt(at, version));
  const states = new Map<number, string>();
  for (const { proof, step } of requests) {
    const state =
      proof === undefined ? presentAt(shown, step) : heldBy(proof, version) ? stateAt(way, step) : undefined;
    // A context may have been handed out twice.
    if (state !== undefined) states.set(step, state);
  }
  const rangesOf = (isIn: (state: string) => boolean): readonly CallRange[] =>
    callRanges(
      requests.map(({ step }) => step),
      (step) => isIn(states.get(step) ?? ''),
    );
  return {
    whole: rangesOf((state) => state === 'active' || state === 'pinned' || state === 'whole'),
    inPart: rangesOf((state) => state === 'part'),
    asLine: rangesOf((state) => state === 'line'),
  };
}

/** Returns the contexts that had a message: from its step until a compaction dropped it. */
export const exposureOfMessage = (
  requests: readonly SessionRequest[],
  { seq, until }: { readonly seq: number; readonly until: number },
): Exposure => ({
  whole: callRanges(
    requests.map(({ step }) => step),
    (step) => step >= seq && step < until,
  ),
  inPart: [],
  asLine: [],
});

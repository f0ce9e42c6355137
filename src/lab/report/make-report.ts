import type { SessionId } from '../../objects/ids.js';
import { defined } from '../../values/defined.js';
import type { LossList } from '../recordings/import-counts.js';
import type { EntryOf } from '../recordings/neutral-session.js';
import type { ContextMeasure, SectionMeasure } from '../replay/context-measure.js';
import type { ReplayConfig } from '../replay/replay-config.js';
import type { ReplayDigest } from '../replay/replay-digest.js';
import type { ReplayEngine } from '../replay/replay-engine.js';
import type { Quantiles, ReplayReport, Sizes } from './replay-report.js';

function quantiles(values: readonly number[]): Quantiles {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? 0;
  return { p50: at(0.5), p95: at(0.95), max: at(1), sum: sorted.reduce((a, b) => a + b, 0) };
}

type Size = Pick<SectionMeasure, 'chars' | 'bytes' | 'tokens'>;

function sizesOf(all: readonly Size[], withTokens: boolean): Sizes {
  return {
    chars: quantiles(all.map(({ chars }) => chars)),
    bytes: quantiles(all.map(({ bytes }) => bytes)),
    ...(withTokens ? { tokens: quantiles(all.map(({ tokens = 0 }) => tokens)) } : {}),
  };
}

const NOTHING: Size = { chars: 0, bytes: 0, tokens: 0 };

function total(context: ContextMeasure): Size {
  return context.sections.reduce<Size>(
    (sum, { chars, bytes, tokens = 0 }) => ({
      chars: sum.chars + chars,
      bytes: sum.bytes + bytes,
      tokens: (sum.tokens ?? 0) + tokens,
    }),
    NOTHING,
  );
}

function contextsOf(each: readonly ContextMeasure[], tokenizer: string | undefined): ReplayReport['contexts'] {
  const withTokens = tokenizer !== undefined;
  const section = (name: SectionMeasure['name']): Sizes =>
    sizesOf(
      each.map(({ sections }) => sections.find((one) => one.name === name) ?? NOTHING),
      withTokens,
    );
  return {
    count: each.length,
    ...defined({ tokenizer }),
    total: sizesOf(each.map(total), withTokens),
    sections: { system: section('system'), pool: section('pool'), chat: section('chat'), active: section('active') },
    each: [...each],
  };
}

/** Returns the session from which a session derives, and how, such as `branch` or `subagent`. */
function cameFrom(
  parent: EntryOf<'session'>['parent'],
  branchOf: SessionId | undefined,
  ids: ReadonlyMap<string, SessionId>,
) {
  if (branchOf !== undefined) return { relation: 'branch', parent: branchOf };
  if (parent === undefined) return {};
  const replayed = ids.get(parent.native_id);
  return { relation: parent.relation, ...defined({ parent: replayed }) };
}

/** A replay that has reached the end of its recording. */
interface FinishedReplay {
  readonly recording: Omit<ReplayReport['recording'], 'formats'>;
  readonly config: ReplayConfig;
  readonly variant: string;
  readonly engine: ReplayEngine;
  readonly digest: ReplayDigest;
  readonly losses: LossList;
  readonly clock: ReplayReport['clock'];
  /** The name of the tokenizer; undefined if tokens were not counted. */
  readonly tokenizer: string | undefined;
}

function recordedOf({ entries: { total, counted }, effects }: ReplayEngine): ReplayReport['recorded'] {
  const { messages, calls, results, compactions, events, tools, usage, shell_reads, attached_files, copied } = total;
  const { failed, unanswered, kinds, reads, changes } = effects;
  return {
    messages,
    items: counted.reduce((sum, { items }) => sum + items, 0),
    read_files: counted.reduce((sum, one) => sum + one.reads, 0),
    main: counted[0] ?? { items: 0, calls: 0, reads: 0 },
    shell_reads,
    attached_files,
    copied,
    calls,
    results,
    failed,
    unanswered,
    compactions,
    events,
    tools,
    kinds,
    reads,
    changes,
    usage,
  };
}

/** Returns the report of a finished replay. */
export function makeReport({
  recording,
  config,
  variant,
  engine,
  digest,
  losses,
  clock,
  tokenizer,
}: FinishedReplay): ReplayReport {
  const { entries, effects, tree, evidence, sessions } = engine;
  const { objects } = digest;
  // In reverse order, so that the first of several sessions with the same native id wins.
  const ids = new Map([...sessions].reverse().map(({ entry, id }) => [entry.native_id, id]));
  const sessionReports = sessions.map(({ entry, id, state, contexts, branchOf }) => ({
    session: id,
    native_id: entry.native_id,
    ...cameFrom(entry.parent, branchOf, ids),
    ...defined({ model: entry.model }),
    turns: state.turn,
    steps: state.seq,
    contexts: contexts.length,
  }));
  return {
    report: 'replay',
    version: 1,
    recording: { ...recording, formats: [...entries.formats] },
    config,
    variant,
    digest: digest.digest,
    sessions: sessionReports,
    turns: sessionReports.reduce((sum, { turns }) => sum + turns, 0),
    steps: sessionReports.reduce((sum, { steps }) => sum + steps, 0),
    recorded: recordedOf(engine),
    objects: {
      files: {
        created: objects.files,
        updated: objects.fileUpdates,
        unchanged: Math.max(0, effects.observations.reported - objects.files - objects.fileUpdates),
        stubs: objects.stubs,
        deleted: objects.deleted,
      },
      toolcalls: { created: objects.toolcalls },
      not_discovered: effects.observations.left,
    },
    tree: { ...tree.states, forgotten: tree.forgotten },
    clock,
    contexts: contextsOf(
      sessions.flatMap(({ contexts }) => contexts),
      tokenizer,
    ),
    uses: { ...evidence.counts, each: [...evidence.uses] },
    losses: losses.report,
    complete: losses.complete,
  };
}

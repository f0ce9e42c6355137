import { transcriptEntries } from '../../history/rebuild/transcript-entries.js';
import type { ObjectId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import { describe } from '../../review/ask/described-objects.js';
import type { RequestReader } from '../../review/ask/request-reader.js';
import { sessionCalls } from '../../review/ask/session-calls.js';
import { defined } from '../../values/defined.js';

/** A message or call that a compaction dropped from the model's requests. */
export interface DroppedEntry {
  readonly step: number;
  readonly turn: number;
  readonly name: string;
  readonly object?: string;
  readonly chars: number;
}

/** A compaction of the harness's history: its summary and the entries that it replaces. */
export interface Compaction {
  readonly step: number;
  readonly turn: number;
  /** The harness's own text. Undefined if it recorded none. */
  readonly summary?: string;
  /** Entries that the harness reported as dropped. Undefined if it reported none. */
  readonly reported?: number;
  /** The messages and calls since the previous compaction, oldest first. */
  readonly dropped: readonly DroppedEntry[];
  /** Number of files that dropped calls read or changed. */
  readonly files: number;
  /** The files among them that later calls needed again. */
  readonly needed: readonly NeededFile[];
}

/** A file that a dropped call read or changed, and a later call read or changed again. */
export interface NeededFile {
  readonly object: ObjectId;
  readonly name: string;
  /** The first later call that needed it. */
  readonly call: string;
  readonly step: number;
}

/** The name of the entry with a compaction's summary. */
export const SUMMARY = 'summary of a compaction';

type FileSteps = ReadonlyMap<ObjectId, Step & Required<Pick<Step, 'call'>>>;

/** Returns the files that some steps read or changed, each with the first such step. */
async function workedOn({ present }: RequestReader['timeline'], steps: readonly Step[]): Promise<FileSteps> {
  const calls = await sessionCalls(present, steps);
  const found = new Map<ObjectId, Step & Required<Pick<Step, 'call'>>>();
  for (const step of steps) {
    const { call } = step;
    const made = call === undefined ? undefined : calls.get(call.id);
    if (call === undefined || made === undefined || made.failed || !(made.reads || made.changes)) continue;
    for (const id of made.fileRefs) if (!found.has(id)) found.set(id, { ...step, call });
  }
  return found;
}

/**
 * Returns the last compaction among the steps after `from` and up to `to`, with the entries that it
 * replaced.
 */
export async function compactionBetween(
  { timeline, steps }: Pick<RequestReader, 'timeline' | 'steps'>,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<Compaction | undefined> {
  const { compactions } = transcriptEntries(steps);
  const found = compactions.findLast(({ step: { seq } }) => seq > from && seq <= to);
  if (found?.step.event === undefined) return undefined;
  const gone = found.dropped.map(({ step }) => step);
  const { seq: at, turn: inTurn, event } = found.step;
  const later = steps.filter(({ seq }) => seq > at);
  const [had, again] = await Promise.all([workedOn(timeline, gone), workedOn(timeline, later)]);
  const needed = [...again].filter(([id]) => had.has(id)).sort(([, a], [, b]) => a.seq - b.seq);
  const shown = [...gone.flatMap(({ call }) => call?.id ?? []), ...needed.flatMap(([id, { call }]) => [id, call.id])];
  const named = await describe(timeline, [...new Set(shown)]);
  const nameOf = (id: ObjectId): string => named.get(id)?.name ?? id;
  return {
    files: had.size,
    needed: needed.map(([object, { seq, call }]) => ({
      object,
      name: nameOf(object),
      call: nameOf(call.id),
      step: seq,
    })),
    step: at,
    turn: inTurn,
    ...defined({ summary: event.detail || undefined, reported: event.missing }),
    dropped: gone.flatMap(({ seq, turn, message, call, event: own }): readonly DroppedEntry[] => {
      if (own?.kind === 'compacted') return [{ step: seq, turn, name: SUMMARY, chars: own.detail?.length ?? 0 }];
      if (message !== undefined) return [{ step: seq, turn, name: message.role, chars: message.text.length }];
      const metadata = call === undefined ? undefined : named.get(call.id);
      if (call === undefined || metadata === undefined) return [];
      return [{ step: seq, turn, name: metadata.name, object: call.id, chars: metadata.charCount }];
    }),
  };
}

import type { ContextRecord } from '../../objects/context-record.js';
import { defined } from '../../values/defined.js';
import type { Entry, EntryCall, EntryId } from '../projection/entry.js';
import { nameFor } from './session-paths.js';

/** An event and its place among the steps. */
interface Happened {
  readonly seq: number;
  /** The order of events within a step: ends first, then beginnings, then approvals. */
  readonly order: number;
  readonly line: object;
  readonly isLater?: boolean;
}

/**
 * Returns the call of each result, by the id of the result's entry. The call's id cannot be the
 * key, because a pending call may have the same id.
 */
export function answeredCalls(entries: readonly Entry[]): ReadonlyMap<EntryId, EntryCall> {
  const made = new Map(
    entries.flatMap((entry) =>
      entry.kind === 'assistant' ? entry.calls.map((call) => [`${entry.id} ${call.id}`, call] as const) : [],
    ),
  );
  return new Map(
    entries.flatMap((entry) => {
      const call = entry.kind === 'result' ? made.get(`${entry.of} ${entry.call}`) : undefined;
      return call === undefined ? [] : [[entry.id, call] as const];
    }),
  );
}

/** A line of `events.jsonl` without its line end. */
export interface EventLine {
  /** The step of the event. */
  readonly seq: number;
  readonly text: string;
  /** True for an approval that was recorded here, not imported. */
  readonly isLater?: boolean;
}

const isoTime = (ms: number): string => new Date(ms).toISOString();
const runOf = (turn: number): string => `turn-${turn}`;

const DECISIONS: Readonly<Record<Exclude<ContextRecord<'approval'>['body']['state'], 'pending'>, string>> = {
  approved: 'allow_once',
  denied: 'deny',
  cancelled: 'cancelled',
  expired: 'expired',
};

/**
 * Returns a text as one line, as CortexFS requires for reasons and summaries. Returns `otherwise`
 * if the line is empty.
 */
export function oneLine(text: string, otherwise = '-'): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line === '' ? otherwise : line;
}

function approvalEvent({ turn, seq, at, body }: ContextRecord<'approval'>, isLater: boolean): Happened {
  const { approval, state, text, tool = 'approval', reason } = body;
  const common = { run: runOf(turn), id: nameFor(approval), name: nameFor(tool) };
  const line =
    state === 'pending'
      ? { type: 'approval_request', ...common, args: [text], at: isoTime(at) }
      : {
          type: 'approval_result',
          ...common,
          decision: DECISIONS[state],
          reason: oneLine(reason ?? '', state),
          at: isoTime(at),
        };
  return { seq, order: 9, line, isLater };
}

/** The sources of events other than the entries. */
export interface ToldBeside {
  readonly approvals: readonly ContextRecord<'approval'>[];
  readonly lineOf: ReadonlyMap<EntryId, number>;
  /** Returns true if an import added the record. */
  readonly isImported: (record: ContextRecord) => boolean;
}

/**
 * Returns the lines of `events.jsonl`: starts and ends of turns, calls and results, approval
 * requests and decisions. A result refers to its line of `messages.jsonl` and has no text. A turn
 * ends when the next one begins.
 */
export function eventLines(
  entries: readonly Entry[],
  { approvals, lineOf, isImported }: ToldBeside,
): readonly EventLine[] {
  const happened: Happened[] = approvals.map((record) => approvalEvent(record, !isImported(record)));
  const firsts = new Map<number, { readonly seq: number; readonly at: number }>();
  for (const { kind, turn, seq, at } of entries) {
    const first = firsts.get(turn);
    if (turn > 0 && kind !== 'approval' && (first === undefined || seq < first.seq)) firsts.set(turn, { seq, at });
  }
  let before: number | undefined;
  for (const [turn, { seq, at }] of firsts) {
    if (before !== undefined)
      happened.push({ seq, order: 0, line: { type: 'done', run: runOf(before), status: 'ok', at: isoTime(at) } });
    happened.push({ seq, order: 1, line: { type: 'start', run: runOf(turn), at: isoTime(at) } });
    before = turn;
  }
  const calls = answeredCalls(entries);
  for (const entry of entries) {
    if (entry.kind !== 'result') continue;
    const { turn, seq, at, native, tool, status, sha256, id } = entry;
    const common = { run: runOf(turn), id: nameFor(native), name: nameFor(tool) };
    happened.push({
      seq,
      order: 2,
      line: { type: 'tool_call', ...common, arguments: calls.get(id)?.argsText ?? '', at: isoTime(at) },
    });
    const message = lineOf.get(id);
    happened.push({
      seq,
      order: 3,
      line: { type: 'tool_result', ...common, status, entry: id, message, sha256, at: isoTime(at) },
    });
  }
  return happened
    .sort((a, b) => a.seq - b.seq || a.order - b.order)
    .map(({ seq, line, isLater }) => ({ seq, text: JSON.stringify(line), ...defined({ isLater }) }));
}

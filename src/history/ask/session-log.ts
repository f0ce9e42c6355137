import pLimit from 'p-limit';
import type { BorderPrice, BorderReason } from '../../objects/assembly-proof.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { SetChanges } from '../../objects/sets.js';
import type { HistoryEvent, ModelUsage, Step, TurnRule } from '../../objects/step.js';
import type { VersionTimes } from '../../store/queries.js';
import type { Head, StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';
import { bordersOf } from '../rebuild/epoch-chain.js';
import { begins, type Timeline, type TurnSpan, turnSpans } from '../rebuild/timeline.js';

/** A tool call as a log shows it. */
export interface LoggedCall {
  readonly id: ObjectId;
  readonly seq: number;
  readonly tool: string;
  readonly status: string;
  /** The arguments, as the harness shows them or as JSON. */
  readonly args: string;
  /** UTF-16 units of its output as stored. */
  readonly chars: number;
  readonly fileRefs: readonly ObjectId[];
  /** What of its files could not be taken up, and why. */
  readonly notes: readonly string[];
}

/** A message as a log shows it. */
export interface LoggedMessage {
  readonly seq: number;
  readonly role: string;
  readonly text: string;
  /** What the provider said that the model's call took. */
  readonly usage?: ModelUsage;
}

/** An epoch of contexts that began with a model call (divergence E9). */
export interface LoggedEpoch {
  /** The last step before that call. */
  readonly seq: number;
  readonly at: Date;
  readonly number: number;
  readonly reason: BorderReason;
  /** In tokens, as it was decided by; undefined where there was nothing to compare. */
  readonly price?: BorderPrice;
}

/** What a harness did to its history, or to Palimpsest: off and on, a call with its own list, a compaction. */
export interface LoggedEvent extends HistoryEvent {
  readonly seq: number;
  readonly at: Date;
}

/** What a person did to the sets, beside the agent (decision 0021). */
export interface LoggedPersonStep {
  readonly seq: number;
  readonly at: Date;
  /** The step that it takes back. */
  readonly undoes?: number;
  readonly changes: Omit<Required<SetChanges>, 'index'>;
}

/** One turn of a session: what was said and called, and what became of the sets [§3.1]. */
export interface LoggedTurn {
  readonly session: SessionId;
  readonly turn: number;
  /** What made it begin (decision B7); undefined for a turn whose first step did not say. */
  readonly rule: TurnRule | undefined;
  readonly ref: string | undefined;
  readonly firstStep: number;
  readonly lastStep: number;
  /** Valid time of its first and last step: when they were acknowledged. */
  readonly from: Date;
  readonly to: Date;
  /** When the database learned its last step; undefined where it has not yet. */
  readonly known: VersionTimes | undefined;
  readonly messages: readonly LoggedMessage[];
  readonly calls: readonly LoggedCall[];
  readonly epochs: readonly LoggedEpoch[];
  readonly events: readonly LoggedEvent[];
  readonly person: readonly LoggedPersonStep[];
  /** What entered and left the sets in this turn, in order; an object that came and went is in both. */
  readonly changes: Required<SetChanges>;
}

/** Which turns are wanted. */
export interface LogOptions {
  /** Only turns that touched this object. */
  readonly object?: ObjectId | undefined;
  /** At most so many, the newest; all where absent. */
  readonly limit?: number | undefined;
  /** Up to this step, from the beginning of the session. */
  readonly upto?: number | undefined;
  /** Only what was there by then, milliseconds since 1970. */
  readonly until?: number | undefined;
}

/** From so many turns on a session is read whole, once. */
const MANY_TURNS = 500;

/** The changes of some steps together. */
function changesOf(steps: readonly Step[]): Required<SetChanges> {
  const of = (name: keyof SetChanges): readonly ObjectId[] => [...new Set(steps.flatMap(({ changes }) => changes[name] ?? []))];
  return { index: of('index'), activate: of('activate'), deactivate: of('deactivate'), pin: of('pin'), unpin: of('unpin') };
}

type Calls = ReadonlyMap<string, Omit<LoggedCall, 'seq' | 'notes'>>;

/** The files that a stored call refers to. */
export const fileRefsOf = ({ file_refs: refs }: Head['document']): readonly ObjectId[] =>
  (refs as unknown as readonly ObjectId[] | undefined) ?? [];

/** The calls of some turns by id; those that the database does not hold are absent. */
async function callsOf({ present }: Timeline, spans: readonly TurnSpan[]): Promise<Calls> {
  const heads = await present.heads(spans.flatMap(({ steps }) => steps.flatMap(({ call }) => call?.id ?? [])));
  return new Map(
    [...heads].map(([id, { document, marks }]) => [
      id,
      {
        id: id as ObjectId,
        tool: String(document.tool),
        status: String(document.status),
        args: typeof document.args_display === 'string' ? document.args_display : JSON.stringify(document.args),
        chars: marks.size ?? 0,
        fileRefs: fileRefsOf(document),
      },
    ]),
  );
}

/** Whether a step has anything to do with an object. */
export function touches(step: Step, object: ObjectId, fileRefs: readonly ObjectId[] = []): boolean {
  if (step.call?.id === object || fileRefs.includes(object)) return true;
  return Object.values(step.changes).some((ids: readonly ObjectId[] | undefined) => ids?.includes(object));
}

/** A turn of one session. */
interface FoundTurn {
  readonly session: SessionId;
  readonly span: TurnSpan;
}

/** What the turns of one session are shown with, beside their steps. */
interface TurnFacts {
  readonly calls: Calls;
  /** Of the session, by their steps. */
  readonly epochs: readonly LoggedEpoch[];
  readonly times: ReadonlyMap<number, VersionTimes>;
}

/** The epochs that began at some steps of a session, oldest first. */
async function epochsOf(timeline: Timeline, session: SessionId, spans: readonly TurnSpan[]): Promise<readonly LoggedEpoch[]> {
  const [first, last] = [Math.min(...spans.map((span) => span.first)), Math.max(...spans.map((span) => span.last))];
  if (spans.length === 0) return [];
  const known = await timeline.read(session).records?.catch(() => undefined);
  const records =
    known?.filter(({ step }) => step >= first && step <= last) ??
    (await timeline.present.assemblies(session, { first, last, onDamaged: () => undefined, beginEpochs: true }));
  return bordersOf(records).map(({ step, at, epoch: { number, reason, price } }) => {
    return { seq: step, at: new Date(at), number, reason, ...defined({ price }) };
  });
}

function loggedTurn({ session, span }: FoundTurn, { calls, epochs, times }: TurnFacts): LoggedTurn {
  const { turn, steps, first, last } = span;
  const opens = steps[0]?.opens;
  return {
    session,
    turn,
    rule: opens?.rule,
    ref: opens?.ref,
    firstStep: first,
    lastStep: last,
    from: new Date(steps[0]?.at ?? 0),
    to: new Date(steps.at(-1)?.at ?? 0),
    known: times.get(last),
    messages: steps.flatMap(({ seq, message, usage }) =>
      message === undefined ? [] : [{ seq, role: message.role, text: message.text, ...defined({ usage }) }],
    ),
    calls: steps.flatMap(({ seq, call, notes = [] }) => {
      const found = call === undefined ? undefined : calls.get(call.id);
      return found === undefined ? [] : [{ ...found, seq, notes }];
    }),
    epochs: epochs.filter(({ seq }) => seq >= first && seq <= last),
    events: steps.flatMap(({ seq, at, event }) => (event === undefined ? [] : [{ ...event, seq, at: new Date(at) }])),
    person: steps.flatMap((step) => {
      if (step.by === undefined) return [];
      const { index: _, ...changes } = changesOf([step]);
      return [{ seq: step.seq, at: new Date(step.at), changes, ...defined({ undoes: step.undoes }) }];
    }),
    changes: changesOf(steps),
  };
}

/**
 * Some turns of a session with their calls, read by one query if they are not given, and times: one seek for each turn, as only a look-up of its own tells a
 * transaction.
 */
async function detailed(
  timeline: Timeline,
  { session, spans, calls: known }: { readonly session: SessionId; readonly spans: readonly TurnSpan[]; readonly calls?: Calls },
): Promise<readonly LoggedTurn[]> {
  const [calls, epochs, times] = await Promise.all([
    known ?? callsOf(timeline, spans),
    epochsOf(timeline, session, spans),
    timeline.present.stepTimes(
      session,
      spans.map(({ last }) => last),
    ),
  ]);
  return spans.map((span) => loggedTurn({ session, span }, { calls, epochs, times }));
}

/** The turns that are wanted, whatever they touched, oldest first; of the last one no step that is later than what is asked for. */
async function wantedTurns(timeline: Timeline, session: SessionId, options: LogOptions): Promise<readonly TurnSpan[]> {
  const { object, limit = Number.POSITIVE_INFINITY, upto = Number.POSITIVE_INFINITY, until = Number.POSITIVE_INFINITY } = options;
  const readsFew =
    object === undefined && limit < MANY_TURNS && upto === Number.POSITIVE_INFINITY && timeline.read(session).steps === undefined;
  const turns = readsFew ? await newestTurns(timeline, session, { count: limit, until }) : await timeline.turns(session);
  const isWanted = ({ seq, at }: Step): boolean => seq <= upto && at <= until;
  const wanted = turns.every(({ steps }) => steps.every(isWanted))
    ? turns
    : turnSpans(turns.flatMap(({ steps }) => steps.filter(isWanted)));
  return object === undefined && limit < wanted.length ? wanted.slice(-limit) : wanted;
}

/** The turns of a session, the newest first, with both times of each. The newest ones alone are read from the session's end on. */
export async function sessionLog(timeline: Timeline, session: SessionId, options: LogOptions = {}): Promise<readonly LoggedTurn[]> {
  const { object, limit } = options;
  const turns = (await wantedTurns(timeline, session, options)).toReversed();
  if (object === undefined) return detailed(timeline, { session, spans: turns });
  const calls = await callsOf(timeline, turns);
  const touching = turns.filter(({ steps }) => steps.some((step) => touches(step, object, calls.get(step.call?.id ?? '')?.fileRefs)));
  return detailed(timeline, { session, spans: touching.slice(0, limit), calls });
}

/** Sessions that are read side by side. */
const SESSIONS_AT_ONCE = 8;

/**
 * The newest turns of all sessions that were there `at` a moment, merged by time; what a fork shares with its parent is the parent's. Reads only the sessions that can hold one of them: no turn of a session
 * is later than its head and its running turn.
 */
export async function latestTurns(
  timeline: Timeline,
  { limit, until, at = timeline.present }: { readonly limit: number; readonly until?: number; readonly at?: StoreSnapshot },
): Promise<readonly LoggedTurn[]> {
  const sessions = [...(await at.sessions())].sort((a, b) => b.validTime.getTime() - a.validTime.getTime());
  let found: readonly FoundTurn[] = [];
  for (let next = 0; next < sessions.length; next += SESSIONS_AT_ONCE) {
    const some = sessions.slice(next, next + SESSIONS_AT_ONCE);
    const oldest = found[limit - 1];
    if (oldest !== undefined && begins(oldest.span) > (some[0]?.validTime.getTime() ?? 0)) break;
    const own = await Promise.all(
      some.map(async ({ id, parent }) => {
        const turns = await wantedTurns(timeline, id, { limit, until });
        return turns.filter(({ last }) => last > (parent?.seq ?? 0)).map((span) => ({ session: id, span }));
      }),
    );
    // What began in the same millisecond stays in the order of the sessions, the newest turn of each first.
    found = [...found, ...own.flatMap((turns) => turns.toReversed())].sort((a, b) => begins(b.span) - begins(a.span)).slice(0, limit);
  }
  const shown = new Map<TurnSpan, LoggedTurn>();
  const ofSession = pLimit(SESSIONS_AT_ONCE);
  await ofSession.map(new Set(found.map(({ session }) => session)), async (id) => {
    const spans = found.filter(({ session }) => session === id).map(({ span }) => span);
    for (const [i, turn] of (await detailed(timeline, { session: id, spans })).entries()) shown.set(spans[i] as TurnSpan, turn);
  });
  return found.flatMap(({ span }) => shown.get(span) ?? []);
}

/** Steps that are read for each turn that is wanted, before more are. */
const STEPS_A_TURN = 8;
const FEWEST_STEPS = 64;

/**
 * The newest turns of a session that had begun by a moment (milliseconds since 1970), at most `count`, oldest first: read from the session's end on, so
 * that a few turns of a long session cost what those of a short one do.
 */
async function newestTurns(
  { present }: Timeline,
  session: SessionId,
  { count, until }: { readonly count: number; readonly until: number },
): Promise<readonly TurnSpan[]> {
  const [head, lineage] = await Promise.all([present.sessionHead(session), present.lineage(session)]);
  if (head === undefined || lineage === undefined) return [];
  let size = Math.max(FEWEST_STEPS, count * STEPS_A_TURN);
  const upto = head.marks.upto ?? 0;
  let first = Math.max(1, upto - size + 1);
  let steps = await present.stepsFrom(lineage, { first, upto });
  for (;;) {
    // The first turn of those that were read may have begun before.
    const turns = turnSpans(steps).slice(first === 1 ? 0 : 1);
    const wanted = turns.filter((span) => begins(span) <= until);
    if (wanted.length >= count || first === 1) return count === 0 ? [] : wanted.slice(-count);
    size *= 2;
    const last = first - 1;
    first = Math.max(1, first - size);
    steps = [...(await present.stepsAlong(lineage, { first, last })), ...steps];
  }
}

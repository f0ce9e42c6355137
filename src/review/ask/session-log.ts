import pLimit from 'p-limit';
import { storedCallName } from '../../history/rebuild/call-names.js';
import { bordersOf } from '../../history/rebuild/epoch-chain.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import { begins, type TurnSpan, turnSpans } from '../../history/rebuild/turn-spans.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';
import {
  type FoundTurn,
  fileRefsOf,
  type LoggedCalls,
  type LoggedEpoch,
  type LoggedTurn,
  loggedTurn,
  touches,
} from './logged-turn.js';

/** The filter of a log. */
export interface LogOptions {
  /** Only turns that touched this object. */
  readonly object?: ObjectId | undefined;
  /** Maximum number of turns, counted from the newest. Default: all. */
  readonly limit?: number | undefined;
  /** The last step of the log, counted from the session's beginning. */
  readonly upto?: number | undefined;
  /** Only turns that existed by this time, in milliseconds since 1970. */
  readonly until?: number | undefined;
  /** The session's last step, if it is known. Then no later steps are looked for. */
  readonly end?: number | undefined;
}

/** With a limit of this many turns or more, the whole session is read in one go. */
const MANY_TURNS = 500;

/** Returns the calls of some turns by id. Calls missing in the database are absent. */
async function callsOf({ present, paths }: Timeline, spans: readonly TurnSpan[]): Promise<LoggedCalls> {
  const heads = await present.heads(spans.flatMap(({ steps }) => steps.flatMap(({ call }) => call?.id ?? [])));
  return new Map(
    [...heads].map(([id, { document, marks }]) => [
      id,
      {
        id: id as ObjectId,
        tool: String(document.tool),
        name: storedCallName(document, paths.plainCalls),
        status: String(document.status),
        args: typeof document.args_display === 'string' ? document.args_display : JSON.stringify(document.args),
        chars: marks.size ?? 0,
        fileRefs: fileRefsOf(document),
      },
    ]),
  );
}

/** Returns the epochs that began at some steps of a session, oldest first. */
async function epochsOf(
  timeline: Timeline,
  session: SessionId,
  spans: readonly TurnSpan[],
): Promise<readonly LoggedEpoch[]> {
  const [first, last] = [Math.min(...spans.map((span) => span.first)), Math.max(...spans.map((span) => span.last))];
  if (spans.length === 0) return [];
  const read = await timeline.read(session).records?.catch(() => undefined);
  // If the sent bytes of a request are stored, the cached records lack the record of its context.
  // That record may begin an epoch.
  const known = read?.some(({ sent }) => sent !== undefined) === true ? undefined : read;
  const records =
    known?.filter(({ step }) => step >= first && step <= last) ??
    (await timeline.present.assemblies(session, { first, last, onDamaged: () => undefined, beginEpochs: true }));
  return bordersOf(records).map(({ step, at, epoch: { number, reason, price } }) => {
    return { seq: step, at: new Date(at), number, reason, ...defined({ price }) };
  });
}

/**
 * Completes some turns of a session with their calls and times. One query reads all calls that are
 * not given. Each turn takes one more look-up, because only the look-up of one entity returns its
 * transaction.
 */
async function detailed(
  timeline: Timeline,
  {
    session,
    spans,
    calls: known,
  }: { readonly session: SessionId; readonly spans: readonly TurnSpan[]; readonly calls?: LoggedCalls },
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

/**
 * Returns the turns of a session that `options` select, oldest first. Ignores `options.object`. The
 * last turn excludes steps after `options.upto`.
 */
async function wantedTurns(timeline: Timeline, session: SessionId, options: LogOptions): Promise<readonly TurnSpan[]> {
  const {
    object,
    limit = Number.POSITIVE_INFINITY,
    upto = Number.POSITIVE_INFINITY,
    until = Number.POSITIVE_INFINITY,
    end,
  } = options;
  const readsFew =
    object === undefined &&
    limit < MANY_TURNS &&
    upto === Number.POSITIVE_INFINITY &&
    timeline.read(session).steps === undefined;
  const turns = readsFew
    ? await newestTurns(timeline, session, { count: limit, until, end })
    : await timeline.turns(session);
  const isWanted = ({ seq, at }: Step): boolean => seq <= upto && at <= until;
  const wanted = turns.every(({ steps }) => steps.every(isWanted))
    ? turns
    : turnSpans(turns.flatMap(({ steps }) => steps.filter(isWanted)));
  return object === undefined && limit < wanted.length ? wanted.slice(-limit) : wanted;
}

/**
 * Returns the turns of a session, newest first, with the times of each on both clocks. A few newest
 * turns are read from the session's end.
 */
export async function sessionLog(
  timeline: Timeline,
  session: SessionId,
  options: LogOptions = {},
): Promise<readonly LoggedTurn[]> {
  const { object, limit } = options;
  const turns = (await wantedTurns(timeline, session, options)).toReversed();
  if (object === undefined) return detailed(timeline, { session, spans: turns });
  const calls = await callsOf(timeline, turns);
  const touching = turns.filter(({ steps }) =>
    steps.some((step) => touches(step, object, calls.get(step.call?.id ?? '')?.fileRefs)),
  );
  return detailed(timeline, { session, spans: touching.slice(0, limit), calls });
}

/** Number of sessions that are read concurrently. */
const SESSIONS_AT_ONCE = 8;

/**
 * Returns the newest turns of all sessions at a moment, merged by time. Turns that a fork shares
 * belong to its parent. Skips sessions that can have none of the newest turns: no turn begins later
 * than its session's last change.
 */
export async function latestTurns(
  timeline: Timeline,
  {
    limit,
    until,
    at = timeline.present,
  }: { readonly limit: number; readonly until?: number; readonly at?: StoreSnapshot },
): Promise<readonly LoggedTurn[]> {
  const sessions = [...(await at.sessions())].sort((a, b) => b.validTime.getTime() - a.validTime.getTime());
  let found: readonly FoundTurn[] = [];
  for (let next = 0; next < sessions.length; next += SESSIONS_AT_ONCE) {
    const some = sessions.slice(next, next + SESSIONS_AT_ONCE);
    const oldest = found[limit - 1];
    if (oldest !== undefined && begins(oldest.span) > (some[0]?.validTime.getTime() ?? 0)) break;
    await timeline.present.readSessionHeads(some.map(({ id }) => id));
    const own = await Promise.all(
      some.map(async ({ id, parent, upto, running }) => {
        const end = at !== timeline.present || running === undefined ? undefined : (running?.seq ?? upto);
        const turns = await wantedTurns(timeline, id, { limit, until, end });
        return turns.filter(({ last }) => last > (parent?.seq ?? 0)).map((span) => ({ session: id, span }));
      }),
    );
    // The sort is stable. Turns of the same millisecond stay in the order of their sessions, and a
    // session's newest turn comes first.
    found = [...found, ...own.flatMap((turns) => turns.toReversed())]
      .sort((a, b) => begins(b.span) - begins(a.span))
      .slice(0, limit);
  }
  const shown = new Map<TurnSpan, LoggedTurn>();
  const calls = await callsOf(
    timeline,
    found.map(({ span }) => span),
  );
  const ofSession = pLimit(SESSIONS_AT_ONCE);
  await ofSession.map(new Set(found.map(({ session }) => session)), async (id) => {
    const spans = found.filter(({ session }) => session === id).map(({ span }) => span);
    for (const [i, turn] of (await detailed(timeline, { session: id, spans, calls })).entries())
      shown.set(spans[i] as TurnSpan, turn);
  });
  return found.flatMap(({ span }) => shown.get(span) ?? []);
}

/** Number of steps that the first read takes for each wanted turn. */
const STEPS_A_TURN = 8;
const FEWEST_STEPS = 64;

/**
 * Returns at most `count` newest turns that had begun by a time (milliseconds since 1970), oldest
 * first. Reads from the session's end, so a few turns of a long session cost no more than the turns
 * of a short session.
 */
async function newestTurns(
  { present }: Timeline,
  session: SessionId,
  { count, until, end }: { readonly count: number; readonly until: number; readonly end: number | undefined },
): Promise<readonly TurnSpan[]> {
  const [head, lineage] = await Promise.all([present.sessionHead(session), present.lineage(session)]);
  if (head === undefined || lineage === undefined) return [];
  let size = Math.max(FEWEST_STEPS, count * STEPS_A_TURN);
  const upto = head.marks.upto ?? 0;
  let first = Math.max(1, upto - size + 1);
  let steps =
    end === undefined
      ? await present.stepsFrom(lineage, { first, upto })
      : await present.stepsAlong(lineage, { first, last: end, paged: upto });
  for (;;) {
    // The first turn may have begun before the steps that were read.
    const turns = turnSpans(steps).slice(first === 1 ? 0 : 1);
    const wanted = turns.filter((span) => begins(span) <= until);
    if (wanted.length >= count || first === 1) return count === 0 ? [] : wanted.slice(-count);
    size *= 2;
    const last = first - 1;
    first = Math.max(1, first - size);
    steps = [...(await present.stepsAlong(lineage, { first, last })), ...steps];
  }
}

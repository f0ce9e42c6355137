import pLimit from 'p-limit';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { VersionTimes } from '../../store/queries.js';
import type { Timeline, TurnSpan } from '../rebuild/timeline.js';
import { fileRefsOf, touches } from './session-log.js';

/** A version of an object, and when a session had it in full. */
export interface SeenVersion {
  readonly txId: number;
  readonly validTime: Date;
  /** Turns at some point of which it was active. */
  readonly turns: readonly number[];
  /** After which steps it was active, as runs: a request made after one of them has its text. */
  readonly steps: readonly { readonly first: number; readonly last: number }[];
}

/** How a session came to know an object [§3.2]. */
export interface Sighting {
  readonly session: SessionId;
  /** The step from which on the object stands in the pool, as a line. */
  readonly known: { readonly turn: number; readonly seq: number; readonly at: Date };
  /** Turns in which a step named the object: read it, also again, found it, activated or collapsed it. */
  readonly touched: readonly number[];
  /** Turns at some point of which its content was active. */
  readonly active: readonly number[];
  /** Which version was active in which turns and after which steps, also one that was let go of or replaced before its turn ended; in the order in which they were first had. */
  readonly versions: readonly SeenVersion[];
  /** Whether it is active and pinned now. */
  readonly isActive: boolean;
  readonly isPinned: boolean;
}

const AT_ONCE = 4;

/** The version that held at a step: known by its transaction and true at its moment. */
function heldAt(versions: readonly VersionTimes[], at: number, txId: number): VersionTimes | undefined {
  return versions.findLast((version) => version.txId <= txId && version.validTime.getTime() <= at);
}

/** A step after which the object was active. */
interface HeldStep {
  readonly seq: number;
  readonly at: number;
  readonly turn: number;
}

/** The object that is asked about, and its versions. */
interface Asked {
  readonly timeline: Timeline;
  readonly object: ObjectId;
  readonly versions: readonly VersionTimes[];
}

/** What a session's turns did with an object; `held` are the steps after which it was active. `fileRefs`: the files of each call. */
function activityOf(turns: readonly TurnSpan[], object: ObjectId, fileRefs: ReadonlyMap<string, readonly ObjectId[]>) {
  let [active, pinned] = [false, false];
  let known: Sighting['known'] | undefined;
  const [touchedIn, activeIn, held]: [number[], number[], HeldStep[]] = [[], [], []];
  for (const span of turns) {
    let [touched, inContext] = [false, active];
    for (const step of span.steps) {
      const { changes, seq, at, turn, call } = step;
      if (changes.index?.includes(object)) known ??= { turn, seq, at: new Date(at) };
      if (changes.deactivate?.includes(object)) active = false;
      if (changes.unpin?.includes(object)) pinned = false;
      if (changes.activate?.includes(object)) active = true;
      if (changes.pin?.includes(object)) pinned = true;
      touched ||= touches(step, object, call === undefined ? [] : fileRefs.get(call.id));
      inContext ||= active;
      if (active) held.push({ seq, at, turn });
    }
    if (touched) touchedIn.push(span.turn);
    if (inContext) activeIn.push(span.turn);
  }
  return { touched: touchedIn, active: activeIn, held, known, isActive: active, isPinned: pinned };
}

/**
 * For each of some steps, in order, a transaction at which the database knew the same versions as at the step's own. Steps are written in their order:
 * where the first and the last of some steps know the same versions, nothing between them is looked up.
 */
async function decidingTransactions(
  { timeline, versions }: Asked,
  session: SessionId,
  seqs: readonly number[],
): Promise<readonly (number | undefined)[]> {
  const written = versions.map(({ txId }) => txId).sort((a, b) => a - b);
  const known = new Map<number, number>();
  const readTimes = async (places: readonly number[]): Promise<void> => {
    const times = await timeline.present.stepTimes(
      session,
      places.map((place) => seqs[place] ?? 0),
    );
    for (const place of places) {
      const txId = times.get(seqs[place] ?? 0)?.txId;
      if (txId !== undefined) known.set(place, txId);
    }
  };
  const differs = ([from, to]: readonly [number, number]): boolean => {
    const [a, b] = [known.get(from) ?? -1, known.get(to) ?? -1];
    return to - from > 1 && written.some((txId) => txId > a && txId <= b);
  };
  if (seqs.length > 0) await readTimes([0, seqs.length - 1]);
  let open: readonly (readonly [number, number])[] = [[0, seqs.length - 1]];
  for (open = open.filter(differs); open.length > 0; open = open.filter(differs)) {
    const middles = open.map(([from, to]) => Math.floor((from + to) / 2));
    await readTimes(middles);
    open = open.flatMap(([from, to], i) => {
      const middle = middles[i] ?? to;
      return [[from, middle] as const, [middle, to] as const];
    });
  }
  let before: number | undefined;
  return seqs.map((_, place) => {
    before = known.get(place) ?? before;
    return before;
  });
}

/** The versions that were active after some steps, with the turns and runs of steps of each. */
async function versionsHeld(asked: Asked, session: SessionId, held: readonly HeldStep[]): Promise<readonly SeenVersion[]> {
  const txIds = await decidingTransactions(
    asked,
    session,
    held.map(({ seq }) => seq),
  );
  const seen = new Map<VersionTimes, { readonly turns: Set<number>; readonly steps: { first: number; last: number }[] }>();
  for (const [i, { seq, at, turn }] of held.entries()) {
    const txId = txIds[i];
    const version = txId === undefined ? undefined : heldAt(asked.versions, at, txId);
    if (version === undefined) continue;
    const had = seen.get(version) ?? { turns: new Set(), steps: [] };
    seen.set(version, had);
    had.turns.add(turn);
    const run = had.steps.at(-1);
    if (run?.last === seq - 1) run.last = seq;
    else had.steps.push({ first: seq, last: seq });
  }
  return [...seen].map(([{ txId, validTime }, { turns, steps }]) => ({ txId, validTime, turns: [...turns], steps }));
}

/** The files of the calls from the step on at which an object became known: no call before names it. */
async function refsOfCalls(
  timeline: Timeline,
  turns: readonly TurnSpan[],
  object: ObjectId,
): Promise<ReadonlyMap<string, readonly ObjectId[]>> {
  const steps = turns.flatMap((span) => span.steps);
  const first = steps.findIndex(({ changes }) => changes.index?.includes(object));
  if (first < 0) return new Map();
  const heads = await timeline.present.heads(steps.slice(first).flatMap(({ call }) => call?.id ?? []));
  return new Map([...heads].map(([id, { document }]) => [id, fileRefsOf(document)]));
}

async function sightingIn(asked: Asked, session: SessionId): Promise<Sighting | undefined> {
  const { timeline, object } = asked;
  const turns = await timeline.turns(session);
  const { held, known, ...activity } = activityOf(turns, object, await refsOfCalls(timeline, turns, object));
  return known === undefined ? undefined : { session, known, ...activity, versions: await versionsHeld(asked, session, held) };
}

const byFirst = (a: Sighting, b: Sighting): number => a.known.at.getTime() - b.known.at.getTime();

/** Which of some sessions have an object in their index, as `seenBy` says it. */
export async function seenIn(timeline: Timeline, object: ObjectId, sessions: readonly SessionId[]): Promise<readonly Sighting[]> {
  const versions = await timeline.present.versions(object);
  const found = await pLimit(AT_ONCE).map(sessions, (id) => sightingIn({ timeline, object, versions }, id));
  return found.filter((sighting) => sighting !== undefined).sort(byFirst);
}

/** Which sessions have an object in their index, since when, and in which turns they had it in context; the one that had it first comes first. */
export async function seenBy(timeline: Timeline, object: ObjectId): Promise<readonly Sighting[]> {
  const { present } = timeline;
  const limit = pLimit(AT_ONCE);
  const versions = await present.versions(object);
  const sessions = await present.sessions();
  const found = await Promise.all(
    sessions.map(({ id }) =>
      limit(async () => {
        const { sets } = await present.sets(id);
        return sets.index.includes(object) ? sightingIn({ timeline, object, versions }, id) : undefined;
      }),
    ),
  );
  return found.filter((sighting) => sighting !== undefined).sort(byFirst);
}

import pLimit from 'p-limit';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import type { VersionTimes } from '../../store/queries.js';
import { askOnce } from '../../values/ask-once.js';
import { type ContextKind, kindOfRecord, type TurnKinds } from '../rebuild/context-kind.js';
import type { Timeline } from '../rebuild/timeline.js';
import type { TurnSpan } from '../rebuild/turn-spans.js';
import { fileRefsOf, touches } from './logged-turn.js';

/** A version of an object, and when a session had it in its active set. */
export interface SeenVersion {
  readonly txId: number;
  readonly validTime: Date;
  /** Turns at some point of which it was active. */
  readonly turns: readonly number[];
  /** After which steps it was active, as runs: a request of ours that is made after one of them has its text. */
  readonly steps: readonly { readonly first: number; readonly last: number }[];
}

/** How a session came to know an object [§3.2]. */
export interface Sighting {
  readonly session: SessionId;
  /** The step from which on the object stands in the pool, as a line. */
  readonly known: { readonly turn: number; readonly seq: number; readonly at: Date };
  /** Turns in which a step named the object: read it, also again, found it, activated or collapsed it. */
  readonly touched: readonly number[];
  /** Turns at some point of which its content was in the session's active set. */
  readonly active: readonly number[];
  /** Turns with a request that had it in full: by its record (decision E12), or by a transcript. */
  readonly sent: readonly number[];
  readonly transcript: readonly number[];
  /** Turns from `known` on with a call of the model that Palimpsest has not seen: what it was sent of the object is not known. */
  readonly unseen: readonly number[];
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
type HeldStep = Pick<Step, 'seq' | 'at' | 'turn'>;

/** What of sessions is read once, however many of their objects are asked about: their turns, the files of their calls, when their steps were written. */
export class SightedSessions {
  readonly #timeline: Timeline;
  readonly #turns = new Map<SessionId, Promise<readonly TurnSpan[]>>();
  readonly #refs = new Map<ObjectId, readonly ObjectId[]>();
  readonly #written = new Map<SessionId, Map<number, number>>();
  readonly #read = new Set<SessionId>();

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  /** Whether all of a session was read, and nothing of it need be asked for any more. */
  hasRead(session: SessionId): boolean {
    return this.#read.has(session);
  }

  /** The files of the calls that were read so far. */
  get files(): ReadonlyMap<ObjectId, readonly ObjectId[]> {
    return this.#refs;
  }

  /** Reads what every object of a session is asked of, at once. */
  async read(session: SessionId): Promise<void> {
    const steps = (await this.turns(session)).flatMap((span) => span.steps);
    await Promise.all([
      this.filesOf(steps),
      this.transactions(
        session,
        steps.map(({ seq }) => seq),
      ),
    ]);
    this.#read.add(session);
  }

  kinds(session: SessionId): Promise<TurnKinds> {
    return this.#timeline.turnKinds(session);
  }

  turns(session: SessionId): Promise<readonly TurnSpan[]> {
    return askOnce(this.#turns, session, () => this.#timeline.turns(session));
  }

  /** The versions of an object that a session could see: those of the database, or those that an import keeps to it. */
  async versions(
    session: SessionId,
    { object, versions }: Pick<Asked, 'object' | 'versions'>,
  ): Promise<readonly VersionTimes[]> {
    const own = await this.#timeline.of(session);
    return own === this.#timeline ? versions : own.present.versions(object);
  }

  /** Reads the files of the calls of some steps. */
  async filesOf(steps: readonly Step[]): Promise<void> {
    const fresh = steps.flatMap(({ call }) => (call === undefined || this.#refs.has(call.id) ? [] : [call.id]));
    const heads = await this.#timeline.present.heads(fresh);
    for (const [id, { document }] of heads) this.#refs.set(id as ObjectId, fileRefsOf(document));
  }

  /** The transactions that wrote some steps of a session, and those of others; those that are not written are absent. */
  async transactions(session: SessionId, seqs: readonly number[]): Promise<ReadonlyMap<number, number>> {
    const known = this.#written.get(session) ?? new Map<number, number>();
    this.#written.set(session, known);
    const fresh = seqs.filter((seq) => !known.has(seq));
    if (fresh.length > 0)
      for (const [seq, { txId }] of await this.#timeline.present.stepTimes(session, fresh)) known.set(seq, txId);
    return known;
  }
}

/** The object that is asked about, and its versions. */
interface Asked {
  readonly sessions: SightedSessions;
  readonly object: ObjectId;
  readonly versions: readonly VersionTimes[];
}

/** What a session's turns did with an object; `held` are the steps after which it was active. `fileRefs`: the files of each call. */
function activityOf(
  turns: readonly TurnSpan[],
  object: ObjectId,
  fileRefs: ReadonlyMap<ObjectId, readonly ObjectId[]>,
) {
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
      if (active) held.push(step);
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
  { sessions, versions }: Asked,
  session: SessionId,
  seqs: readonly number[],
): Promise<readonly (number | undefined)[]> {
  const written = versions.map(({ txId }) => txId).sort((a, b) => a - b);
  const known = new Map<number, number>();
  const readTimes = async (places: readonly number[]): Promise<void> => {
    const transactions = await sessions.transactions(
      session,
      places.map((place) => seqs[place] ?? 0),
    );
    for (const place of places) {
      const txId = transactions.get(seqs[place] ?? 0);
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
async function versionsHeld(
  asked: Asked,
  session: SessionId,
  held: readonly HeldStep[],
): Promise<readonly SeenVersion[]> {
  const txIds = await decidingTransactions(
    asked,
    session,
    held.map(({ seq }) => seq),
  );
  const seen = new Map<
    VersionTimes,
    { readonly turns: Set<number>; readonly steps: { first: number; last: number }[] }
  >();
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

/** Reads the files of the calls from the step on at which an object became known: no call before names it. */
async function readCalls({ sessions, object }: Asked, turns: readonly TurnSpan[]): Promise<void> {
  const steps = turns.flatMap((span) => span.steps);
  const first = steps.findIndex(({ changes }) => changes.index?.includes(object));
  if (first >= 0) await sessions.filesOf(steps.slice(first));
}

async function sightingIn(asked: Asked, session: SessionId): Promise<Sighting | undefined> {
  const turns = await asked.sessions.turns(session);
  if (!asked.sessions.hasRead(session)) await readCalls(asked, turns);
  const { held, known, ...activity } = activityOf(turns, asked.object, asked.sessions.files);
  if (known === undefined) return undefined;
  const [versions, kinds] = await Promise.all([
    versionsHeld({ ...asked, versions: await asked.sessions.versions(session, asked) }, session, held),
    asked.sessions.kinds(session),
  ]);
  const heldAfter = new Set(held.map(({ seq }) => seq));
  const shown = kinds.records.filter(({ step }) => heldAfter.has(step));
  const turnsOf = (kind: ContextKind) => [
    ...new Set(shown.flatMap((record) => (kindOfRecord(record) === kind ? [record.turn] : []))),
  ];
  const recorded = new Set(kinds.records.map(({ turn }) => turn));
  const told = activity.active.filter((turn) => !recorded.has(turn) && kinds.of(turn).has('transcript'));
  const unseen = turns.flatMap(({ turn }) => (turn >= known.turn && kinds.of(turn).has('unseen') ? [turn] : []));
  return {
    session,
    known,
    ...activity,
    versions,
    sent: turnsOf('sent'),
    transcript: [...turnsOf('transcript'), ...told],
    unseen,
  };
}

const byFirst = (a: Sighting, b: Sighting): number => a.known.at.getTime() - b.known.at.getTime();

/** Which of some sessions have an object of these versions in their index, as `seenBy` says it. */
export async function seenIn(
  sessions: SightedSessions,
  { object, versions }: Pick<Asked, 'object' | 'versions'>,
  some: readonly SessionId[],
): Promise<readonly Sighting[]> {
  const found = await pLimit(AT_ONCE).map(some, (id) => sightingIn({ sessions, object, versions }, id));
  return found.filter((sighting) => sighting !== undefined).sort(byFirst);
}

/** Which sessions have an object in their index, since when, and in which turns they had it in context; the one that had it first comes first. */
export async function seenBy(timeline: Timeline, object: ObjectId): Promise<readonly Sighting[]> {
  const { present } = timeline;
  const versions = await present.versions(object);
  const known = await pLimit(AT_ONCE).map(await present.sessions(), async ({ id }) =>
    (await present.sets(id)).sets.index.includes(object) ? [id] : [],
  );
  return seenIn(new SightedSessions(timeline), { object, versions }, known.flat());
}

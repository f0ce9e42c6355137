import pLimit from 'p-limit';
import { type ContextKind, kindOfRecord, type TurnKinds } from '../../history/rebuild/context-kind.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import type { TurnSpan } from '../../history/rebuild/turn-spans.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import type { VersionTimes } from '../../store/queries.js';
import { askOnce } from '../../values/promises.js';
import { fileRefsOf, touches } from './logged-turn.js';
import { RequestedCalls } from './requested-calls.js';

/** A version of an object, and the times when a session had it in its active set. */
export interface SeenVersion {
  readonly txId: number;
  readonly validTime: Date;
  /** Turns in which it was active at some point. */
  readonly turns: readonly number[];
  /** Runs of steps after which it was active. A request made after one of them has its text. */
  readonly steps: readonly { readonly first: number; readonly last: number }[];
}

/** The encounter of a session with an object [§3.2]. */
export interface Sighting {
  readonly session: SessionId;
  /** The step that put the object into the pool, as a line. */
  readonly known: { readonly turn: number; readonly seq: number; readonly at: Date };
  /** Turns with a step that named the object: a read, a listing, an activation or a collapse. */
  readonly touched: readonly number[];
  /** Turns in which its content was in the session's active set at some point. */
  readonly active: readonly number[];
  /**
   * Turns with a request that had it in full: by its record (decision E12), or by a transcript. A
   * request that the agent built itself counts if it shows the call or one that showed the file.
   */
  readonly sent: readonly number[];
  readonly transcript: readonly number[];
  /**
   * Turns from `known` on with an unseen model call. The object's part in that request is unknown.
   */
  readonly unseen: readonly number[];
  /**
   * The active versions by turns and steps, in order of their first use. A version replaced before
   * its turn ended counts too.
   */
  readonly versions: readonly SeenVersion[];
  /** Whether it is active, and whether it is pinned, now. */
  readonly isActive: boolean;
  readonly isPinned: boolean;
}

const AT_ONCE = 4;

/**
 * Returns the version that was valid at a step: known by its transaction and true at its moment.
 */
function heldAt(versions: readonly VersionTimes[], at: number, txId: number): VersionTimes | undefined {
  return versions.findLast((version) => version.txId <= txId && version.validTime.getTime() <= at);
}

/** A step after which the object was active. */
type HeldStep = Pick<Step, 'seq' | 'at' | 'turn'>;

/**
 * Reads each session once for any number of objects: its turns, the files of its calls, and the
 * transactions of its steps.
 */
export class SightedSessions {
  readonly requested: RequestedCalls;
  readonly #timeline: Timeline;
  readonly #turns = new Map<SessionId, Promise<readonly TurnSpan[]>>();
  readonly #refs = new Map<ObjectId, readonly ObjectId[]>();
  readonly #written = new Map<SessionId, Map<number, number>>();
  readonly #read = new Set<SessionId>();

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
    this.requested = new RequestedCalls(timeline);
  }

  /** Returns whether a session was read completely. */
  hasRead(session: SessionId): boolean {
    return this.#read.has(session);
  }

  /** The files of all calls that were read. */
  get files(): ReadonlyMap<ObjectId, readonly ObjectId[]> {
    return this.#refs;
  }

  /** Reads the data of a session that every object needs. */
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

  /**
   * Returns the versions of an object that a session could see: those of the database, or those of
   * its import.
   */
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

  /**
   * Returns the transactions of some steps of a session, and of others. Unwritten steps are absent.
   */
  async transactions(session: SessionId, seqs: readonly number[]): Promise<ReadonlyMap<number, number>> {
    const known = this.#written.get(session) ?? new Map<number, number>();
    this.#written.set(session, known);
    const fresh = seqs.filter((seq) => !known.has(seq));
    if (fresh.length > 0)
      for (const [seq, { txId }] of await this.#timeline.present.stepTimes(session, fresh)) known.set(seq, txId);
    return known;
  }
}

/** The object of the question, with its versions. */
interface Asked {
  readonly sessions: SightedSessions;
  readonly object: ObjectId;
  readonly versions: readonly VersionTimes[];
}

/**
 * Returns the actions of a session's turns on an object. `held` are the steps after which it was
 * active; `fileRefs` are the files of each call.
 */
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
 * Returns, for each step in order, a transaction at which the database knew the same versions as at
 * the step's own. Steps are written in order. If the first and last of some steps know the same
 * versions, those between need no look-up.
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

/** Returns the versions that were active after some steps, with their turns and runs of steps. */
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

/**
 * Reads the files of calls from the step on that made an object known. Earlier calls cannot name
 * it.
 */
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
  const own = await asked.sessions.requested.own(session, kinds.records);
  const calls = turns.flatMap(({ steps }) =>
    steps.flatMap(({ seq, call }) => {
      const isOf =
        call?.id === asked.object || asked.sessions.files.get(call?.id ?? asked.object)?.includes(asked.object);
      return call !== undefined && isOf === true && heldAfter.has(seq) ? [{ id: call.id, seq }] : [];
    }),
  );
  const requested = await asked.sessions.requested.turns(own, calls);
  const shown = kinds.records.filter((record) => heldAfter.has(record.step) && !own.includes(record));
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
    sent: [...new Set([...turnsOf('sent'), ...requested])].sort((a, b) => a - b),
    transcript: [...turnsOf('transcript'), ...told],
    unseen,
  };
}

const byFirst = (a: Sighting, b: Sighting): number => a.known.at.getTime() - b.known.at.getTime();

/**
 * Returns which of some sessions have an object of these versions in their index, as `seenBy` does.
 */
export async function seenIn(
  sessions: SightedSessions,
  { object, versions }: Pick<Asked, 'object' | 'versions'>,
  some: readonly SessionId[],
): Promise<readonly Sighting[]> {
  const found = await pLimit(AT_ONCE).map(some, (id) => sightingIn({ sessions, object, versions }, id));
  return found.filter((sighting) => sighting !== undefined).sort(byFirst);
}

/**
 * Returns the sessions that have an object in their index, with the first step and the turns of
 * each. The earliest session comes first.
 */
export async function seenBy(timeline: Timeline, object: ObjectId): Promise<readonly Sighting[]> {
  const { present } = timeline;
  const versions = await present.versions(object);
  const known = await pLimit(AT_ONCE).map(await present.sessions(), async ({ id }) =>
    (await present.sets(id)).sets.index.includes(object) ? [id] : [],
  );
  return seenIn(new SightedSessions(timeline), { object, versions }, known.flat());
}

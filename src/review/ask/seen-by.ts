import pLimit from 'p-limit';
import type { Timeline } from '../../history/rebuild/timeline.js';
import type { Presence } from '../../history/rebuild/transcript-presence.js';
import type { TurnKinds } from '../../history/rebuild/turn-kinds.js';
import type { TurnSpan } from '../../history/rebuild/turn-spans.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import { isDamage } from '../../store/errors.js';
import type { VersionTimes } from '../../store/queries.js';
import { askOnce } from '../../values/promises.js';
import { fileRefsOf, touches } from './logged-turn.js';
import { RequestedCalls } from './requested-calls.js';
import type { SeenVersion, Sighting } from './sighting.js';
import { type SeenWhole, seenInTranscript } from './transcript-sighting.js';

const AT_ONCE = 4;

/** Returns the version that was valid at a step: stored by transaction `txId` and valid at `at`. */
function heldAt(versions: readonly VersionTimes[], at: number, txId: number): VersionTimes | undefined {
  return versions.findLast((version) => version.txId <= txId && version.validTime.getTime() <= at);
}

/** A step after which the object was active. */
type HeldStep = Pick<Step, 'seq' | 'at' | 'turn'>;

/**
 * Reads the turns of each session, the files of its calls, and the transactions of its steps. Reads
 * each only once, for any number of objects.
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

  /** The files of the calls that have been read. */
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
   * its import's line.
   */
  async versions(
    session: SessionId,
    { object, versions }: Pick<Asked, 'object' | 'versions'>,
  ): Promise<readonly VersionTimes[]> {
    const own = await this.#timeline.of(session);
    return own === this.#timeline ? versions : own.present.versions(object);
  }

  /** Returns the requests of the session's transcript that had an object. */
  async presences(session: SessionId, object: ObjectId): Promise<readonly Presence[]> {
    const own = await this.#timeline.of(session);
    return (await (await own.transcript(session)).presences()).get(object) ?? [];
  }

  /** Reads the files of the calls of some steps. */
  async filesOf(steps: readonly Step[]): Promise<void> {
    const fresh = steps.flatMap(({ call }) => (call === undefined || this.#refs.has(call.id) ? [] : [call.id]));
    const heads = await this.#timeline.present.heads(fresh);
    for (const [id, { document }] of heads) this.#refs.set(id as ObjectId, fileRefsOf(document));
  }

  /**
   * Returns the transactions of some steps of a session, and of the steps read earlier. Unwritten
   * steps are absent.
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
 * Returns the actions of a session's turns on an object. `held` are the steps after which the
 * object was active; `fileRefs` are the files of each call.
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
 * Returns a transaction for each step, in order. At this transaction the database had the same
 * versions as at the step's own. Steps are written in order. So if the versions at the first and
 * last of some steps are equal, the steps between need no look-up.
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

/**
 * Returns the versions that were active after some steps, with the turns and runs of steps of each.
 */
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
 * Reads the files of calls, beginning with the step that put the object into the index. Earlier
 * calls cannot name the object.
 */
async function readCalls({ sessions, object }: Asked, turns: readonly TurnSpan[]): Promise<void> {
  const steps = turns.flatMap((span) => span.steps);
  const first = steps.findIndex(({ changes }) => changes.index?.includes(object));
  if (first >= 0) await sessions.filesOf(steps.slice(first));
}

/** Returns where a session had an object in full, by its transcript or, without one, its sets. */
async function seenWhole(
  asked: Asked,
  session: SessionId,
  {
    turns,
    kinds,
    activity,
  }: {
    readonly turns: readonly TurnSpan[];
    readonly kinds: TurnKinds;
    readonly activity: ReturnType<typeof activityOf>;
  },
): Promise<SeenWhole> {
  const versions = await asked.sessions.versions(session, asked);
  if (kinds.isTranscript) {
    const presences = await asked.sessions.presences(session, asked.object);
    return seenInTranscript(presences, { turns, versions, requests: kinds.requests });
  }
  const { held, active, isActive, isPinned } = activity;
  return {
    held,
    active,
    isActive,
    isPinned,
    told: [],
    versions: await versionsHeld({ ...asked, versions }, session, held),
  };
}

async function sightingIn(asked: Asked, session: SessionId): Promise<Sighting | undefined> {
  const turns = await asked.sessions.turns(session);
  if (!asked.sessions.hasRead(session)) await readCalls(asked, turns);
  const activity = activityOf(turns, asked.object, asked.sessions.files);
  const { known, touched } = activity;
  if (known === undefined) return undefined;
  const kinds = await asked.sessions.kinds(session);
  const { held, told, ...seen } = await seenWhole(asked, session, { turns, kinds, activity });
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
  const unseen = turns.flatMap(({ turn }) => (turn >= known.turn && kinds.of(turn).has('unseen') ? [turn] : []));
  return {
    session,
    known,
    touched,
    ...seen,
    sent: [...new Set([...shown.map(({ turn }) => turn), ...requested])].sort((a, b) => a - b),
    transcript: told,
    unseen,
  };
}

const byFirst = (a: Sighting, b: Sighting): number => a.known.at.getTime() - b.known.at.getTime();

/**
 * Returns which of some sessions have an object in their index. `versions` are the object's
 * versions.
 */
export async function seenIn(
  sessions: SightedSessions,
  { object, versions }: Pick<Asked, 'object' | 'versions'>,
  some: readonly SessionId[],
): Promise<readonly Sighting[]> {
  const found = await pLimit(AT_ONCE).map(some, (id) => sightingIn({ sessions, object, versions }, id));
  return found.filter((sighting) => sighting !== undefined).sort(byFirst);
}

/** A session whose data is damaged, and the error of reading it. */
export interface DamagedSession {
  readonly session: SessionId;
  readonly why: string;
}

/** The sessions that saw an object, the earliest first. */
export interface Sightings {
  readonly sightings: readonly Sighting[];
  /** Sessions that cannot be read. Whether they saw the object is unknown. */
  readonly damaged: readonly DamagedSession[];
}

/**
 * Returns the sessions that have an object in their index, with the first step and the turns of
 * each. A damaged session is named and does not fail the answer.
 */
export async function seenBy(timeline: Timeline, object: ObjectId): Promise<Sightings> {
  const { present } = timeline;
  const asked = { sessions: new SightedSessions(timeline), object, versions: await present.versions(object) };
  const found = await pLimit(AT_ONCE).map(await present.sessions(), async ({ id }) => {
    try {
      const isKnown = (await present.sets(id)).sets.index.includes(object);
      const sighting = isKnown ? await sightingIn(asked, id) : undefined;
      return sighting === undefined ? {} : { sighting };
    } catch (error) {
      if (!isDamage(error)) throw error;
      return { damage: { session: id, why: error.message } };
    }
  });
  // A fork knows an object since the same time as its parent, so the order must be stable.
  return {
    sightings: found.flatMap(({ sighting }) => sighting ?? []).sort(byFirst),
    damaged: found.flatMap(({ damage }) => damage ?? []),
  };
}

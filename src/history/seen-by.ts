import pLimit from 'p-limit';
import type { ObjectId, SessionId } from '../objects/ids.js';
import type { VersionTimes } from '../store/version-times.js';
import { touches } from './session-log.js';
import type { Timeline } from './timeline.js';
import type { TurnSpan } from './turn-spans.js';

/** A version of an object, and the turns that had it in full. */
export interface SeenVersion {
  readonly txId: number;
  readonly validTime: Date;
  readonly turns: readonly number[];
}

/** How a session came to know an object [§3.2]. */
export interface Sighting {
  readonly session: SessionId;
  /** The step from which on the object stands in the pool, as a line. */
  readonly known: { readonly turn: number; readonly seq: number; readonly at: Date };
  /** Turns in which a step named the object: read it, found it, activated or collapsed it. */
  readonly touched: readonly number[];
  /** Turns at some point of which its content was active. */
  readonly active: readonly number[];
  /** Which version was active at the end of which turn. */
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

interface Activity {
  readonly touched: readonly number[];
  readonly active: readonly number[];
  /** Turns at whose end it was active. */
  readonly endedActive: readonly TurnSpan[];
  readonly known: Sighting['known'] | undefined;
  readonly isActive: boolean;
  readonly isPinned: boolean;
}

function activityOf(turns: readonly TurnSpan[], object: ObjectId): Activity {
  let [active, pinned] = [false, false];
  let known: Sighting['known'] | undefined;
  const [touched, activeIn, ended]: [number[], number[], TurnSpan[]] = [[], [], []];
  for (const span of turns) {
    let [met, inContext] = [false, active];
    for (const step of span.steps) {
      const { changes, seq, at, turn } = step;
      if (changes.index?.includes(object)) known ??= { turn, seq, at: new Date(at) };
      if (changes.deactivate?.includes(object)) active = false;
      if (changes.unpin?.includes(object)) pinned = false;
      if (changes.activate?.includes(object)) active = true;
      if (changes.pin?.includes(object)) pinned = true;
      met ||= touches(step, object);
      inContext ||= active;
    }
    if (met) touched.push(span.turn);
    if (inContext) activeIn.push(span.turn);
    if (active) ended.push(span);
  }
  return { touched, active: activeIn, endedActive: ended, known, isActive: active, isPinned: pinned };
}

async function sightingIn(
  timeline: Timeline,
  session: SessionId,
  object: ObjectId,
  versions: readonly VersionTimes[],
): Promise<Sighting | undefined> {
  const { endedActive, known, ...activity } = activityOf(await timeline.turns(session), object);
  if (known === undefined) return undefined;
  const times = await timeline.present.stepTimes(
    session,
    endedActive.map(({ last }) => last),
  );
  const seen = new Map<VersionTimes, number[]>();
  for (const { turn, last, steps } of endedActive) {
    const txId = times.get(last)?.txId;
    const version = txId === undefined ? undefined : heldAt(versions, steps.at(-1)?.at ?? 0, txId);
    if (version !== undefined) seen.set(version, [...(seen.get(version) ?? []), turn]);
  }
  const shown = [...seen].map(([{ txId, validTime }, turns]) => ({ txId, validTime, turns }));
  return { session, known, ...activity, versions: shown };
}

/** Which sessions met an object, when, and in which turns they had it in context; the one that met it first comes first. */
export async function seenBy(timeline: Timeline, object: ObjectId): Promise<readonly Sighting[]> {
  const { present } = timeline;
  const limit = pLimit(AT_ONCE);
  const versions = await present.versions(object);
  const sessions = await present.sessions();
  const found = await Promise.all(
    sessions.map(({ id }) =>
      limit(async () => {
        const { sets } = await present.sets(id);
        return sets.index.includes(object) ? sightingIn(timeline, id, object, versions) : undefined;
      }),
    ),
  );
  return found.filter((sighting) => sighting !== undefined).sort((a, b) => a.known.at.getTime() - b.known.at.getTime());
}

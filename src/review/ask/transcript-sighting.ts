import type { SessionRequest } from '../../history/rebuild/session-requests.js';
import { type Presence, presentAt } from '../../history/rebuild/transcript-presence.js';
import type { TurnSpan } from '../../history/rebuild/turn-spans.js';
import type { Step } from '../../objects/step.js';
import type { VersionTimes } from '../../store/queries.js';
import type { SeenVersion, Sighting } from './sighting.js';

/** The parts of a sighting that come from the sets or from a transcript. */
export interface SeenWhole extends Pick<Sighting, 'active' | 'versions' | 'isActive' | 'isPinned'> {
  /** The steps after which a request has the object in full. */
  readonly held: readonly Pick<Step, 'seq' | 'at' | 'turn'>[];
  /** Turns with a request of the transcript that had the object in full. */
  readonly told: readonly number[];
}

/** Returns the versions that the transcript's requests had in full, each with its runs of steps. */
function versionsOf(
  presences: readonly Presence[],
  versions: readonly VersionTimes[],
  steps: readonly Step[],
): readonly SeenVersion[] {
  const last = steps.at(-1)?.seq ?? 0;
  const seen = new Map<VersionTimes, { first: number; last: number }[]>();
  for (const { from, until, at } of presences) {
    const version = versions.findLast(({ validTime }) => validTime.getTime() <= at);
    if (version === undefined) continue;
    const runs = seen.get(version) ?? [];
    seen.set(version, runs);
    const run = { first: from, last: Math.min(until - 1, last) };
    const before = runs.at(-1);
    if (before === undefined || before.last < run.first - 1) runs.push(run);
    else before.last = Math.max(before.last, run.last);
  }
  return [...seen].map(([{ txId, validTime }, runs]) => {
    const isIn = ({ seq }: Step): boolean => runs.some((run) => run.first <= seq && seq <= run.last);
    return { txId, validTime, turns: [...new Set(steps.filter(isIn).map(({ turn }) => turn))], steps: runs };
  });
}

/** Returns where the requests of a transcript had an object in full. */
export function seenInTranscript(
  presences: readonly Presence[],
  of: {
    readonly turns: readonly TurnSpan[];
    readonly versions: readonly VersionTimes[];
    readonly requests: readonly SessionRequest[];
  },
): SeenWhole {
  const steps = of.turns.flatMap((span) => span.steps);
  const isWhole = (step: number): boolean => presentAt(presences, step) === 'whole';
  const held = steps.filter(({ seq }) => isWhole(seq));
  const told = of.requests.flatMap(({ kind, turn, step }) => (kind === 'transcript' && isWhole(step) ? [turn] : []));
  return {
    held,
    active: [...new Set(held.map(({ turn }) => turn))],
    versions: versionsOf(
      presences.filter(({ whole }) => whole),
      of.versions,
      steps,
    ),
    told: [...new Set(told)],
    isActive: isWhole(steps.at(-1)?.seq ?? 0),
    isPinned: false,
  };
}

import { quoted } from '../objects/errors.js';
import type { ObjectId, SessionId } from '../objects/ids.js';
import type { SetChanges } from '../objects/sets.js';
import type { Step } from '../objects/step.js';
import { SessionError } from './errors.js';
import type { SetVerbs } from './plan-step.js';

/** The set changes that undo one step. */
export interface UndoPlan {
  readonly session: SessionId;
  /** The undone step. */
  readonly undoes: number;
  /** A list without objects is absent. */
  readonly verbs: SetVerbs;
}

/** Maximum number of objects that an error names. */
const MOST_NAMED = 3;

const without = (ids: readonly ObjectId[] = [], others: readonly ObjectId[] = []): readonly ObjectId[] =>
  ids.filter((id) => !others.includes(id));

/**
 * Returns the opposite of a step's changes. An object that the step removed and added again was a
 * member before, so it stays.
 */
function oppositeOf({ activate, deactivate, pin, unpin }: SetChanges): SetVerbs {
  const verbs: SetVerbs = {
    activate: without(deactivate, activate),
    deactivate: without(activate, deactivate),
    pin: without(unpin, pin),
    unpin: without(pin, unpin),
  };
  return Object.fromEntries(Object.entries(verbs).filter(([, ids]) => ids.length > 0));
}

const objectsOf = (verbs: SetVerbs | SetChanges): ReadonlySet<ObjectId> =>
  new Set([...(verbs.activate ?? []), ...(verbs.deactivate ?? []), ...(verbs.pin ?? []), ...(verbs.unpin ?? [])]);

/**
 * Plans how to undo a step's changes of the active and pinned sets. Index entries stay, because
 * nothing leaves the index. A reactivated object has its newest version and follows the other
 * active objects.
 * @throws {SessionError} `sequence-gap` – there is no such step; `nothing-to-undo`; `changed-since`
 *   – names the first later step that changed one of the same objects
 */
export function planUndo(
  session: SessionId,
  steps: readonly Pick<Step, 'seq' | 'changes' | 'undoes'>[],
  seq: number,
): UndoPlan {
  const step = steps.find((one) => one.seq === seq);
  if (step === undefined) {
    const last = steps.at(-1)?.seq ?? 0;
    throw new SessionError(
      'sequence-gap',
      `session ${session} has no step ${seq}: its last one is ${last}; palimpsest log ${session} lists them`,
    );
  }
  const verbs = oppositeOf(step.changes);
  const objects = objectsOf(verbs);
  if (objects.size === 0) {
    const listed = (step.changes.index ?? []).length > 0 ? '; it only listed new objects, which stay listed' : '';
    throw new SessionError(
      'nothing-to-undo',
      `step ${seq} of session ${session} activated, deactivated, pinned and unpinned nothing${listed}`,
    );
  }
  for (const later of steps) {
    if (later.seq <= seq) continue;
    const touched = [...objectsOf(later.changes)].filter((id) => objects.has(id));
    if (touched.length === 0) continue;
    const named = touched.slice(0, MOST_NAMED).map((id) => quoted(id));
    const more = touched.length > MOST_NAMED ? ` and ${touched.length - MOST_NAMED} more` : '';
    throw new SessionError(
      'changed-since',
      `step ${later.seq} of session ` +
        `${session}${later.undoes === seq ? `, which undoes step ${seq},` : ''} changed the same ` +
        `objects since: ${named.join(', ')}${more}; undo that one first, or use activate, deactivate, ` +
        'pin and unpin',
    );
  }
  return { session, undoes: seq, verbs };
}

import type { SessionId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import { SessionError } from '../../session/errors.js';
import { planPersonStep } from '../../session/plan-step.js';
import { planUndo, type UndoPlan } from '../../session/plan-undo.js';
import type { Verb } from '../../session/verb-outcome.js';
import type { ObjectStore } from '../../store/object-store.js';
import { TIME_LIMITS } from '../time-limits.js';
import { appliedIds, stepFiles, type VerbEntry } from './call-report.js';
import type { ContextSession } from './context-session.js';

/** A verb that a person requested. */
export interface PersonVerb {
  readonly verb: Verb;
  /** Ids, unique prefixes of ids, or paths. */
  readonly references: readonly string[];
}

/** The result of the verb. */
export interface PersonChange {
  readonly entries: readonly VerbEntry[];
  /** The recorded step. Undefined if nothing changed. */
  readonly step: Step | undefined;
}

/** Maximum attempts at an undo if the session continues meanwhile. */
const ATTEMPTS = 5;

/**
 * Changes a session's sets for a person. Records one step with `by: person` that is neither message
 * nor call (decision 0021). Throws like `ContextSession.takeStep`.
 */
export async function changeByPerson(session: ContextSession, { verb, references }: PersonVerb): Promise<PersonChange> {
  const plan = await session.planVerb(verb, references);
  const ids = appliedIds(plan);
  const isChange = plan.entries.some((entry) => entry.ok && entry.changes);
  if (!isChange) return { entries: plan.entries, step: undefined };
  const step = await session.takeStep({
    make: ({ state, at }) => {
      const { observations, refs } = stepFiles({ plan }, state);
      return { step: planPersonStep(state, { verbs: { [verb]: ids }, at, index: refs }), files: observations };
    },
  });
  return { entries: plan.entries, step };
}

/** Thrown if the session continued between the read of its steps and the write of the undo step. */
class WentOn extends Error {}

/**
 * Undoes the set changes of one step, with a new step that has `by: person`. Resolves to the new
 * step.
 * @throws {SessionError} `sequence-gap`, `nothing-to-undo`, `changed-since`; `node-unavailable` –
 *   the database lacks the newest steps; also the errors of `ContextSession.takeStep`
 */
export async function undoStep(session: ContextSession, store: ObjectStore, seq: number): Promise<Step> {
  for (let attempt = 1; ; attempt += 1) {
    if (!(await session.isDelivered(TIME_LIMITS.delivery)))
      throw new SessionError(
        'node-unavailable',
        `steps of session ${session.id} are not in the database yet; palimpsest doctor says why`,
      );
    const steps = await (await store.latest()).steps(session.id);
    const { verbs, undoes } = planUndo(session.id, steps, seq);
    try {
      return await session.takeStep({
        make: ({ state, at }) => {
          if (state.seq !== steps.at(-1)?.seq) throw new WentOn();
          return { step: planPersonStep(state, { verbs, at, undoes }) };
        },
      });
    } catch (error) {
      if (!(error instanceof WentOn) || attempt >= ATTEMPTS) throw error;
    }
  }
}

/** Returns the plan of `undoStep` without executing it. Throws like `undoStep`. */
export async function previewUndo(store: ObjectStore, session: SessionId, seq: number): Promise<UndoPlan> {
  return planUndo(session, await (await store.latest()).steps(session), seq);
}

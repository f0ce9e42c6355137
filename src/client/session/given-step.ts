import type { ObjectId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import type { SessionState } from '../../session/session-state.js';
import type { StepRules } from '../../session/step-policy.js';
import type { FileObservation } from '../decide-file.js';
import type { CallObject } from './call-report.js';

/** The session's position when a step is made for it. */
export interface StepPlace {
  readonly state: SessionState;
  readonly rules: StepRules;
  /** Time of a step made now, in milliseconds since 1970. */
  readonly at: number;
  /** The id of the step's call, if it has one. */
  readonly call?: ObjectId;
}

/** A step with the objects that it writes. */
export interface MadeStep {
  readonly step: Step;
  readonly files?: readonly FileObservation[];
  readonly call?: CallObject & { readonly files: readonly ObjectId[] };
}

/** A step that was planned elsewhere and is made at the session's current position. */
export interface GivenStep {
  /** Set for the step of a call. `given` is the call's id; if undefined, the session makes one. */
  readonly callId?: { readonly given: string | undefined };
  readonly make: (place: StepPlace) => MadeStep;
}

import type { FileObservation } from '../../indexing/decide-file.js';
import type { ObjectId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import type { SessionState } from '../../session/session-state.js';
import type { StepRules } from '../../session/step-policy.js';
import type { CallObject } from './call-report.js';

/** Where a session stands when a step is made for it. */
export interface StepPlace {
  readonly state: SessionState;
  readonly rules: StepRules;
  /** The moment of a step that is made now, milliseconds since 1970. */
  readonly at: number;
  /** The id of the step's call, if it has one. */
  readonly call?: ObjectId;
}

/** A step with what it brings into the database. */
export interface MadeStep {
  readonly step: Step;
  readonly files?: readonly FileObservation[];
  readonly call?: CallObject & { readonly files: readonly ObjectId[] };
}

/** A step that was planned elsewhere, made where the session stands. */
export interface GivenStep {
  /** Present for the step of a call: the id that it has there, undefined for one that the session makes. */
  readonly callId?: { readonly given: string | undefined };
  readonly make: (place: StepPlace) => MadeStep;
}

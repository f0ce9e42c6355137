import type { Json } from '../../objects/canonical-json.js';
import type { ObjectId } from '../../objects/ids.js';
import type { AppliedWrite } from '../delivery/outbox.js';
import type { ReportedMention, ReportedReading } from './reported-files.js';
import type { VerbPlan } from './verb-plan.js';

/** One finished tool call, as it is to be recorded [§5.7]. */
export interface CallReport {
  readonly tool: string;
  readonly args: { readonly [key: string]: Json };
  readonly argsDisplay?: string;
  readonly status: 'ok' | 'fail';
  /** The output as it is stored: whole, without headers or hints of ours (decision B8). */
  readonly content: string;
  /** The harness's own id of the call (decision B2). */
  readonly callId?: string;
  /** When the call began, milliseconds since 1970; a long call is no pause (decision B7). */
  readonly startedAt?: number;
  /** The client's own id of the turn (decision B7). */
  readonly turnRef?: string;
  readonly readings?: readonly ReportedReading[];
  readonly mentions?: readonly ReportedMention[];
  /** What activate, deactivate, pin or unpin decided. */
  readonly plan?: VerbPlan;
  /** What the agent is shown, made once the call's object id is known; its hash is kept with the step (decision E7). */
  readonly answer: (callId: ObjectId) => string;
}

/** A call that is acknowledged. */
export interface RecordedCall {
  readonly callId: ObjectId;
  /** Exactly the text whose hash was kept. */
  readonly answer: string;
  /** What the window collapsed in this step [§4.3]. */
  readonly collapsed: readonly ObjectId[];
  /** What the database made of it [§5.6], once it has it; indexing outcomes are decided then (decision F6). */
  readonly applied: Promise<AppliedWrite>;
}

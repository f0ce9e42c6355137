import type { Json } from '../../objects/canonical-json.js';
import type { Message } from '../../objects/object-type.js';
import type { Step } from '../../objects/step.js';

/** A call with its result from a session directory. */
export interface PlannedCall {
  /** The call's id in the directory, if it has one. */
  readonly id: string | undefined;
  readonly tool: string;
  readonly args: { readonly [key: string]: Json };
  readonly status: 'ok' | 'fail';
  readonly content: string | null;
  /** The index of the planned step whose message made the call; undefined if there is none. */
  readonly by?: number | undefined;
  /**
   * Set if the call represents a file of the directory that has no line. `pin` pins the call's
   * object.
   */
  readonly own?: { readonly pin: boolean };
}

/** A step from a session directory. */
export interface PlannedStep {
  /** The step's lines in `messages.jsonl`, from 1. Empty if it has none. */
  readonly lines: readonly number[];
  readonly message?: Message;
  /** The message's id in the directory. */
  readonly native?: string | undefined;
  readonly call?: PlannedCall;
  /** The step as the exported session had it. `files` are the objects that the call names. */
  readonly exact?: { readonly step: ExactStep; readonly files: readonly string[] };
}

/** A step without its session and text. */
export type ExactStep = Omit<Step, 'session' | 'message'> & { readonly message?: Omit<Message, 'text'> };

import type { Json } from '../../objects/canonical-json.js';
import type { Message } from '../../objects/object-type.js';
import type { Step } from '../../objects/step.js';

/** A call with its result, as a session directory has it. */
export interface PlannedCall {
  /** Its own id; undefined where it has none. */
  readonly id: string | undefined;
  readonly tool: string;
  readonly args: { readonly [key: string]: Json };
  readonly status: 'ok' | 'fail';
  readonly content: string | null;
  /** The planned step of the message that made it, by its place in the plan; undefined where none did. */
  readonly by?: number | undefined;
  /** The call is the import's own, for a file that has no line: the object is pinned where `pin` says so. */
  readonly own?: { readonly pin: boolean };
}

/** A step that a session directory brings. */
export interface PlannedStep {
  /** The lines of `messages.jsonl` that it stands in, from 1; none for what has no line. */
  readonly lines: readonly number[];
  readonly message?: Message;
  /** The message's own id. */
  readonly native?: string | undefined;
  readonly call?: PlannedCall;
  /** As the session had it that the directory was exported from; `files` are the objects that the call names. */
  readonly exact?: { readonly step: ExactStep; readonly files: readonly string[] };
}

/** A step without its session and its text. */
export type ExactStep = Omit<Step, 'session' | 'message'> & { readonly message?: Omit<Message, 'text'> };

import type { CallReport, RecordedCall } from '../client/session/call-report.js';
import type { ContextClient } from '../client/session/context-client.js';
import type { ContextSession } from '../client/session/context-session.js';
import type { Json } from '../objects/canonical-json.js';
import { CodedError } from '../values/coded-error.js';
import { firstUnits } from '../values/surrogate-pairs.js';

/**
 * The JSON Schema (2020-12) of a tool's arguments. It only has keywords that every client passes
 * on: no `$ref`, `anyOf` or `const`.
 */
export interface InputSchema {
  readonly type: 'object';
  readonly properties: { readonly [name: string]: object };
  readonly required?: readonly string[];
}

/** How a tool affects the world. Clients decide by this whether a call needs approval. */
export interface ToolAnnotations {
  readonly readOnlyHint: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint: boolean;
}

/** The sandbox of the agent's own program, as the program reports it with a call. */
export interface AgentSandbox {
  /** The program's name, as its user knows it. */
  readonly program: string;
  /** The program's name for its limits, such as `read-only`. */
  readonly mode: string;
  /** The program's workspace folders, in addition to the server's working folder. */
  readonly workspaces: readonly string[];
}

/** The part of a session that tools use. Another process may do the recording. */
export type ToolSession = Pick<
  ContextSession,
  'id' | 'state' | 'seen' | 'resolve' | 'planVerb' | 'load' | 'metadata' | 'pool' | 'assemble'
> & {
  recordCall(report: CallReport): Promise<Omit<RecordedCall, 'applied'>>;
};

/** The environment of a call. */
export interface ToolContext {
  readonly client: ContextClient;
  readonly session: ToolSession;
  /** Aborts when the caller stops waiting. */
  readonly signal: AbortSignal;
  /** The id of the call in the harness, if it gives one (decision B2). */
  readonly callId?: string;
  /** The id of the turn in the client, if it sends one (decision B7). */
  readonly turnRef?: string;
  /** The sandbox of the agent's program, if the program reports it. */
  readonly sandbox?: AgentSandbox;
}

/**
 * The answer to a call: a text for the agent within the limits and never empty, and data for
 * programs.
 */
export interface ToolAnswer {
  readonly text: string;
  readonly isError: boolean;
  readonly meta: { readonly [key: string]: Json };
  /** The error code. Missing for a success, and for failures without a code. */
  readonly failure?: string;
  /** Why the call could not be recorded. Such an answer is an error. */
  readonly unrecorded?: unknown;
}

/** A tool that an agent can call [§3.3], independent of any protocol. */
export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: InputSchema;
  readonly annotations: ToolAnnotations;
  /**
   * Runs the tool and records the call as an object of the session [§5.7], even if it failed. Never
   * throws for errors in arguments, files or the database, but returns an answer with `isError`.
   */
  run(args: unknown, call: ToolContext): Promise<ToolAnswer>;
}

/** Error codes of failed calls. Callers may decide by them. */
type ToolErrorCode =
  | 'invalid-arguments'
  | 'unknown-object'
  | 'not-found'
  | 'not-text'
  | 'too-large'
  | 'out-of-range'
  | 'no-match'
  | 'changed-since'
  | 'ambiguous'
  | 'nothing-done'
  | 'masked'
  | 'sandboxed';

/** Facts about files that a failed call found out. They are recorded with the call. */
type Learned = Pick<CallReport, 'readings' | 'mentions'>;

/**
 * Thrown by a tool that cannot do what was requested. `message` says what failed, with the value as
 * given. `next` says what to do. Both are words for the model. A `cause` that is a SourceError
 * supplies words for both.
 */
export class ToolError extends CodedError<ToolErrorCode> {
  override readonly name = 'ToolError';
  readonly next: string | undefined;
  readonly learned: Learned;

  constructor(
    code: ToolErrorCode,
    message: string,
    {
      next,
      learned = {},
      cause,
    }: { readonly next?: string | undefined; readonly learned?: Learned; readonly cause?: unknown } = {},
  ) {
    super(code, message, { cause });
    this.next = next;
    this.learned = learned;
  }
}

const LONGEST_ERROR = 1_900;

/** Formats the answer of a failed call. It begins with "Error: " and has less than 2 kB. */
export function failureText(message: string, next?: string): string {
  const text = `Error: ${message}${next === undefined ? '' : `\n${next}`}`;
  if (Buffer.byteLength(text) <= LONGEST_ERROR) return text;
  let cut = text.slice(0, LONGEST_ERROR);
  while (Buffer.byteLength(cut) > LONGEST_ERROR - 4) cut = cut.slice(0, Math.floor(cut.length * 0.9));
  return `${firstUnits(text, cut.length)}...`;
}

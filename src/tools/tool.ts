import type { CallReport, RecordedCall } from '../client/session/call-report.js';
import type { ContextClient } from '../client/session/context-client.js';
import type { ContextSession } from '../client/session/context-session.js';
import type { Json } from '../objects/canonical-json.js';
import { CodedError } from '../values/coded-error.js';
import { firstUnits } from '../values/surrogate-pairs.js';

/**
 * A JSON Schema (2020-12) of a tool's arguments, limited to keywords that every client passes on:
 * no `$ref`, `anyOf` or `const`.
 */
export interface InputSchema {
  readonly type: 'object';
  readonly properties: { readonly [name: string]: object };
  readonly required?: readonly string[];
}

/** A tool's effects on the world, for clients that decide by them whether a call needs approval. */
export interface ToolAnnotations {
  readonly readOnlyHint: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint: boolean;
}

/**
 * The limits that an agent's own program sets for the agent, as the program reports them with a
 * call.
 */
export interface AgentSandbox {
  /** The program's name, as its user knows it. */
  readonly program: string;
  /** The program's own name for its limits, such as `read-only`. */
  readonly mode: string;
  /** The program's workspace folders, besides the server's working folder. */
  readonly workspaces: readonly string[];
}

/** The parts of a session that tools use. Another process may record its calls. */
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
  /** Aborts once the caller no longer waits. */
  readonly signal: AbortSignal;
  /** The harness's id of the call, if it gives one (decision B2). */
  readonly callId?: string;
  /** The client's own id of the turn, if it sends one (decision B7). */
  readonly turnRef?: string;
  /** The limits of the agent's own program, if it reports them. */
  readonly sandbox?: AgentSandbox;
}

/**
 * The answer for an agent: one text within the output limits, never empty, and data for programs.
 */
export interface ToolAnswer {
  readonly text: string;
  readonly isError: boolean;
  readonly meta: { readonly [key: string]: Json };
  /** Error code; absent for a success, or for a failure without a code. */
  readonly failure?: string;
  /** The reason why the call could not be recorded. Such an answer is an error. */
  readonly unrecorded?: unknown;
}

/** A tool that an agent can call [§3.3], independent of any protocol. */
export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: InputSchema;
  readonly annotations: ToolAnnotations;
  /**
   * Runs the tool and records the call as an object of the session [§5.7], including failed calls.
   * Never throws for errors in arguments, files or the database; those return an answer with
   * `isError`.
   */
  run(args: unknown, call: ToolContext): Promise<ToolAnswer>;
}

/** Error codes of failed calls, for callers that branch on them. */
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

/** Facts about files that a failed call still found. They are recorded with the call. */
type Learned = Pick<CallReport, 'readings' | 'mentions'>;

/**
 * Thrown by a tool that cannot do the request, in words for the model. `message` names the failure
 * with the value as given; `next` names the next action or call. A `cause` that is a SourceError
 * has its own words for both.
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

/** Formats the answer of a failed call. It begins with "Error: " and stays under 2 kB. */
export function failureText(message: string, next?: string): string {
  const text = `Error: ${message}${next === undefined ? '' : `\n${next}`}`;
  if (Buffer.byteLength(text) <= LONGEST_ERROR) return text;
  let cut = text.slice(0, LONGEST_ERROR);
  while (Buffer.byteLength(cut) > LONGEST_ERROR - 4) cut = cut.slice(0, Math.floor(cut.length * 0.9));
  return `${firstUnits(text, cut.length)}...`;
}

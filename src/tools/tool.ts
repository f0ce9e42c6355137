import type { CallReport } from '../client/session/call-report.js';
import type { ContextClient } from '../client/session/context-client.js';
import type { ContextSession } from '../client/session/context-session.js';
import type { Json } from '../objects/canonical-json.js';
import { CodedError } from '../values/coded-error.js';
import { firstUnits } from '../values/surrogate-pairs.js';

/** A JSON Schema (2020-12) of a tool's arguments, in the words that every client passes on: no `$ref`, `anyOf` or `const`. */
export interface InputSchema {
  readonly type: 'object';
  readonly properties: { readonly [name: string]: object };
  readonly required?: readonly string[];
}

/** What a tool does to the world, for clients that decide by it whether a call needs approval. */
export interface ToolAnnotations {
  readonly readOnlyHint: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint: boolean;
}

/**
 * The limits that an agent's own program sets for what the agent does, as that program reports them
 * with a call.
 */
export interface AgentSandbox {
  /** The program, as its user knows it. */
  readonly program: string;
  /** The program's own word for its limits, such as `read-only`. */
  readonly mode: string;
  /** Folders that the program works in, besides the working folder of the server. */
  readonly workspaces: readonly string[];
}

/** What a call is made in. */
export interface ToolContext {
  readonly client: ContextClient;
  readonly session: ContextSession;
  /** Aborted when the caller no longer waits. */
  readonly signal: AbortSignal;
  /** The harness's id of the call, where it gives one (decision B2). */
  readonly callId?: string;
  /** The client's own id of the turn, where it sends one (decision B7). */
  readonly turnRef?: string;
  /** The limits of the agent's own program, where it reports them. */
  readonly sandbox?: AgentSandbox;
}

/** What the agent gets: one text within the output limits, never empty, and data about it for programs. */
export interface ToolAnswer {
  readonly text: string;
  readonly isError: boolean;
  readonly meta: { readonly [key: string]: Json };
  /** Why it failed, as a code; absent where it did not, or where no code says so. */
  readonly failure?: string;
  /** Why the call could not be recorded; such an answer is an error. */
  readonly unrecorded?: unknown;
}

/** A tool that an agent can call [§3.3]; knows no protocol. */
export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: InputSchema;
  readonly annotations: ToolAnnotations;
  /**
   * Runs the tool and records the call as an object of the session [§5.7], failed calls too.
   * Never throws for anything that the arguments, the files or the database cause: that is an answer with `isError`.
   */
  run(args: unknown, call: ToolContext): Promise<ToolAnswer>;
}

/** Why a call failed, for callers that branch on it. */
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
  | 'sandboxed';

/** What a failed call nevertheless learned about files; it is recorded with the call. */
type Learned = Pick<CallReport, 'readings' | 'mentions'>;

/**
 * Thrown by a tool that cannot do what was asked; written for the model that reads it.
 * `message` says what failed, with the value as it was given; `next` is what to do or call instead. A `cause` that is a SourceError says both in its own words.
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

/** The answer of a failed call: begins with "Error: ", stays under 2 kB. */
export function failureText(message: string, next?: string): string {
  const text = `Error: ${message}${next === undefined ? '' : `\n${next}`}`;
  if (Buffer.byteLength(text) <= LONGEST_ERROR) return text;
  let cut = text.slice(0, LONGEST_ERROR);
  while (Buffer.byteLength(cut) > LONGEST_ERROR - 4) cut = cut.slice(0, Math.floor(cut.length * 0.9));
  return `${firstUnits(text, cut.length)}...`;
}

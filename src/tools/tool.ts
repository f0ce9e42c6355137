import type { ContextClient } from '../client/session/context-client.js';
import type { ContextSession } from '../client/session/context-session.js';
import type { Json } from '../objects/canonical-json.js';
import type { InputSchema } from './input-schema.js';

/** What a tool does to the world, for clients that decide by it whether a call needs approval. */
export interface ToolAnnotations {
  readonly readOnlyHint: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint: boolean;
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
}

/** What the agent gets: one text within the output limits, never empty, and data about it for programs. */
export interface ToolAnswer {
  readonly text: string;
  readonly isError: boolean;
  readonly meta: { readonly [key: string]: Json };
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

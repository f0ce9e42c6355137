/**
 * Everything that may be said of work to whoever watches, by the names of OpenTelemetry's conventions where there is one. The list is closed: a value is a
 * name out of a fixed set, a code, an id or a number. Texts of agents, users and files, arguments, paths, addresses and tokens have no name here, and no
 * setting adds one.
 */
export interface Facts {
  readonly 'mcp.method.name'?: 'tools/call';
  /** `execute_tool` of a tool call, `chat` of a model call that a harness reported. */
  readonly 'gen_ai.operation.name'?: 'execute_tool' | 'chat';
  /** A tool that this program offers. */
  readonly 'gen_ai.tool.name'?: string;
  /** The id of the call's object. */
  readonly 'gen_ai.tool.call.id'?: string;
  /** The session. */
  readonly 'gen_ai.conversation.id'?: string;
  readonly 'gen_ai.token.type'?: 'input' | 'output';
  readonly 'gen_ai.usage.input_tokens'?: number;
  readonly 'gen_ai.usage.output_tokens'?: number;
  readonly 'gen_ai.usage.cache_read.input_tokens'?: number;
  readonly 'gen_ai.usage.cache_creation.input_tokens'?: number;
  readonly 'http.request.method'?: string;
  /** The path of an operation with its parameters unfilled. */
  readonly 'http.route'?: string;
  readonly 'http.response.status_code'?: number;
  readonly 'db.system.name'?: 'xtdb';
  /** The endpoint of the node's wire. */
  readonly 'db.operation.name'?: string;
  /** Why it failed, as a code; absent where it did not. */
  readonly 'error.type'?: string;
  /** What is brought to the database. */
  readonly 'palimpsest.write'?: 'step' | 'context' | 'heads' | 'files';
  readonly 'palimpsest.step'?: number;
  readonly 'palimpsest.transaction.id'?: number;
  /** Writes that one transaction holds. */
  readonly 'palimpsest.transaction.writes'?: number;
  readonly 'palimpsest.context.characters'?: number;
  /** Whether a context was made from what this process knows, without the database. */
  readonly 'palimpsest.context.local'?: boolean;
  readonly 'palimpsest.node.profile'?: string;
}

/** The name of a fact. */
export type FactName = keyof Facts;

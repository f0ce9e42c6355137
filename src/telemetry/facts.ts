/**
 * All attributes that telemetry may report, named by OpenTelemetry's conventions where possible.
 * Every value is a name from a fixed set, a code, an id or a number. Texts of agents, users and
 * files, arguments, paths, addresses and access tokens are never reported, and no setting enables
 * them.
 */
export interface Facts {
  readonly 'mcp.method.name'?: 'tools/call';
  /** `execute_tool` for a tool call, `chat` for a model call that a harness reported. */
  readonly 'gen_ai.operation.name'?: 'execute_tool' | 'chat';
  /** The name of one of this program's tools. */
  readonly 'gen_ai.tool.name'?: string;
  /** The object id of the call. */
  readonly 'gen_ai.tool.call.id'?: string;
  /** The session's id. */
  readonly 'gen_ai.conversation.id'?: string;
  readonly 'gen_ai.token.type'?: 'input' | 'output';
  readonly 'gen_ai.usage.input_tokens'?: number;
  readonly 'gen_ai.usage.output_tokens'?: number;
  readonly 'gen_ai.usage.cache_read.input_tokens'?: number;
  readonly 'gen_ai.usage.cache_creation.input_tokens'?: number;
  readonly 'http.request.method'?: string;
  /** The route of an operation, with placeholders for its parameters. */
  readonly 'http.route'?: string;
  readonly 'http.response.status_code'?: number;
  readonly 'db.system.name'?: 'xtdb';
  /** The endpoint of the node's HTTP interface. */
  readonly 'db.operation.name'?: string;
  /** The error's code. Absent on success. */
  readonly 'error.type'?: string;
  /** The kind of the write that is delivered to the database. */
  readonly 'palimpsest.write'?: 'step' | 'context' | 'heads' | 'files';
  readonly 'palimpsest.step'?: number;
  readonly 'palimpsest.transaction.id'?: number;
  /** Number of writes in a transaction. */
  readonly 'palimpsest.transaction.writes'?: number;
  readonly 'palimpsest.context.characters'?: number;
  /** Whether the context was assembled without reading the database. */
  readonly 'palimpsest.context.local'?: boolean;
  readonly 'palimpsest.node.profile'?: string;
}

export type FactName = keyof Facts;

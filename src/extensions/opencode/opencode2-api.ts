/** The parts of OpenCode's plugin interface (version 2.1) that this plugin uses. */

/** A result of a tool as the model's request has it. */
export interface Opencode2Result {
  readonly type: string;
  readonly value: unknown;
}

/**
 * A part of a message: text, a call, a result, or a part that this plugin does not read, such as
 * reasoning.
 */
export interface Opencode2Part {
  readonly type: string;
  readonly text?: string;
  /** The id of the call, for a call or a result. */
  readonly id?: string;
  readonly name?: string;
  readonly input?: unknown;
  readonly result?: Opencode2Result;
  /** Whether the provider itself runs the call. */
  readonly providerExecuted?: boolean;
  readonly providerMetadata?: Readonly<Record<string, unknown>>;
  /** Present for images and other media. */
  readonly mediaType?: unknown;
  readonly data?: unknown;
  readonly filename?: unknown;
  readonly [key: string]: unknown;
}

/** A message of a model's request. Messages with results have no id. */
export interface Opencode2Message {
  readonly id?: string;
  readonly role: string;
  readonly content: readonly Opencode2Part[];
  readonly [key: string]: unknown;
}

/** Identifies a model. */
export interface Opencode2Model {
  readonly id: string;
  readonly providerID: string;
}

/** A model's request before it is sent. Changes to it are sent, but do not enter the history. */
export interface RequestDraft {
  readonly sessionID: string;
  readonly model?: Opencode2Model;
  /** Why the request is made. Some versions call the hook `context` for every kind of request. */
  readonly kind?: string;
  readonly system: { readonly type: 'text'; readonly text: string }[];
  readonly messages: Opencode2Message[];
}

/** A call of a tool, before or after it runs. */
export interface ToolCallEvent {
  readonly tool: string;
  readonly sessionID: string;
  readonly id: string;
  readonly input: unknown;
}

/** A question whether an action is allowed. A denied action fails with `message`. */
export interface PermissionEvent {
  readonly sessionID: string;
  readonly source?: { readonly type: string; readonly id?: string };
  effect: 'allow' | 'ask' | 'deny';
  message?: string;
}

/** A tool of a plugin. */
export interface Opencode2Tool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema. */
  readonly input: object;
  /** Without code mode, the model calls the tool directly. */
  readonly options: { readonly codemode: false };
  readonly execute: (
    input: { readonly ids: readonly string[] },
    call: { readonly sessionID: string; readonly id: string },
  ) => Promise<{ readonly content: string }>;
}

/** A command that runs a function instead of a prompt. */
export interface Opencode2Command {
  readonly name: string;
  readonly description: string;
  readonly execute: (call: {
    readonly sessionID: string;
    readonly prompt: { readonly text?: string };
  }) => Promise<void>;
}

/** An entry of a stored session, by its type. */
export interface StoredMessage {
  readonly id: string;
  readonly type: string;
  /** Present for an answer of the model. */
  readonly content?: readonly StoredPart[];
}

/** A part of a stored answer: text, or a call with its state. */
export interface StoredPart {
  readonly type: string;
  readonly text?: string;
  readonly id?: string;
  readonly name?: string;
  readonly executed?: boolean;
  readonly state?: {
    readonly status: string;
    readonly input?: unknown;
    readonly content?: readonly unknown[];
    readonly error?: unknown;
  };
}

/** Token counts of a model call, not yet validated. */
export interface Opencode2Tokens {
  readonly input?: unknown;
  readonly output?: unknown;
  readonly cache?: { readonly read?: unknown; readonly write?: unknown };
}

/** An event of OpenCode's server. The server also has sessions of other folders. */
export interface Opencode2Event {
  readonly type: string;
  readonly data?: {
    readonly sessionID?: string;
    readonly assistantMessageID?: string;
    readonly tokens?: Opencode2Tokens;
  };
}

interface ListedModel extends Opencode2Model {
  readonly limit?: { readonly context?: number };
}

/** A list of models. Before version 2.1, it is part of the catalog. */
export interface ModelList {
  list(): Promise<readonly ListedModel[] | { readonly data?: readonly ListedModel[] }>;
}

type Hook<Events> = <Name extends keyof Events>(
  name: Name,
  callback: (event: Events[Name]) => Promise<void> | void,
) => Promise<unknown>;
type Transform<Item> = (callback: (editor: { add(item: Item): void }) => void) => Promise<unknown>;

/** OpenCode's input for a plugin. An error in a hook would end the model's turn. */
export interface Opencode2Context {
  readonly location?: { readonly directory: string };
  readonly model?: ModelList;
  readonly catalog?: { readonly model: ModelList };
  readonly session: {
    readonly hook: Hook<{
      readonly context: RequestDraft;
      readonly compaction: RequestDraft;
      readonly generate: RequestDraft;
    }>;
    context(query: {
      readonly sessionID: string;
    }): Promise<readonly StoredMessage[] | { readonly data?: readonly StoredMessage[] }>;
  };
  readonly tool: {
    readonly transform: Transform<Opencode2Tool>;
    readonly hook: Hook<{ readonly 'execute.before': ToolCallEvent; readonly 'execute.after': ToolCallEvent }>;
  };
  readonly permission?: { readonly hook: Hook<{ readonly evaluate: PermissionEvent }> };
  readonly command: { readonly transform: Transform<Opencode2Command> };
  readonly event: { subscribe(options: { readonly signal: AbortSignal }): AsyncIterable<Opencode2Event> };
}

/** Stops a plugin when OpenCode unloads it. */
export type Cleanup = () => Promise<void>;

import type { KnownUsage } from '../reported-usage.js';

/** The parts of pi's extension interface (version 0.87) that this extension uses. */

/** A block of a message's content. */
export type PiBlock = Readonly<Record<string, unknown>> & { readonly type: string };

/** The fields of pi's messages that this extension reads. */
export interface PiMessage {
  readonly role: string;
  readonly content?: string | readonly PiBlock[];
  readonly timestamp?: number;
  readonly toolCallId?: string;
  readonly toolName?: string;
  readonly isError?: boolean;
  /** Present for messages of the model. */
  readonly usage?: KnownUsage;
  /** Reports of unusual events in the call, for messages of the model. */
  readonly diagnostics?: readonly { readonly type: string; readonly details?: Readonly<Record<string, unknown>> }[];
  readonly [key: string]: unknown;
}

/** The context argument that pi passes to event handlers. */
export interface PiContext {
  readonly cwd: string;
  readonly hasUI: boolean;
  /** The model of the next call. */
  readonly model?: { readonly id?: string; readonly contextWindow?: number };
  readonly ui: {
    setStatus(key: string, text: string | undefined): void;
    notify(text: string, kind?: 'info' | 'warning' | 'error'): void;
  };
  readonly sessionManager: {
    getSessionId(): string;
    getHeader(): { readonly parentSession?: string } | null;
  };
}

interface Events {
  readonly session_start: { readonly event: object; readonly answer: undefined };
  readonly session_shutdown: { readonly event: object; readonly answer: undefined };
  readonly before_agent_start: {
    readonly event: { readonly systemPrompt: string };
    readonly answer: { readonly systemPrompt: string };
  };
  readonly context: {
    readonly event: { readonly messages: readonly PiMessage[] };
    readonly answer: { readonly messages: readonly PiMessage[] };
  };
  readonly tool_call: {
    readonly event: { readonly toolName: string; readonly input: Readonly<Record<string, unknown>> };
    readonly answer: { readonly block: true; readonly reason: string };
  };
  readonly message_end: { readonly event: { readonly message: PiMessage }; readonly answer: undefined };
}

/** The result of a tool. */
export interface PiToolAnswer {
  readonly content: readonly { readonly type: 'text'; readonly text: string }[];
  readonly details: object;
}

/** The interface that pi passes to an extension. */
export interface PiExtensionApi {
  on<E extends keyof Events>(
    event: E,
    handler: (
      event: Events[E]['event'],
      context: PiContext,
    ) => Promise<Events[E]['answer'] | undefined> | Events[E]['answer'] | undefined,
  ): unknown;
  registerTool(tool: {
    readonly name: string;
    readonly label: string;
    readonly description: string;
    readonly parameters: object;
    execute(callId: string, params: { readonly ids: readonly string[] }): Promise<PiToolAnswer>;
  }): void;
  registerCommand(
    name: string,
    command: { readonly description: string; handler(args: string, context: PiContext): Promise<void> },
  ): void;
}

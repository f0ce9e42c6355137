import type { z } from 'zod';

/** The parts of OpenCode's plugin interface (version 1.18) that this plugin uses. */

/** A part of a message: text, a tool call, or a part that this plugin does not read. */
export interface OpencodePart {
  readonly id: string;
  readonly sessionID: string;
  readonly messageID: string;
  readonly type: string;
  readonly text?: string;
  readonly synthetic?: boolean;
  readonly ignored?: boolean;
  /** Present for files. */
  readonly mime?: unknown;
  readonly url?: unknown;
  readonly filename?: unknown;
  readonly tool?: string;
  readonly callID?: string;
  readonly state?: OpencodeToolState;
  readonly [key: string]: unknown;
}

/** The state and the result of a tool call. */
export interface OpencodeToolState {
  readonly status: 'pending' | 'running' | 'completed' | 'error';
  readonly input?: unknown;
  readonly output?: string;
  readonly error?: string;
  readonly attachments?: readonly unknown[];
  readonly [key: string]: unknown;
}

/** The author and the session of a message. */
export interface OpencodeInfo {
  readonly id: string;
  readonly sessionID: string;
  readonly role: 'user' | 'assistant';
  /** Token counts of the model call, for a message of the model. */
  readonly tokens?: {
    readonly input?: number;
    readonly output?: number;
    readonly cache?: { readonly read?: number; readonly write?: number };
  };
  readonly [key: string]: unknown;
}

/** A message of OpenCode's list. */
export interface OpencodeMessage {
  readonly info: OpencodeInfo;
  readonly parts: readonly OpencodePart[];
}

/** The model of a call. */
export interface OpencodeModel {
  readonly id?: string;
  readonly limit?: { readonly context?: number };
}

/** OpenCode's input when it loads a plugin. */
export interface OpencodeInput {
  readonly directory: string;
  readonly worktree: string;
  readonly client: {
    readonly tui: {
      showToast(toast: {
        readonly body: { readonly message: string; readonly variant: 'warning' | 'info' };
      }): Promise<unknown>;
    };
    readonly session: {
      messages(query: {
        readonly path: { readonly id: string };
      }): Promise<{ readonly data?: readonly OpencodeMessage[] }>;
    };
  };
}

interface ToolCall {
  readonly sessionID: string;
  readonly messageID: string;
  readonly callID?: string;
}

/** A tool of a plugin. */
export interface OpencodeTool {
  readonly description: string;
  readonly args: Readonly<Record<string, z.ZodType>>;
  execute(args: { readonly ids: readonly string[] }, call: ToolCall): Promise<string>;
}

/** The hooks of a plugin. */
export interface OpencodeHooks {
  readonly dispose: () => Promise<void>;
  readonly config: (config: {
    command?: Record<string, { readonly template: string; readonly description: string }>;
  }) => Promise<void>;
  readonly event: (input: {
    readonly event: { readonly type: string; readonly properties: Readonly<Record<string, unknown>> };
  }) => Promise<void>;
  readonly tool: Readonly<Record<string, OpencodeTool>>;
  readonly 'tool.execute.before': (
    input: { readonly tool: string; readonly sessionID: string; readonly callID: string },
    output: { readonly args: Readonly<Record<string, unknown>> },
  ) => Promise<void>;
  readonly 'command.execute.before': (input: {
    readonly command: string;
    readonly sessionID: string;
    readonly arguments: string;
  }) => Promise<void>;
  readonly 'experimental.session.compacting': (input: { readonly sessionID: string }) => Promise<void>;
  readonly 'experimental.chat.messages.transform': (
    input: object,
    output: { readonly messages: OpencodeMessage[] },
  ) => Promise<void>;
  readonly 'experimental.chat.system.transform': (
    input: { readonly sessionID?: string; readonly model?: OpencodeModel },
    output: { readonly system: string[] },
  ) => Promise<void>;
}

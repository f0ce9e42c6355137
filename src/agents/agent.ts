import type { Environment } from '../host/environment.js';
import type { Change } from './edits/change.js';
import type { SettingsFormat } from './edits/edit.js';
import type { HookAgent } from './hooks/hook-folder.js';

/** The user's machine as a setup sees it. */
export interface Surroundings {
  readonly env: Environment;
  readonly home: string;
  readonly platform: NodeJS.Platform;
  /** The project folder. */
  readonly cwd: string;
}

/** Settings of the user for all projects, or of one project. */
export type Scope = 'user' | 'project';

/** The MCP server as settings name it. */
export interface ServerCommand {
  readonly command: string;
  readonly args: readonly string[];
}

/** A setup that a user asked for. */
export interface Wanted {
  readonly at: Surroundings;
  readonly scope: Scope;
  /**
   * Returns the server's command. `roots` are folders beyond the one that the agent starts it in,
   * such as a variable that the agent replaces.
   */
  server(roots?: readonly string[]): ServerCommand;
  /** The data folder, which hooks name. */
  readonly dataDir: string;
  /** Whether the user named the data folder in this command. */
  readonly isDataNamed: boolean;
  /** The folder of this installed program. */
  readonly packageFolder: string;
}

/** Changes of one settings file. */
export interface FileEdit {
  /** Places where the agent looks. The first existing one is changed; if none exists, the first. */
  readonly paths: readonly [string, ...(readonly string[])];
  readonly format: SettingsFormat;
  readonly changes: readonly Change[];
}

/** A reason why an agent cannot be set up so, with the remedy. */
export interface Refusal {
  readonly refused: string;
}

/** One way of Palimpsest into an agent. */
export interface Way {
  /** Whether we record the calls of our tools, those of its own, and build its requests. */
  readonly gives: { readonly ourTools: boolean; readonly itsTools: boolean; readonly steers: boolean };
  /** A condition that the user has to know. */
  readonly note?: string;
  /** The agent's name in its hooks, for a way by hooks. */
  readonly hookAgent?: HookAgent;
  readonly edits: (wanted: Wanted) => readonly FileEdit[] | Refusal;
}

/** Names of ways: as an MCP server, in the agent's loop, or by the agent's hooks. */
export type WayName = 'mcp' | 'loop' | 'hooks';

/**
 * An agent's answer about our server: it connected, only lists it, waits for the user's consent,
 * failed to connect, or does not know it.
 */
export type Reach = 'connected' | 'listed' | 'waits' | 'failed' | 'absent';

/** An agent's own check of its MCP servers. */
export interface Check {
  readonly args: readonly string[];
  /** Reads the check's output, which has no colours. */
  readonly read: (output: string) => Reach;
}

/** A program that works with a model, and how Palimpsest gets into it. */
export interface Agent {
  readonly id: string;
  readonly title: string;
  /** Names of its program on the PATH. */
  readonly programs: readonly string[];
  /** Files or folders that its installation leaves, for one without a program on the PATH. */
  readonly traces: (at: Surroundings) => readonly string[];
  /** Whether a desktop starts it, which knows nothing of a shell's PATH. */
  readonly isGraphical: boolean;
  /** The default way comes first. Hooks go with it where an agent has them. */
  readonly ways: Readonly<Partial<Record<WayName, Way>>>;
  readonly check?: Check;
}

/** The name of our server in settings. Agents put it before each tool's name, so it is short. */
export const SERVER_NAME = 'ctx';

/** Way of hooks: with `palimpsest watch` it sees everything that the agent does. */
export const HOOK_GIVES = { ourTools: false, itsTools: true, steers: false } as const;

/** Our tools that change files or run commands. Settings make the agent ask before each. */
export const CHANGING_TOOLS = ['write', 'edit', 'bash'] as const;

/** Way of an MCP server: it sees its own tools' calls only. */
export const SERVER_GIVES = { ourTools: true, itsTools: false, steers: false } as const;

/** Way of an extension in the loop: it sees and builds everything. */
export const LOOP_GIVES = { ourTools: true, itsTools: true, steers: true } as const;

/** Reads the line of our server in the output of `mcp list`. */
export function readListed(output: string, words: Readonly<Record<Exclude<Reach, 'absent'>, RegExp>>): Reach {
  const line = output.split('\n').find((one) => new RegExp(`(?:^|\\s)${SERVER_NAME}(?::|\\s|$)`).test(one));
  if (line === undefined) return 'absent';
  const states = ['failed', 'waits', 'connected', 'listed'] as const;
  return states.find((state) => words[state].test(line)) ?? 'failed';
}

/** The variable by which editors name the open project. */
export const WORKSPACE = `\${workspaceFolder}`;

/** A problem of an agent that is set up, by its name in docs/runbook.md, and its details. */
export type AgentFinding = readonly [code: AgentFindingCode, detail?: string];

/** The problems of agents. */
export type AgentFindingCode =
  | 'agent-unreachable'
  | 'agent-waits'
  | 'agent-settings'
  | 'agent-hook-unreached'
  | 'agent-hook-silent';

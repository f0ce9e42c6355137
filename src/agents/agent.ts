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

/** The command that starts our MCP server, as settings contain it. */
export interface ServerCommand {
  readonly command: string;
  readonly args: readonly string[];
}

/** The content of a setup that a user asked for. */
export interface Wanted {
  readonly at: Surroundings;
  readonly scope: Scope;
  /**
   * Returns the server's command. `roots` are additional folders whose files the server may read. A
   * root may be a variable that the agent replaces. The server may always read the folder in which
   * the agent starts it.
   */
  server(roots?: readonly string[]): ServerCommand;
  /** The data folder, which the commands of hooks contain. */
  readonly dataDir: string;
  /** Whether the user named the data folder in this command. */
  readonly isDataNamed: boolean;
  /** The folder of this installed program. */
  readonly packageFolder: string;
}

/** Changes to one settings file. */
export interface FileEdit {
  /**
   * Paths at which the agent looks for the file. The first existing file is changed. If none
   * exists, the first is created.
   */
  readonly paths: readonly [string, ...(readonly string[])];
  readonly format: SettingsFormat;
  readonly changes: readonly Change[];
}

/** Why an agent cannot be set up in this way, and what to do about it. */
export interface Refusal {
  readonly refused: string;
}

/** A way in: how Palimpsest gets into an agent's sessions. */
export interface Way {
  /**
   * Whether the way records the calls of our tools, records the calls of the agent's tools, and
   * builds the agent's requests.
   */
  readonly gives: { readonly ourTools: boolean; readonly itsTools: boolean; readonly steers: boolean };
  /** A condition for this way that the user must know. */
  readonly note?: string;
  /** The agent's name in its hooks. Present if this way uses hooks. */
  readonly hookAgent?: HookAgent;
  readonly edits: (wanted: Wanted) => readonly FileEdit[] | Refusal;
}

/** The ways in: as an MCP server, in the agent's loop, or by the agent's hooks. */
export type WayName = 'mcp' | 'loop' | 'hooks';

/**
 * The state of our server in an agent's own check: it connected, is only listed, waits for the
 * user's consent, failed, or is unknown.
 */
export type Reach = 'connected' | 'listed' | 'waits' | 'failed' | 'absent';

/** A command by which an agent checks its MCP servers. */
export interface Check {
  readonly args: readonly string[];
  /** Parses the output of the command, without colours. */
  readonly read: (output: string) => Reach;
}

/** A program that works with a model, and the ways of Palimpsest into it. */
export interface Agent {
  readonly id: string;
  readonly title: string;
  /** Names of the agent's program on the PATH. */
  readonly programs: readonly string[];
  /** Files or folders that show that the agent is installed, if its program is not on the PATH. */
  readonly traces: (at: Surroundings) => readonly string[];
  /** Whether a desktop starts the agent. It then lacks the PATH of the user's shell. */
  readonly isGraphical: boolean;
  /** The default way comes first. A setup also adds hooks if the agent has them. */
  readonly ways: Readonly<Partial<Record<WayName, Way>>>;
  readonly check?: Check;
}

/** The name of our server in settings. It is short: agents put it before each tool's name. */
export const SERVER_NAME = 'ctx';

/** Hooks with `palimpsest watch` record everything that the agent does. */
export const HOOK_GIVES = { ourTools: false, itsTools: true, steers: false } as const;

/** Our tools that change files or run commands. Settings make the agent ask before each use. */
export const CHANGING_TOOLS = ['write', 'edit', 'bash'] as const;

/** An MCP server records only the calls of its own tools. */
export const SERVER_GIVES = { ourTools: true, itsTools: false, steers: false } as const;

/** An extension in the loop records everything and builds the requests. */
export const LOOP_GIVES = { ourTools: true, itsTools: true, steers: true } as const;

/** Finds our server in the output of `mcp list`, and returns its state. */
export function readListed(output: string, words: Readonly<Record<Exclude<Reach, 'absent'>, RegExp>>): Reach {
  const line = output.split('\n').find((one) => new RegExp(`(?:^|\\s)${SERVER_NAME}(?::|\\s|$)`).test(one));
  if (line === undefined) return 'absent';
  const states = ['failed', 'waits', 'connected', 'listed'] as const;
  return states.find((state) => words[state].test(line)) ?? 'failed';
}

/** The variable that editors replace by the folder of the open project. */
export const WORKSPACE = `\${workspaceFolder}`;

/** A problem of an agent that is set up: its code in docs/runbook.md, and details. */
export type AgentFinding = readonly [code: AgentFindingCode, detail?: string];

/** The problems of agents. */
export type AgentFindingCode =
  | 'agent-unreachable'
  | 'agent-waits'
  | 'agent-settings'
  | 'agent-hook-unreached'
  | 'agent-hook-silent';

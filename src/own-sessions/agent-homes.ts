import { readFile, stat } from 'node:fs/promises';
import { basename, dirname, join, sep } from 'node:path';
import { desktopFolder } from '../agents/desktop-folder.js';
import { type Environment, variable } from '../host/environment.js';
import { parseJson } from '../lab/recordings/json/json-text.js';
import { isJsonObject } from '../values/json-object.js';

/** The agents whose own sessions Palimpsest finds, in the order of lists. */
export const AGENTS = ['claude-code', 'codex', 'opencode', 'pi', 'gemini-cli', 'cline'] as const;
export type Agent = (typeof AGENTS)[number];

/** The names of the agents for people. */
export const AGENT_NAMES: Readonly<Record<Agent, string>> = {
  'claude-code': 'Claude Code',
  codex: 'Codex',
  opencode: 'OpenCode',
  pi: 'pi',
  'gemini-cli': 'Gemini CLI',
  cline: 'Cline',
};

/** Facts about a session that its agent keeps in another file next to the recording. */
export interface Surroundings {
  readonly id?: string | undefined;
  readonly title?: string | undefined;
  readonly folder?: string | undefined;
}

/** Where an agent keeps its sessions. */
export interface AgentHome {
  readonly agent: Agent;
  /** Folders that may not exist. */
  readonly folders: readonly string[];
  /** Returns whether a file is named like a recording of this agent. */
  isRecording(path: string): boolean;
  /** Set if a recording of this agent is a database with many sessions. */
  readonly isDatabase?: true;
  /** Reads the facts that are kept next to a recording. Unreadable files count as missing. */
  beside(path: string): Promise<Surroundings>;
}

/** The environment variables, home folder and platform, which decide where the folders are. */
export interface Machine {
  readonly env: Environment;
  readonly home: string;
  readonly platform: NodeJS.Platform;
}

const NOTHING = async (): Promise<Surroundings> => ({});
const isJsonLines = (path: string): boolean => path.endsWith('.jsonl');

/** Returns the folders in a variable, as a comma-separated list, or else the usual folders. */
function foldersOf(env: Environment, name: string, usual: readonly string[]): readonly string[] {
  const given = variable(env, name);
  return given === undefined ? usual : given.split(',').map((folder) => folder.trim());
}

/** Maximum bytes of a file next to a recording. A longer file is not a list of names. */
const MOST_BESIDE = 67_108_864;

async function textBeside(path: string): Promise<string | undefined> {
  try {
    // Only regular files are read, because reading a pipe or a device may never end.
    const found = await stat(path);
    return found.isFile() && found.size <= MOST_BESIDE ? await readFile(path, 'utf8') : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the folders in which VS Code and editors derived from it keep the data of extensions. */
function editorFolders(machine: Machine): readonly string[] {
  return ['Code', 'Code - Insiders', 'VSCodium', 'Cursor', 'Windsurf'].map((editor) =>
    join(desktopFolder(machine, editor), 'User', 'globalStorage', 'saoudrizwan.claude-dev', 'tasks'),
  );
}

/**
 * Returns a reader of the names that people gave to Codex sessions. Codex lists them in one file,
 * where a session's last name counts.
 */
function codexNames(home: string): (path: string) => Promise<Surroundings> {
  let read: Promise<ReadonlyMap<string, string>> | undefined;
  const names = async (): Promise<ReadonlyMap<string, string>> => {
    const found = new Map<string, string>();
    for (const line of ((await textBeside(join(home, 'session_index.jsonl'))) ?? '').split('\n')) {
      const record = parseJson(line);
      if (!isJsonObject(record) || typeof record.id !== 'string') continue;
      if (typeof record.thread_name === 'string') found.set(record.id, record.thread_name);
    }
    return found;
  };
  return async (path) => {
    read ??= names();
    const id = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?=\.jsonl$)/.exec(path)?.[0];
    return { title: (await read).get(id ?? '') };
  };
}

/**
 * Reads the working folder of a Gemini CLI session, which is in a file next to the folder of chats.
 */
async function geminiFolder(path: string): Promise<Surroundings> {
  const text = await textBeside(join(dirname(dirname(path)), '.project_root'));
  return { folder: text?.trim() === '' ? undefined : text?.trim() };
}

/**
 * Returns the id and title of a Cline task. The id is the name of its folder, and the title is in
 * the list of all tasks.
 */
async function clineTask(path: string): Promise<Surroundings> {
  if (basename(path) !== 'api_conversation_history.json') return {};
  const folder = dirname(path);
  const id = basename(folder);
  const text = await textBeside(join(dirname(dirname(folder)), 'state', 'taskHistory.json'));
  const list = text === undefined ? undefined : parseJson(text);
  const task = (Array.isArray(list) ? list : []).filter(isJsonObject).find((one) => one.id === id);
  const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
  return { id, title: textOf(task?.task), folder: textOf(task?.cwdOnTaskInitialization) };
}

/** Returns where the agents of a user keep their sessions. */
export function agentHomes(machine: Machine): readonly AgentHome[] {
  const { env, home } = machine;
  const at = (...names: readonly string[]): string => join(home, ...names);
  const codex = foldersOf(env, 'CODEX_HOME', [at('.codex')]);
  const pi = foldersOf(env, 'PI_CODING_AGENT_DIR', [at('.pi', 'agent')]);
  const gemini = join(variable(env, 'GEMINI_CLI_HOME') ?? home, '.gemini');
  const cline = join(variable(env, 'CLINE_DIR') ?? at('.cline'), 'data');
  return [
    {
      agent: 'claude-code',
      folders: foldersOf(env, 'CLAUDE_CONFIG_DIR', [at('.claude'), at('.config', 'claude')]).map((folder) =>
        join(folder, 'projects'),
      ),
      isRecording: isJsonLines,
      beside: NOTHING,
    },
    {
      agent: 'codex',
      folders: codex.flatMap((folder) => [join(folder, 'sessions'), join(folder, 'archived_sessions')]),
      isRecording: isJsonLines,
      beside: codexNames(codex[0] ?? at('.codex')),
    },
    {
      agent: 'opencode',
      folders: [join(variable(env, 'XDG_DATA_HOME') ?? at('.local', 'share'), 'opencode')],
      isRecording: (path) => /^[/\\]opencode(?:-[\w.]+)?\.db$/.test(path),
      isDatabase: true,
      beside: NOTHING,
    },
    {
      agent: 'pi',
      folders: foldersOf(
        env,
        'PI_CODING_AGENT_SESSION_DIR',
        pi.map((folder) => join(folder, 'sessions')),
      ),
      isRecording: isJsonLines,
      beside: NOTHING,
    },
    {
      agent: 'gemini-cli',
      folders: [join(gemini, 'tmp')],
      isRecording: (path) => path.includes(`${sep}chats${sep}`) && /\.jsonl?$/.test(path),
      beside: geminiFolder,
    },
    {
      agent: 'cline',
      folders: [join(cline, 'tasks'), join(cline, 'sessions'), ...editorFolders(machine)],
      isRecording: (path) => basename(path) === 'api_conversation_history.json' || path.endsWith('.messages.json'),
      beside: clineTask,
    },
  ];
}

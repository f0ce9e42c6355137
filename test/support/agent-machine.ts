import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { RecordingLines } from './replays.js';

const fixture = (...names: readonly string[]): string => join(import.meta.dirname, '..', 'recordings', ...names);

/** A home folder in which agents keep sessions as they do on a user's machine. */
export interface AgentMachine {
  readonly home: string;
  /** Variables of a process that has this home and none of the agents' own variables. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Writes a file below the home folder and returns its path. */
  write(path: string, text: string): Promise<string>;
  /** Copies a recording of `test/recordings` below the home folder. */
  place(path: string, ...names: readonly string[]): Promise<string>;
  remove(): Promise<void>;
}

/** Agents' variables that would lead out of the home folder. */
const VARIABLES = [
  'CLAUDE_CONFIG_DIR',
  'CODEX_HOME',
  'PI_CODING_AGENT_DIR',
  'PI_CODING_AGENT_SESSION_DIR',
  'GEMINI_CLI_HOME',
  'CLINE_DIR',
  'XDG_CONFIG_HOME',
  'XDG_DATA_HOME',
  'PALIMPSEST_DATA',
];

/** Creates an empty home folder. */
export async function agentMachine(): Promise<AgentMachine> {
  const home = await mkdtemp(join(tmpdir(), 'palimpsest-home-'));
  const place = async (path: string): Promise<string> => {
    const to = join(home, path);
    await mkdir(dirname(to), { recursive: true });
    return to;
  };
  return {
    home,
    env: { ...Object.fromEntries(VARIABLES.map((name) => [name, undefined])), HOME: home },
    write: async (path, text) => {
      const to = await place(path);
      await writeFile(to, text);
      return to;
    },
    place: async (path, ...names) => {
      const to = await place(path);
      await copyFile(fixture(...names), to);
      return to;
    },
    remove: () => rm(home, { recursive: true, force: true }),
  };
}

/** Places a session of each of five agents where the agent keeps it. */
export async function placeFiveAgents(machine: AgentMachine): Promise<void> {
  await machine.place('.claude/projects/-home-mira-shelf/5f0c1a52.jsonl', 'claude-code', 'coding.jsonl');
  await machine.place('.codex/sessions/2026/02/25/rollout-2026-02-25T06-13-20-a.jsonl', 'codex', 'coding.jsonl');
  await machine.place('.pi/agent/sessions/--home-mira-shelf--/2025-12-06_a.jsonl', 'pi', 'coding.jsonl');
  await machine.place('.gemini/tmp/shelf/chats/session-2026-01-10T09-00-a.json', 'gemini-cli', 'session.json');
  await machine.write('.gemini/tmp/shelf/.project_root', '/home/mira/shelf\n');
  await machine.place('.cline/data/sessions/one/one.messages.json', 'cline', 'session.messages.json');
}

/** A short session of Claude Code. */
export const claudeSession = (): RecordingLines =>
  new RecordingLines().user('Sort the shelf by title').reads('toolu_1', '/p/shelf.ts', 'one\ntwo\n').says('Sorted.');

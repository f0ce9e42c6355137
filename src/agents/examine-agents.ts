import { stat } from 'node:fs/promises';
import type { Found } from '../host/findings.js';
import { codeOf, messageOf } from '../values/thrown.js';
import type { Agent, FileEdit, Reach, Scope, ServerCommand, Surroundings, Wanted, WayName } from './agent.js';
import { AGENTS } from './agent-table.js';
import type { Change } from './edits/change.js';
import { findSetting } from './edits/edit.js';
import { findAgent, findProgram, type Installed } from './installed.js';
import { answersAsServer, runProgram } from './run-program.js';
import { readSettingsFile } from './settings-file.js';

/** An agent on this machine, and whether it reaches us from this folder. */
export interface ExaminedAgent {
  readonly agent: string;
  readonly version: string | undefined;
  readonly isSetUp: boolean;
  /** Settings files that name us. */
  readonly files: readonly string[];
  /** The agent's own answer; undefined if it was not asked. */
  readonly reach: Reach | undefined;
  /** One line for people. */
  readonly text: string;
  readonly findings: readonly Found[];
}

const CHECK_MS = 30_000;

/** Our entry in a settings file of an agent. */
interface OwnEntry {
  readonly path: string;
  readonly way: WayName;
  readonly value: unknown;
}

/** The program by its name, or a server as a setup wrote it for a program that has moved since. */
const OURS = /palimpsest|"--short-ids"/;

/** Returns whether a value in settings is about this program, also one that the user wrote. */
function isAboutUs(value: unknown, change: Change): boolean {
  const ours = change.kind === 'entry' ? [] : change.values;
  const text = JSON.stringify(value) ?? '';
  return OURS.test(text) || ours.some((one) => text.includes(JSON.stringify(one)));
}

/** Looks for our entry in every settings file that a way would change. */
async function entriesOf(
  agent: Agent,
  wanted: (scope: Scope) => Wanted,
): Promise<{ readonly entries: readonly OwnEntry[]; readonly troubles: readonly string[] }> {
  const entries: OwnEntry[] = [];
  const troubles: string[] = [];
  for (const scope of ['project', 'user'] as const)
    for (const [way, { edits }] of Object.entries(agent.ways)) {
      const planned = edits(wanted(scope));
      // The first file has the entry itself; the others have permissions.
      const first: FileEdit | undefined = 'refused' in planned ? undefined : planned[0];
      const [change] = first?.changes ?? [];
      if (first === undefined || change === undefined) continue;
      for (const path of first.paths)
        try {
          const { text } = await readSettingsFile(path);
          const value = text === undefined ? undefined : findSetting(first.format, text, change.path);
          if (value !== undefined && isAboutUs(value, change)) entries.push({ path, way: way as WayName, value });
        } catch (error) {
          const code = codeOf(error);
          if (code === undefined) throw error;
          troubles.push(code === 'unreadable' ? messageOf(error) : `${path}, ${messageOf(error)}`);
        }
    }
  return { entries, troubles: [...new Set(troubles)] };
}

/** Reads the server's command from an entry; OpenCode keeps program and arguments in one list. */
function commandOf(value: unknown): ServerCommand | undefined {
  const { command, args = [] } = value as { readonly command?: unknown; readonly args?: readonly string[] };
  if (typeof command === 'string') return { command, args };
  if (!Array.isArray(command)) return undefined;
  const [program, ...rest] = command as readonly string[];
  return program === undefined ? undefined : { command: program, args: rest };
}

const WORDS: Readonly<Record<Reach, string>> = {
  connected: 'reaches us',
  listed: 'lists us, and the server answers',
  waits: 'waits for your consent',
  failed: 'DOES NOT REACH US',
  absent: 'DOES NOT KNOW US in this folder',
};

/** Asks the agent. If it only lists the server or has no check, starts the server as it would. */
async function reachOf({ agent, program }: Installed, entry: OwnEntry, at: Surroundings) {
  let [reach, detail]: [Reach, string] = ['listed', ''];
  if (program !== undefined && agent.check !== undefined) {
    const { args, read } = agent.check;
    const { output, isLate } = await runProgram(program, args, { env: at.env, cwd: at.cwd, limitMs: CHECK_MS });
    const asked = `${agent.programs[0]} ${args.join(' ')}`;
    reach = isLate ? 'failed' : read(output);
    detail = isLate
      ? `${asked} took longer than ${CHECK_MS / 1_000} s`
      : `${asked} says: ${output.trim().split('\n').slice(-3).join(' / ').trim()}`;
  }
  if (reach !== 'listed') return { reach, detail };
  const command = commandOf(entry.value);
  const answers = command !== undefined && (await answersAsServer(command, at));
  return answers
    ? { reach, detail }
    : { reach: 'failed' as const, detail: `its server did not answer: ${JSON.stringify(command ?? entry.value)}` };
}

async function isHere(agent: Agent, at: Surroundings): Promise<boolean> {
  if ((await findProgram(agent.programs, at)) !== undefined) return true;
  return (await Promise.all(agent.traces(at).map((path) => stat(path).then(Boolean, () => false)))).includes(true);
}

async function examineAgent(agent: Agent, at: Surroundings, packageFolder: string): Promise<ExaminedAgent | undefined> {
  if (!(await isHere(agent, at))) return undefined;
  const server = (): ServerCommand => ({ command: 'palimpsest', args: ['mcp'] });
  const { entries, troubles } = await entriesOf(agent, (scope) => ({
    at,
    scope,
    server,
    packageFolder,
    isDataNamed: false,
  }));
  const broken = troubles.map((trouble): Found => ['agent-settings', trouble]);
  const unread = troubles.length > 0 ? '; a settings file cannot be read, see below' : '';
  const [entry] = entries;
  const here = entry === undefined ? undefined : await findAgent(agent, at);
  if (entry === undefined || here === undefined) {
    const text = `${agent.title}: not set up; palimpsest setup ${agent.id} does it${unread}`;
    return { agent: agent.id, version: undefined, isSetUp: false, files: [], reach: undefined, text, findings: broken };
  }
  const { version } = here;
  const offered = entries.find(({ way }) => way === 'mcp');
  const checked = offered === undefined ? undefined : await reachOf(here, offered, at);
  const found: readonly Found[] =
    checked?.reach === 'failed' || checked?.reach === 'absent'
      ? [['agent-unreachable', `${agent.title}: ${checked.detail}`]]
      : checked?.reach === 'waits'
        ? [['agent-waits', `${agent.title}: ${checked.detail}`]]
        : [];
  const name = version === undefined ? agent.title : `${agent.title} ${version}`;
  const files = [...new Set(entries.map(({ path }) => path))];
  const state = checked === undefined ? 'its loop loads us' : WORDS[checked.reach];
  return {
    agent: agent.id,
    version,
    isSetUp: true,
    files,
    reach: checked?.reach,
    text: `${name}: set up in ${files.join(', ')}; ${state}${unread}`,
    findings: [...broken, ...found],
  };
}

/**
 * Examines every agent on this machine. An agent that is set up runs its own check, which starts
 * the server for a moment. The others are not run.
 */
export async function examineAgents(at: Surroundings, packageFolder: string): Promise<readonly ExaminedAgent[]> {
  const examined = await Promise.all(AGENTS.map((agent) => examineAgent(agent, at, packageFolder)));
  return examined.filter((one) => one !== undefined);
}

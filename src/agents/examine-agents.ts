import { stat } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
import { sameData } from '../values/plain-data.js';
import { codeOf, messageOf } from '../values/thrown.js';
import {
  type Agent,
  type AgentFinding,
  type FileEdit,
  type Reach,
  type Scope,
  type ServerCommand,
  type Surroundings,
  type Wanted,
  type WayName,
  WORKSPACE,
} from './agent.js';
import { AGENTS } from './agent-table.js';
import { type Change, isStillOurs, type SettingValue } from './edits/change.js';
import { findSetting } from './edits/edit.js';
import { hookFindings } from './hooks/examine-hooks.js';
import { findAgent, findProgram, type Installed } from './installed.js';
import { type KeptChange, keptChanges } from './kept-changes.js';
import { answersAsServer, runProgram } from './run-program.js';
import { type SetupData, serverCommand } from './server-command.js';
import { readSettingsFile } from './settings-file.js';

/** The result of examining an agent: whether it reaches Palimpsest from this folder. */
export interface ExaminedAgent {
  readonly agent: string;
  readonly version: string | undefined;
  readonly isSetUp: boolean;
  /** Settings files that contain our entry. */
  readonly files: readonly string[];
  /** The result of the agent's own check. Undefined if no check was run. */
  readonly reach: Reach | undefined;
  /** The result as one line of text. */
  readonly text: string;
  readonly findings: readonly AgentFinding[];
}

const CHECK_MS = 30_000;

/** Our entry in a settings file of an agent. */
interface OwnEntry {
  readonly path: string;
  readonly way: WayName;
  readonly scope: Scope;
  readonly value: unknown;
  /**
   * The programs that `doctor` may run. `folder`: the agent in this folder, with everything that
   * its settings start. `server`: only our server. `no`: nothing, because strangers may have
   * written a project's settings.
   */
  readonly trust: 'folder' | 'server' | 'no';
}

/**
 * Matches our name, or a flag that only our setup writes. The flag also identifies an entry whose
 * program has moved.
 */
const OURS = /palimpsest|"--short-ids"/;

/** Returns whether a value in settings refers to this program. The user may have written it. */
function isAboutUs(value: unknown, change: Change): boolean {
  const ours = change.kind === 'entry' ? [] : change.values;
  const text = JSON.stringify(value) ?? '';
  return OURS.test(text) || ours.some((one) => text.includes(JSON.stringify(one)));
}

/** The folder to examine, and this program. */
export interface Examination {
  readonly at: Surroundings;
  readonly packageFolder: string;
  readonly data: SetupData;
}

/** Returns what a setup would write now. If a setup would refuse, the command is a placeholder. */
async function wantedOf(agent: Agent, scope: Scope, { at, packageFolder, data }: Examination): Promise<Wanted> {
  const program = { packageFolder, node: process.execPath };
  const server = await serverCommand(agent, scope, { at, data, program }).catch(() => () => ({
    command: 'palimpsest',
    args: ['mcp'],
  }));
  return { at, scope, server, packageFolder, dataDir: data.dataDir, isDataNamed: false };
}

/**
 * Decides how far to trust an entry. The user's own settings are trusted. A project's entry is
 * trusted only if this user's setup wrote it or would write the same entry.
 */
function trustIn(
  { path, value }: Pick<OwnEntry, 'path' | 'value'>,
  { scope, change, kept }: { readonly scope: Scope; readonly change: Change; readonly kept: readonly KeptChange[] },
): OwnEntry['trust'] {
  if (scope === 'user') return 'folder';
  const made = kept.filter((one) => one.scope === 'project' && one.path === path).flatMap((one) => one.made);
  if (made.some((one) => one.kind === 'entry' && isStillOurs(value, one.value as SettingValue))) return 'folder';
  return change.kind === 'entry' && sameData(value, change.value) ? 'server' : 'no';
}

/** Finds our entry in every settings file that a setup would change. */
async function entriesOf(
  agent: Agent,
  wanted: (scope: Scope) => Promise<Wanted>,
  kept: readonly KeptChange[],
): Promise<{ readonly entries: readonly OwnEntry[]; readonly troubles: readonly string[] }> {
  const entries: OwnEntry[] = [];
  const troubles: string[] = [];
  for (const scope of ['project', 'user'] as const)
    for (const [way, { edits }] of Object.entries(agent.ways)) {
      const planned = edits(await wanted(scope));
      // The first file contains the entry itself. The others contain permissions.
      const first: FileEdit | undefined = 'refused' in planned ? undefined : planned[0];
      const [change] = first?.changes ?? [];
      if (first === undefined || change === undefined) continue;
      for (const path of first.paths)
        try {
          const { text } = await readSettingsFile(path);
          const value = text === undefined ? undefined : findSetting(first.format, text, change.path);
          if (value === undefined || !isAboutUs(value, change)) continue;
          entries.push({
            path,
            way: way as WayName,
            scope,
            value,
            trust: trustIn({ path, value }, { scope, change, kept }),
          });
        } catch (error) {
          const code = codeOf(error);
          if (code === undefined) throw error;
          troubles.push(code === 'unreadable' ? messageOf(error) : `${path}, ${messageOf(error)}`);
        }
    }
  return { entries, troubles: [...new Set(troubles)] };
}

const isText = (value: unknown): value is string => typeof value === 'string';

/** Reads the server's command from an entry. OpenCode has program and arguments in one list. */
function commandOf(value: unknown): ServerCommand | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { command, args = [] } = value as { readonly command?: unknown; readonly args?: unknown };
  const [program, ...rest]: readonly unknown[] = Array.isArray(command)
    ? command
    : [command, ...(Array.isArray(args) ? args : [args])];
  return isText(program) && rest.every(isText) ? { command: program, args: rest } : undefined;
}

/**
 * Starts the server of an entry as the agent would, and returns whether it answers. Never runs a
 * program from the project.
 */
async function serverAnswers(value: unknown, at: Surroundings, cwd: string): Promise<boolean> {
  const named = commandOf(value);
  if (named === undefined) return false;
  const command = isAbsolute(named.command) ? named.command : await findProgram([named.command], at);
  if (command === undefined) return false;
  const args = named.args.map((arg) => arg.replaceAll(WORKSPACE, () => at.cwd));
  return answersAsServer({ command, args }, { env: at.env, cwd });
}

const WORDS: Readonly<Record<Reach, string>> = {
  connected: 'reaches Palimpsest',
  listed: 'lists Palimpsest, and the server answers',
  waits: 'waits for your consent',
  failed: 'DOES NOT REACH PALIMPSEST',
  absent: 'DOES NOT KNOW PALIMPSEST',
};

/** Maximum characters to show of an agent's output or of a command. */
const SHOWN_CHARS = 400;

/** Runs the agent's check. If it has none, or only lists the server, starts the server. */
async function reachOf({ agent, program }: Installed, { value, trust }: OwnEntry, asked: Asked) {
  const { at, cwd } = asked;
  let [reach, detail]: [Reach, string] = ['listed', ''];
  if (trust === 'folder' && program !== undefined && agent.check !== undefined) {
    const { args, read } = agent.check;
    const { output, isLate } = await runProgram(program, args, { env: at.env, cwd, limitMs: CHECK_MS });
    const check = `${agent.programs[0]} ${args.join(' ')}`;
    reach = isLate ? 'failed' : read(output);
    const end = output.trim().split('\n').slice(-3).join(' / ').trim().slice(-SHOWN_CHARS);
    detail = isLate ? `${check} took longer than ${CHECK_MS / 1_000} s` : `${check} says: ${end}`;
  }
  if (reach !== 'listed') return { reach, detail };
  if (await serverAnswers(value, at, cwd)) return { reach, detail };
  const shown = JSON.stringify(commandOf(value) ?? value).slice(0, SHOWN_CHARS);
  return { reach: 'failed' as const, detail: `its server did not answer: ${shown}` };
}

/** Where an agent's check runs. */
interface Asked {
  readonly at: Surroundings;
  /**
   * This folder if this user set the agent up in it, otherwise the home folder. Agents run what the
   * settings of their folder name.
   */
  readonly cwd: string;
}

async function isHere(agent: Agent, at: Surroundings): Promise<boolean> {
  if ((await findProgram(agent.programs, at)) !== undefined) return true;
  return (await Promise.all(agent.traces(at).map((path) => stat(path).then(Boolean, () => false)))).includes(true);
}

async function examineAgent(agent: Agent, examination: Examination): Promise<ExaminedAgent | undefined> {
  const { at, data } = examination;
  if (!(await isHere(agent, at))) return undefined;
  const kept = await keptChanges(data.dataDir);
  const { entries, troubles } = await entriesOf(agent, (scope) => wantedOf(agent, scope, examination), kept);
  const broken = troubles.map((trouble): AgentFinding => ['agent-settings', trouble]);
  const unread = troubles.length > 0 ? '; a settings file cannot be read, see below' : '';
  const [entry] = entries;
  const here = entry === undefined ? undefined : await findAgent(agent, at);
  if (entry === undefined || here === undefined) {
    const text = `${agent.title}: not set up; to set it up: palimpsest setup ${agent.id}${unread}`;
    return { agent: agent.id, version: undefined, isSetUp: false, files: [], reach: undefined, text, findings: broken };
  }
  const { version } = here;
  const servers = entries.filter(({ way }) => way === 'mcp');
  const offered = servers.find(({ trust }) => trust !== 'no');
  // Entries of the project come first, so the first entry decides.
  const isOwnFolder = servers[0]?.trust === 'folder' && servers[0].scope === 'project';
  const asked: Asked = { at, cwd: isOwnFolder ? at.cwd : at.home };
  const checked = offered === undefined ? undefined : await reachOf(here, offered, asked);
  const found: readonly AgentFinding[] =
    checked?.reach === 'failed' || checked?.reach === 'absent'
      ? [['agent-unreachable', `${agent.title}: ${checked.detail}`]]
      : checked?.reach === 'waits'
        ? [['agent-waits', `${agent.title}: ${checked.detail}`]]
        : [];
  const name = version === undefined ? agent.title : `${agent.title} ${version}`;
  const files = [...new Set(entries.map(({ path }) => path))];
  const { hookAgent } = (entries.some(({ way }) => way === 'hooks') ? agent.ways.hooks : undefined) ?? {};
  const hooks = hookAgent === undefined ? [] : await hookFindings(agent.title, hookAgent, data.dataDir);
  const state =
    checked !== undefined
      ? WORDS[checked.reach]
      : servers.length === 0
        ? hookAgent === undefined
          ? 'its loop loads Palimpsest'
          : 'its hooks run Palimpsest'
        : `not checked, because your setup did not write it; to set it up: palimpsest setup ${agent.id} --project`;
  return {
    agent: agent.id,
    version,
    isSetUp: true,
    files,
    reach: checked?.reach,
    text: `${name}: set up in ${files.join(', ')}; ${state}${unread}`,
    findings: [...broken, ...found, ...hooks],
  };
}

/**
 * Examines every agent on this machine. An agent that is set up runs its own check, which briefly
 * starts the server. Other agents are not run. The settings of a project cannot make `doctor` run a
 * program, unless this user's setup wrote them.
 */
export async function examineAgents(examination: Examination): Promise<readonly ExaminedAgent[]> {
  const examined = await Promise.all(AGENTS.map((agent) => examineAgent(agent, examination)));
  return examined.filter((one) => one !== undefined);
}

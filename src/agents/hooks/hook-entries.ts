import type { FileEdit, Refusal, Wanted } from '../agent.js';
import type { Change, SettingValue } from '../edits/change.js';
import { type HookAgent, hookClient } from './hook-folder.js';

/** The effect of hooks, as the user reads it. */
export const HOOK_NOTE =
  'The hooks start palimpsest watch. It names each file that changed since the model saw it. After a ' +
  'compaction it brings pinned objects back.';

/** Time limit that the agent sets for a hook. The client gives up much earlier. */
const LIMIT_SECONDS = 3;

/**
 * The events of each agent, with the time limit of the client in milliseconds. A start of a session
 * has more time: after a compaction it returns the texts of pinned objects.
 */
const EVENTS: Readonly<Record<HookAgent, Readonly<Record<string, number>>>> = {
  'claude-code': {
    SessionStart: 1_000,
    SessionEnd: 200,
    UserPromptSubmit: 200,
    PreToolUse: 200,
    PostToolUse: 200,
    PostToolUseFailure: 200,
    PreCompact: 200,
    Stop: 200,
    SubagentStop: 200,
  },
  codex: {
    SessionStart: 1_000,
    SessionEnd: 200,
    UserPromptSubmit: 200,
    PreToolUse: 200,
    PostToolUse: 200,
    PreCompact: 200,
    Stop: 200,
  },
  'gemini-cli': {
    SessionStart: 1_000,
    SessionEnd: 200,
    BeforeAgent: 200,
    BeforeTool: 200,
    AfterTool: 200,
    PreCompress: 200,
    AfterAgent: 200,
  },
};

/** Quotes a word for the shell that runs a hook. */
const quoted = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** Returns the command that an agent runs as the hook of an event. */
const hookCommand = (agent: HookAgent, ms: number, dataDir: string): string =>
  [hookClient(dataDir), agent, dataDir, String(ms)].map(quoted).join(' ');

/** Returns an agent's hooks by event, in the form of its settings and its plug-ins. */
export function hookGroups(
  agent: HookAgent,
  commandOf: (ms: number, event: string) => string,
): Readonly<Record<string, SettingValue>> {
  const seconds = agent === 'gemini-cli' ? LIMIT_SECONDS * 1_000 : LIMIT_SECONDS;
  const name = agent === 'gemini-cli' ? { name: 'palimpsest' } : {};
  return Object.fromEntries(
    Object.entries(EVENTS[agent]).map(([event, ms]): [string, SettingValue] => [
      event,
      { hooks: [{ ...name, type: 'command', command: commandOf(ms, event), timeout: seconds }] },
    ]),
  );
}

/** Returns the edits that add our hooks to an agent's settings. Other hooks stay. */
export function hookEdits(
  agent: HookAgent,
  path: string,
  { at, dataDir, scope }: Wanted,
): readonly FileEdit[] | Refusal {
  if (at.platform === 'win32') return { refused: 'Hooks need a Unix socket, which Node.js does not have on Windows.' };
  if (scope === 'project')
    return { refused: 'Hooks run a program of your data folder, so a project cannot share them. Leave out --project.' };
  const groups = hookGroups(agent, (ms) => hookCommand(agent, ms, dataDir));
  const changes = Object.entries(groups).map(
    ([event, group]): Change => ({ kind: 'members', path: ['hooks', event], values: [group] }),
  );
  return [{ paths: [path], format: 'json', changes }];
}

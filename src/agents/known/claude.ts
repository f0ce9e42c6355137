import { join } from 'node:path';
import { variable } from '../../host/environment.js';
import {
  type Agent,
  CHANGING_TOOLS,
  HOOK_GIVES,
  readListed,
  SERVER_GIVES,
  SERVER_NAME,
  type Surroundings,
} from '../agent.js';
import { HOOK_NOTE, hookEdits } from '../hooks/hook-entries.js';

const settingsFolder = ({ env, home }: Surroundings): string =>
  variable(env, 'CLAUDE_CONFIG_DIR') ?? join(home, '.claude');

/**
 * The user's servers are in a file next to the settings folder. If a variable names the folder, the
 * file is inside it.
 */
const userFile = ({ env, home }: Surroundings): string =>
  join(variable(env, 'CLAUDE_CONFIG_DIR') ?? home, '.claude.json');

/** Claude Code. A rule in `permissions.ask` overrides all rules that allow. */
export const CLAUDE: Agent = {
  id: 'claude',
  title: 'Claude Code',
  programs: ['claude'],
  traces: (at) => [settingsFolder(at), userFile(at)],
  isGraphical: false,
  ways: {
    mcp: {
      gives: SERVER_GIVES,
      note: 'With --project, Claude Code asks each user once whether to trust the server.',
      edits: ({ at, scope, server }) => [
        {
          paths: [scope === 'user' ? userFile(at) : join(at.cwd, '.mcp.json')],
          format: 'json',
          changes: [{ kind: 'entry', path: ['mcpServers', SERVER_NAME], value: { type: 'stdio', ...server() } }],
        },
        {
          paths: [
            scope === 'user' ? join(settingsFolder(at), 'settings.json') : join(at.cwd, '.claude', 'settings.json'),
          ],
          format: 'json',
          changes: [
            {
              kind: 'members',
              path: ['permissions', 'ask'],
              values: CHANGING_TOOLS.map((tool) => `mcp__${SERVER_NAME}__${tool}`),
            },
          ],
        },
      ],
    },
    hooks: {
      gives: HOOK_GIVES,
      hookAgent: 'claude-code',
      note: HOOK_NOTE,
      edits: (wanted) => hookEdits('claude-code', join(settingsFolder(wanted.at), 'settings.json'), wanted),
    },
  },
  check: {
    args: ['mcp', 'list'],
    read: (output) =>
      readListed(output, { connected: /connected/i, waits: /pending|approv/i, failed: /fail|error/i, listed: /$^/ }),
  },
};

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

const folder = ({ env, home }: Surroundings): string => variable(env, 'CODEX_HOME') ?? join(home, '.codex');

/** How long Codex waits for the server's first answer, in seconds. */
const START_SECONDS = 20;

/** Codex. It passes only a few variables to servers, so the arguments contain the data folder. */
export const CODEX: Agent = {
  id: 'codex',
  title: 'Codex',
  programs: ['codex'],
  traces: (at) => [folder(at)],
  isGraphical: false,
  ways: {
    mcp: {
      gives: SERVER_GIVES,
      note: 'With --project, Codex reads the file in trusted projects only.',
      edits: ({ at, scope, server }) => [
        {
          paths: [join(scope === 'user' ? folder(at) : join(at.cwd, '.codex'), 'config.toml')],
          format: 'toml',
          changes: [
            {
              kind: 'entry',
              path: ['mcp_servers', SERVER_NAME],
              value: {
                ...server(),
                startup_timeout_sec: START_SECONDS,
                tools: Object.fromEntries(CHANGING_TOOLS.map((tool) => [tool, { approval_mode: 'prompt' }])),
              },
            },
          ],
        },
      ],
    },
    hooks: {
      gives: HOOK_GIVES,
      hookAgent: 'codex',
      note: `${HOOK_NOTE} Codex runs a new hook only after you trust it: start codex and type /hooks.`,
      edits: (wanted) => hookEdits('codex', join(folder(wanted.at), 'hooks.json'), wanted),
    },
  },
  check: {
    // Codex lists its servers without connecting to them.
    args: ['mcp', 'list'],
    read: (output) => readListed(output, { connected: /$^/, waits: /$^/, failed: /disabled/i, listed: /enabled/i }),
  },
};

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { variable } from '../../host/environment.js';
import {
  type Agent,
  CHANGING_TOOLS,
  LOOP_GIVES,
  readListed,
  SERVER_GIVES,
  SERVER_NAME,
  type Wanted,
} from '../agent.js';

/** OpenCode reads both file names. A file with comments usually has the second name. */
function paths({ at: { env, home, cwd }, scope }: Wanted): readonly [string, string] {
  const folder = scope === 'user' ? join(variable(env, 'XDG_CONFIG_HOME') ?? join(home, '.config'), 'opencode') : cwd;
  return [join(folder, 'opencode.json'), join(folder, 'opencode.jsonc')];
}

/**
 * OpenCode. By default it allows every tool, so the settings name the tools before which it asks.
 * The keys are those of version 1. Version 2 reads them as well as its own `plugins`, `permissions`
 * and `mcp.servers`.
 */
export const OPENCODE: Agent = {
  id: 'opencode',
  title: 'OpenCode',
  programs: ['opencode'],
  traces: ({ env, home }) => [join(variable(env, 'XDG_CONFIG_HOME') ?? join(home, '.config'), 'opencode')],
  isGraphical: false,
  ways: {
    mcp: {
      gives: SERVER_GIVES,
      edits: (wanted) => {
        const { command, args } = wanted.server();
        return [
          {
            paths: paths(wanted),
            format: 'json',
            changes: [
              {
                kind: 'entry',
                path: ['mcp', SERVER_NAME],
                value: { type: 'local', command: [command, ...args], enabled: true },
              },
              ...CHANGING_TOOLS.map(
                (tool) =>
                  ({
                    kind: 'entry',
                    path: ['permission', `${SERVER_NAME}_${tool}`],
                    value: 'ask',
                    plainKey: '*',
                  }) as const,
              ),
            ],
          },
        ];
      },
    },
    loop: {
      gives: LOOP_GIVES,
      edits: (wanted) => [
        {
          paths: paths(wanted),
          format: 'json',
          changes: [
            {
              kind: 'members',
              path: ['plugin'],
              values: [pathToFileURL(join(wanted.packageFolder, 'dist', 'opencode.js')).href],
            },
          ],
        },
      ],
    },
  },
  check: {
    args: ['mcp', 'list'],
    read: (output) =>
      readListed(output, {
        connected: /\bconnected/i,
        waits: /needs|auth/i,
        failed: /fail|error|disabled/i,
        listed: /$^/,
      }),
  },
};

import { join } from 'node:path';
import { variable } from '../../host/environment.js';
import { type Agent, LOOP_GIVES, readListed, SERVER_GIVES, SERVER_NAME, type Wanted } from '../agent.js';

function folder({ at: { env, home, cwd }, scope }: Pick<Wanted, 'at' | 'scope'>): string {
  if (scope === 'project') return join(cwd, '.pi');
  return variable(env, 'PI_CODING_AGENT_DIR') ?? join(home, '.pi', 'agent');
}

/** pi. Our extension is a package for its loop. It does not ask before an MCP tool. */
export const PI: Agent = {
  id: 'pi',
  title: 'pi',
  programs: ['pi'],
  traces: (at) => [folder({ at, scope: 'user' })],
  isGraphical: false,
  ways: {
    loop: {
      gives: LOOP_GIVES,
      edits: (wanted) => [
        {
          paths: [join(folder(wanted), 'settings.json')],
          format: 'json',
          changes: [{ kind: 'members', path: ['packages'], values: [wanted.packageFolder] }],
        },
      ],
    },
    mcp: {
      gives: SERVER_GIVES,
      note: "pi calls a server's tools without asking, so this server only reads (--read-only).",
      edits: (wanted) => {
        const { command, args } = wanted.server();
        return [
          {
            paths: [join(folder(wanted), 'mcp.json')],
            format: 'json',
            changes: [
              {
                kind: 'entry',
                path: ['mcpServers', SERVER_NAME],
                value: { command, args: [...args, '--read-only'] },
              },
            ],
          },
        ];
      },
    },
  },
  check: {
    args: ['mcp', 'list'],
    read: (output) =>
      readListed(output, {
        connected: /\bconnected/i,
        waits: /sign|trust/i,
        failed: /fail|error|disabled/i,
        listed: /$^/,
      }),
  },
};

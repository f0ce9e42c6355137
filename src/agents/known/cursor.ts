import { join } from 'node:path';
import { type Agent, SERVER_GIVES, SERVER_NAME, WORKSPACE } from '../agent.js';

/** Cursor. It asks before each tool of a server, unless the user turned that off. */
export const CURSOR: Agent = {
  id: 'cursor',
  title: 'Cursor',
  programs: ['cursor', 'cursor-agent'],
  traces: ({ home }) => [join(home, '.cursor')],
  isGraphical: true,
  ways: {
    mcp: {
      gives: SERVER_GIVES,
      edits: ({ at, scope, server }) =>
        scope === 'user'
          ? { refused: 'Cursor names a project folder to the servers of that project only. Add --project.' }
          : [
              {
                paths: [join(at.cwd, '.cursor', 'mcp.json')],
                format: 'json',
                changes: [
                  {
                    kind: 'entry',
                    path: ['mcpServers', SERVER_NAME],
                    value: { ...server([WORKSPACE]) },
                  },
                ],
              },
            ],
    },
  },
};

import { join } from 'node:path';
import { type Agent, SERVER_GIVES, SERVER_NAME, WORKSPACE } from '../agent.js';
import { desktopFolder } from '../desktop-folder.js';

/** VS Code with Copilot. It asks before each tool that is not declared read-only. */
export const VSCODE: Agent = {
  id: 'vscode',
  title: 'VS Code',
  programs: ['code', 'code-insiders', 'codium'],
  traces: (at) => [join(desktopFolder(at, 'Code'), 'User')],
  isGraphical: true,
  ways: {
    mcp: {
      gives: SERVER_GIVES,
      note: 'VS Code asks once whether to trust the server.',
      edits: ({ at, scope, server }) => [
        {
          paths: [
            scope === 'user'
              ? join(desktopFolder(at, 'Code'), 'User', 'mcp.json')
              : join(at.cwd, '.vscode', 'mcp.json'),
          ],
          format: 'json',
          changes: [
            {
              kind: 'entry',
              path: ['servers', SERVER_NAME],
              value: { type: 'stdio', ...server([WORKSPACE]) },
            },
          ],
        },
      ],
    },
  },
};

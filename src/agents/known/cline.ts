import { join } from 'node:path';
import { variable } from '../../host/environment.js';
import { type Agent, SERVER_GIVES, SERVER_NAME, type Surroundings } from '../agent.js';
import { desktopFolder } from '../desktop-folder.js';

const FILE = 'cline_mcp_settings.json';

/** Newer extensions share a folder with the program `cline`. Older ones use the editor's folder. */
function files(at: Surroundings): readonly [string, string] {
  const root = variable(at.env, 'CLINE_DIR') ?? join(at.home, '.cline');
  const shared = variable(at.env, 'CLINE_DATA_DIR') ?? join(root, 'data');
  const extension = join(desktopFolder(at, 'Code'), 'User', 'globalStorage', 'saoudrizwan.claude-dev');
  return [join(shared, 'settings', FILE), join(extension, 'settings', FILE)];
}

/** Cline. It asks before each tool that is not in `autoApprove`. */
export const CLINE: Agent = {
  id: 'cline',
  title: 'Cline',
  programs: ['cline'],
  traces: (at) => files(at).map((file) => join(file, '..')),
  isGraphical: true,
  ways: {
    mcp: {
      gives: SERVER_GIVES,
      note: 'Cline starts the server outside of your project. The server sees the folder in which you run setup.',
      edits: ({ at, scope, server }) =>
        scope === 'project'
          ? { refused: 'Cline has no settings for a single project. Leave out --project.' }
          : [
              {
                paths: files(at),
                format: 'json',
                changes: [
                  {
                    kind: 'entry',
                    path: ['mcpServers', SERVER_NAME],
                    value: { ...server([at.cwd]), disabled: false, autoApprove: [] },
                  },
                ],
              },
            ],
    },
  },
};

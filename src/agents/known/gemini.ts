import { join } from 'node:path';
import { variable } from '../../host/environment.js';
import { type Agent, HOOK_GIVES, readListed, SERVER_GIVES, SERVER_NAME, type Surroundings } from '../agent.js';
import { HOOK_NOTE, hookEdits } from '../hooks/hook-entries.js';

const folder = ({ env, home }: Surroundings): string => join(variable(env, 'GEMINI_CLI_HOME') ?? home, '.gemini');

/** Gemini CLI. Without `trust`, it asks before each tool of a server. */
export const GEMINI: Agent = {
  id: 'gemini',
  title: 'Gemini CLI',
  programs: ['gemini'],
  traces: (at) => [folder(at)],
  isGraphical: false,
  ways: {
    mcp: {
      gives: SERVER_GIVES,
      note: 'Gemini CLI starts servers in folders that you trust only. It asks for trust when it starts.',
      edits: ({ at, scope, server }) => [
        {
          paths: [join(scope === 'user' ? folder(at) : join(at.cwd, '.gemini'), 'settings.json')],
          format: 'json',
          changes: [{ kind: 'entry', path: ['mcpServers', SERVER_NAME], value: { ...server() } }],
        },
      ],
    },
    hooks: {
      gives: HOOK_GIVES,
      hookAgent: 'gemini-cli',
      note: HOOK_NOTE,
      edits: (wanted) => hookEdits('gemini-cli', join(folder(wanted.at), 'settings.json'), wanted),
    },
  },
  check: {
    args: ['mcp', 'list'],
    read: (output) =>
      readListed(output, {
        connected: /- connected/i,
        // In an untrusted folder, all servers are disabled.
        waits: /- disabled/i,
        failed: /disconnected|blocked/i,
        listed: /connecting/i,
      }),
  },
};

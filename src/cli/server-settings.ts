import { posix, resolve } from 'node:path';
import { parseMount } from '../filesystem/access/mounts.js';
import type { ServerSettings } from '../host/server-settings.js';
import { DEFAULT_POLICY } from '../session/step-policy.js';
import { defined } from '../values/defined.js';
import type { ServerFlags } from './server-flags.js';
import { nodeOptions, readSettings } from './settings.js';
import { readGiven } from './usage-error.js';

/** Where the agents' relative paths start: at the first root as they see it. */
function workingFolder(roots: readonly string[], mounts: ServerSettings['mounts']): string {
  const [first = '/'] = roots;
  const mount = mounts.find(({ canonicalPrefix }) => first === canonicalPrefix || first.startsWith(`${canonicalPrefix}/`));
  return mount === undefined ? first : posix.join(mount.agentPrefix, first.slice(mount.canonicalPrefix.length));
}

/** Brings flags, environment and defaults together for a server. Throws UsageError for a flag that cannot be used. */
export function serverSettings(env: NodeJS.ProcessEnv, cwd: string, version: string, flags: ServerFlags): ServerSettings {
  const settings = readSettings(env, flags);
  const roots = (flags.root ?? [cwd]).map((root) => resolve(cwd, root));
  const mounts = (flags.mount ?? []).map((mount) => readGiven(() => parseMount(mount)));
  return {
    version,
    node: nodeOptions(settings),
    nodeUrl: settings.xtdbUrl,
    roots,
    cwd: workingFolder(roots, mounts),
    mounts,
    session: flags.session,
    takeOver: flags.takeOver ?? false,
    durability: flags.durability,
    policy: {
      window: flags.window ?? DEFAULT_POLICY.window,
      pauseMs: flags.turnPause === undefined ? DEFAULT_POLICY.pauseMs : flags.turnPause * 1_000,
    },
    tools: {
      bash: flags.allowBash ?? false,
      readOnly: flags.readOnly ?? false,
      strict: flags.strict ?? false,
      shortIds: flags.shortIds ?? false,
      ...defined({ maxOutputChars: flags.maxOutputChars }),
    },
  };
}

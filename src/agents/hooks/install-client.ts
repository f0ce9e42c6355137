import { chmod, copyFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { draftOf } from '../../process/drafts.js';
import { replaceFile } from '../../process/owned-file.js';
import { platformPackageFolder } from '../../process/platform-package.js';
import type { Surroundings } from '../agent.js';
import { findProgram } from '../installed.js';
import { runProgram } from '../run-program.js';
import { hookClient, makeHookFolder } from './hook-folder.js';

/** The kinds of client that hooks run. */
export type HookClient = 'package' | 'compiled' | 'script';

/** A sentence for the user about each kind. */
export const CLIENT_WORDS: Readonly<Record<HookClient, string>> = {
  package: 'Hooks run a small native program.',
  compiled: 'Hooks run a small native program, which the C compiler of this machine made.',
  script:
    'Hooks run a Node.js script, which takes about 40 ms per event: this installation has no native program for ' +
    'them, and there is no C compiler. Install the package of your platform or a compiler, then run setup again.',
};

const COMPILE_MS = 60_000;
/** Names of C compilers, in order of preference. */
const COMPILERS = ['cc', 'gcc', 'clang'] as const;

/** Replaces a program atomically, because hooks may run it at any time. */
async function place(client: string, make: (draft: string) => Promise<boolean>): Promise<boolean> {
  const draft = await draftOf(client);
  try {
    if (!(await make(draft))) return false;
    await chmod(draft, 0o700);
    await rename(draft, client);
    return true;
  } finally {
    await rm(draft, { force: true });
  }
}

/** Compiles the client. Returns false if no compiler can do that. */
async function compile(source: string, to: string, at: Surroundings): Promise<boolean> {
  const compiler = await findProgram(COMPILERS, at);
  if (compiler === undefined) return false;
  const args = ['-O2', '-std=c11', '-D_DEFAULT_SOURCE', '-D_DARWIN_C_SOURCE', '-o', to, source];
  const { code } = await runProgram(compiler, args, { env: at.env, cwd: dirname(to), limitMs: COMPILE_MS });
  return code === 0 && (await stat(to).then(Boolean, () => false));
}

/** Quotes a word for `sh`. */
const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

/**
 * Puts the client of hooks into the data folder. Uses the native client of the platform's package,
 * or compiles one with a C compiler of this machine, or uses a script. The client stays there when
 * npm moves or removes Palimpsest.
 */
export async function installHookClient(
  dataDir: string,
  { packageFolder, at }: { readonly packageFolder: string; readonly at: Surroundings },
): Promise<HookClient> {
  const client = hookClient(dataDir);
  await makeHookFolder(dataDir);
  const dist = join(packageFolder, 'dist');
  const folder = platformPackageFolder(join(dist, 'cli.js'));
  const copied = async (draft: string): Promise<boolean> =>
    folder !== undefined &&
    copyFile(join(folder, 'bin', 'palimpsest-hook'), draft).then(
      () => true,
      () => false,
    );
  if (await place(client, copied)) return 'package';
  if (await place(client, (draft) => compile(join(dist, 'palimpsest-hook.c'), draft, at))) return 'compiled';
  const [node, script] = [process.execPath, join(dist, 'palimpsest-hook.mjs')].map(quoted);
  // If Palimpsest was removed, the hook must exit silently.
  await replaceFile(client, `#!/bin/sh\n[ -x ${node} ] && [ -f ${script} ] || exit 0\nexec ${node} ${script} "$@"\n`);
  await chmod(client, 0o700);
  return 'script';
}

import { posix, win32 } from 'node:path';
import { SYSTEM, windowsProgram } from './system.js';

/** The variables and the platform that decide which file a program's name means. */
export interface ProgramSearch {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly platform: NodeJS.Platform;
}

/**
 * Returns the files that a program's name may mean, in the order of the PATH. Skips relative
 * folders of the PATH and, unlike Windows, the working folder: a cloned project must not choose the
 * programs that Palimpsest runs.
 */
export function programFiles(name: string, { env, platform }: ProgramSearch): readonly string[] {
  const path = env.PATH ?? env.Path ?? '';
  if (platform !== 'win32')
    return path.split(posix.delimiter).flatMap((folder) => (posix.isAbsolute(folder) ? posix.join(folder, name) : []));
  const endings = (env.PATHEXT || '.EXE;.CMD').split(';');
  const folders = path.split(win32.delimiter).filter(win32.isAbsolute);
  return folders.flatMap((folder) => endings.map((ending) => win32.join(folder, `${name}${ending}`)));
}

/** The arguments of `spawn` that start a program. */
export interface Spawned {
  readonly command: string;
  readonly args: readonly string[];
  readonly options: { readonly windowsHide: boolean; readonly windowsVerbatimArguments?: true };
}

/**
 * Characters that cannot be quoted. The Windows shell replaces `%`, and `"` ends a quoted argument.
 */
const UNQUOTABLE = /[%"\0\r\n]/;

/** Quotes an argument of a command file. Doubles last backslashes to protect the closing quote. */
const quoted = (arg: string): string => `"${arg.replace(/\\+$/, '$&$&')}"`;

/**
 * Returns how to start a program with exactly these arguments. Windows runs command files (`.cmd`,
 * `.bat`), as npm installs them, only through its shell, so all texts are quoted for it. Undefined
 * if a text cannot be quoted.
 */
export function spawnedAs(program: string, args: readonly string[]): Spawned | undefined {
  if (!/\.(?:cmd|bat)$/i.test(program)) return { command: program, args, options: { windowsHide: true } };
  if ([program, ...args].some((text) => UNQUOTABLE.test(text))) return undefined;
  return {
    command: windowsProgram('cmd.exe'),
    // The shell drops the outermost quotes.
    args: ['/d', '/v:off', '/s', '/c', `"${[program, ...args].map(quoted).join(' ')}"`],
    options: { windowsHide: true, windowsVerbatimArguments: true },
  };
}

/** Returns how to run a line of text in the system's shell: `/bin/sh`, or `cmd.exe` on Windows. */
export function inShell(line: string, { hasSignals }: { readonly hasSignals: boolean } = SYSTEM): Spawned {
  if (hasSignals) return { command: '/bin/sh', args: ['-c', line], options: { windowsHide: true } };
  return {
    command: windowsProgram('cmd.exe'),
    args: ['/d', '/s', '/c', `"${line}"`],
    options: { windowsHide: true, windowsVerbatimArguments: true },
  };
}

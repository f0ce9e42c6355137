import { mkdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '../../process/owned-file.js';
import { unlessMissing } from '../../process/system-error.js';

/** The agents with hooks, as named in the client's first argument and by the watcher. */
export const HOOK_AGENTS = ['claude-code', 'codex', 'gemini-cli'] as const;

/** An agent with hooks. */
export type HookAgent = (typeof HOOK_AGENTS)[number];

/** Returns the socket of `palimpsest watch`. */
export const watchSocket = (dataDir: string): string => join(dataDir, 'watch.sock');

/** Returns the folder that hooks, the watcher and `doctor` share. */
export const hookFolder = (dataDir: string): string => join(dataDir, 'hooks');

/** Returns the path of the client that hooks run. On Windows, a script is used instead. */
export const hookClient = (dataDir: string): string => join(hookFolder(dataDir), 'palimpsest-hook');

const startFile = (dataDir: string): string => join(hookFolder(dataDir), 'start');
/** The client writes this file when it starts the watcher. */
const startingMark = (dataDir: string): string => join(hookFolder(dataDir), 'starting');
const unreachedMark = (dataDir: string): string => join(hookFolder(dataDir), 'unreached');
const reachedMark = (dataDir: string, agent: HookAgent): string => join(hookFolder(dataDir), `rang-${agent}`);

/** Creates the folder. Only its owner can read it. */
export async function makeHookFolder(dataDir: string): Promise<void> {
  await mkdir(hookFolder(dataDir), { recursive: true, mode: 0o700 });
}

/**
 * Writes the command by which a hook starts the watcher, one word per line, so that the client
 * needs no JSON parser.
 * @throws {Error} if a word has a line break
 */
export async function writeStart(dataDir: string, words: readonly string[]): Promise<void> {
  if (words.some((word) => word.includes('\n')))
    throw new Error(`Hooks cannot use a path with a line break: ${JSON.stringify(words)}. Rename that folder.`);
  await makeHookFolder(dataDir);
  await replaceFile(startFile(dataDir), words.map((word) => `${word}\n`).join(''));
}

/**
 * Prevents hooks from starting the watcher until a setup or a watcher allows it again. An agent
 * that still runs may call its hooks after its settings were restored.
 */
export async function forbidStart(dataDir: string): Promise<void> {
  await rm(startFile(dataDir), { force: true });
}

/**
 * Records that an agent's hook reached the watcher. Removes the file that records an earlier
 * failure.
 */
export async function markReached(dataDir: string, agent: HookAgent, at: Date): Promise<void> {
  const mark = reachedMark(dataDir, agent);
  await makeHookFolder(dataDir);
  await utimes(mark, at, at).catch(() => writeFile(mark, '', { mode: 0o600 }));
  await rm(unreachedMark(dataDir), { force: true });
}

/** The state of an agent's hooks. */
export interface HookState {
  /** The last time that a hook reached the watcher. */
  readonly reached: Date | undefined;
  /** A failure since the last event of any agent, with the reason that the client wrote. */
  readonly unreached: { readonly at: Date; readonly reason: string } | undefined;
  /** The last time that a hook started the watcher. */
  readonly starting: Date | undefined;
}

/** Reads the state of an agent's hooks from the files of the folder. */
export async function hookState(dataDir: string, agent: HookAgent): Promise<HookState> {
  const [reached, starting, failed, reason] = await Promise.all([
    unlessMissing(stat(reachedMark(dataDir, agent))),
    unlessMissing(stat(startingMark(dataDir))),
    unlessMissing(stat(unreachedMark(dataDir))),
    unlessMissing(readFile(unreachedMark(dataDir), 'utf8')),
  ]);
  return {
    reached: reached?.mtime,
    starting: starting?.mtime,
    unreached: failed === undefined ? undefined : { at: failed.mtime, reason: (reason ?? '').trim() },
  };
}

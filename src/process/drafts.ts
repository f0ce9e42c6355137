import { createHash, randomBytes } from 'node:crypto';
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { identifyProcess, identifySelf, UNKNOWN_START } from './process-identity.js';

/**
 * Matches the name of a draft, an unfinished file or folder: its target and the process that writes
 * it.
 */
const DRAFT = /.\.(\d{1,10})-([0-9a-f]{16})-[0-9a-f]{16}\.draft$/;
/** Matches draft names of earlier versions, which do not name the process. */
const FORMER = /^\.palimpsest-[0-9a-f]{16}\.tmp$/;
/**
 * Matches draft names of earlier versions in data folders. In other folders, a user's file may have
 * such a name.
 */
const FORMER_DATA =
  /(?:\.json|\.lock|filesystem-id)\.(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{1,10}|new)$|^\.probe-\d+$/;
/** Age in milliseconds from which a draft of an earlier version counts as abandoned. */
const FORMER_MS = 86_400_000;

const startHash = (started: string): string => createHash('sha256').update(started).digest('hex').slice(0, 16);

/**
 * Returns a unique name for a draft that this process writes beside `path`. If this process is
 * killed, `removeDeadDrafts` finds the draft.
 */
export async function draftOf(path: string): Promise<string> {
  const { pid, started } = await identifySelf();
  return `${path}.${pid}-${startHash(started)}-${randomBytes(8).toString('hex')}.draft`;
}

async function isDead(folder: string, name: string, isDataFolder: boolean): Promise<boolean> {
  const [, pid, start] = DRAFT.exec(name) ?? [];
  if (pid !== undefined) {
    const now = await identifyProcess(Number(pid));
    if (now === undefined || now.started === UNKNOWN_START) return now === undefined;
    return startHash(now.started) !== start && startHash(UNKNOWN_START) !== start;
  }
  if (!FORMER.test(name) && !(isDataFolder && FORMER_DATA.test(name))) return false;
  const found = await stat(join(folder, name)).catch(() => undefined);
  return found !== undefined && Date.now() - found.mtimeMs > FORMER_MS;
}

/**
 * Removes the drafts that killed processes left in a folder, if `isOurs` accepts the name of their
 * target. Removes draft folders only with `recursive`. With `isDataFolder`, for folders with only
 * our files, also removes drafts of earlier versions. Touches no draft of a living process. Never
 * rejects: a draft that cannot be removed stays.
 */
export async function removeDeadDrafts(
  folder: string,
  {
    isOurs = () => true,
    recursive = false,
    isDataFolder = false,
  }: {
    readonly isOurs?: (name: string) => boolean;
    readonly recursive?: boolean;
    readonly isDataFolder?: boolean;
  } = {},
): Promise<void> {
  const names = await readdir(folder).catch((): string[] => []);
  for (const name of names) {
    if (!isOurs(name) || !(await isDead(folder, name, isDataFolder))) continue;
    await rm(join(folder, name), { recursive, force: true }).catch(() => undefined);
  }
}

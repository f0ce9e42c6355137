import { createHash, randomBytes } from 'node:crypto';
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { identifyProcess, identifySelf } from './process-identity.js';

/** A draft's name: what it is a draft of, and which process makes it. */
const DRAFT = /.\.(\d{1,10})-([0-9a-f]{16})-[0-9a-f]{16}\.draft$/;
/** As earlier versions named theirs, which says nothing of the process. */
const FORMER = /^\.palimpsest-[0-9a-f]{16}\.tmp$/;
/** As they named them in data folders: somebody's own file may be called so elsewhere. */
const FORMER_DATA = /(?:\.json|\.lock|filesystem-id)\.(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{1,10}|new)$|^\.probe-\d+$/;
/** Nobody takes a day to give a draft its name. */
const FORMER_MS = 86_400_000;

const startHash = (started: string): string => createHash('sha256').update(started).digest('hex').slice(0, 16);

/** A name, never given twice, for a draft that this process makes beside `path`; `removeDeadDrafts` finds it when this process is killed before it is done. */
export async function draftOf(path: string): Promise<string> {
  const { pid, started } = await identifySelf();
  return `${path}.${pid}-${startHash(started)}-${randomBytes(8).toString('hex')}.draft`;
}

async function isDead(folder: string, name: string, isDataFolder: boolean): Promise<boolean> {
  const [, pid, start] = DRAFT.exec(name) ?? [];
  if (pid !== undefined) {
    const now = await identifyProcess(Number(pid));
    return now === undefined || startHash(now.started) !== start;
  }
  if (!FORMER.test(name) && !(isDataFolder && FORMER_DATA.test(name))) return false;
  const found = await stat(join(folder, name)).catch(() => undefined);
  return found !== undefined && Date.now() - found.mtimeMs > FORMER_MS;
}

/**
 * Removes the drafts that killed processes left in a folder, of the names that are ours there; folders only with `recursive`, and with `isDataFolder`, for folders that hold nothing but ours, also those
 * that earlier versions left there. Nothing else is touched, no draft of a process that lives. Never rejects: what cannot be removed stays.
 */
export async function removeDeadDrafts(
  folder: string,
  {
    isOurs = () => true,
    recursive = false,
    isDataFolder = false,
  }: { readonly isOurs?: (name: string) => boolean; readonly recursive?: boolean; readonly isDataFolder?: boolean } = {},
): Promise<void> {
  const names = await readdir(folder).catch((): string[] => []);
  for (const name of names) {
    if (!isOurs(name) || !(await isDead(folder, name, isDataFolder))) continue;
    await rm(join(folder, name), { recursive, force: true }).catch(() => undefined);
  }
}

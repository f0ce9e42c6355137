import { randomUUID } from 'node:crypto';
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import writeFileAtomic from 'write-file-atomic';
import { identifySelf, isAlive, processIdentitySchema } from '../process/process-identity.js';
import type { DataFolder } from './data-folder.js';

/** A registration of this process as a user of a node. */
export interface Registration {
  /** Ends it; may be called any number of times. */
  remove(): Promise<void>;
}

/** Registers this process as a user of the node, which matters to whoever stops the node when the last user leaves. */
export async function registerUser(folder: DataFolder): Promise<Registration> {
  const path = join(folder.usersDir, `${randomUUID()}.json`);
  await writeFileAtomic(path, JSON.stringify(await identifySelf()), { mode: 0o600, fsync: false });
  return { remove: () => rm(path, { force: true }) };
}

/** How many registrations of living processes there are; those of dead processes are removed. */
export async function countUsers(folder: DataFolder): Promise<number> {
  const names = await readdir(folder.usersDir).catch(() => []);
  const alive = await Promise.all(
    names
      .filter((name) => name.endsWith('.json'))
      .map(async (name) => {
        const path = join(folder.usersDir, name);
        try {
          if (await isAlive(processIdentitySchema.parse(JSON.parse(await readFile(path, 'utf8'))))) return true;
        } catch {
          // Gone meanwhile, or cut off by a crash while it was written: no user either way.
        }
        await rm(path, { force: true });
        return false;
      }),
  );
  return alive.filter(Boolean).length;
}

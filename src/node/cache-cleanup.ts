import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** How long an installation stays although nothing has started from it. */
export const UNUSED_DAYS = 30;
/** A draft older than this was left by a build that died. */
const DRAFT_HOURS = 24;

/** Which names of a cache folder can go: drafts of dead builds and installations unused for long, never the current one and nothing unknown. */
export function expiredEntries(
  entries: readonly { readonly name: string; readonly usedMs: number }[],
  currentKey: string,
  nowMs: number,
): readonly string[] {
  const olderThan = (entry: { readonly usedMs: number }, hours: number): boolean => nowMs - entry.usedMs > hours * 3_600_000;
  return entries
    .filter((entry) => {
      if (/^\.draft-[0-9a-f-]{36}$/.test(entry.name)) return olderThan(entry, DRAFT_HOURS);
      const key = /^node-([0-9a-f]{16})$/.exec(entry.name)?.[1];
      return key !== undefined && key !== currentKey && olderThan(entry, UNUSED_DAYS * 24);
    })
    .map((entry) => entry.name);
}

/** Removes what no one needs any more from the cache folder. Failures are left for the next time. */
export async function removeOldInstallations(cacheDir: string, currentKey: string): Promise<void> {
  const names = await readdir(cacheDir).catch(() => []);
  const entries = await Promise.all(
    names.map(async (name) => ({ name, usedMs: (await stat(join(cacheDir, name)).catch(() => undefined))?.mtimeMs ?? Date.now() })),
  );
  for (const name of expiredEntries(entries, currentKey, Date.now())) {
    await rm(join(cacheDir, name), { recursive: true, force: true }).catch(() => undefined);
  }
}

import { posix } from 'node:path';
import type { LocatedFile } from '../client/session/file-access.js';
import type { ReportedMention } from '../client/session/reported-files.js';
import { datedFiles } from '../filesystem/access/regular-files.js';
import { MOST_DISCOVERED } from '../indexing/most-discovered.js';
import { canonicalPath } from '../objects/ids.js';
import { filesystemSource } from '../objects/source.js';
import type { Work } from './define-tool.js';

/** The files that a listing mentions, and a note where there were too many of them. */
export interface Discovered {
  readonly mentions: readonly ReportedMention[];
  readonly note: string | undefined;
}

/** Takes up what a listing of `folder` mentions [§5.6, Discovery]: existing regular files by their canonical paths. */
export async function discover(folder: LocatedFile, paths: readonly string[], work: Work): Promise<Discovered> {
  const { roots, mounts } = work.client.files.access;
  const files = await datedFiles(roots, paths.slice(0, MOST_DISCOVERED));
  const mentions = files.map(({ path, mtimeMs }) => {
    const canonical = canonicalPath(path);
    const filesystem = mounts.filesystemOfCanonical(canonical) ?? folder.location.filesystemId;
    return { source: filesystemSource(filesystem, canonical), mtimeMs };
  });
  const note =
    paths.length > MOST_DISCOVERED
      ? `[Only the first ${MOST_DISCOVERED} of these ${paths.length} files were added to your pool.]`
      : undefined;
  return { mentions, note };
}

/** A canonical path below a folder as the agent would write it, starting from the folder as it gave it. */
export function asGiven(folder: LocatedFile, path: string): string {
  return posix.join(folder.location.shown, posix.relative(folder.location.path, path)) || '.';
}

import { writeCopies } from '../../filesystem/restore/write-copies.js';
import { sessionObjectId } from '../../objects/ids.js';
import type { Timeline } from '../rebuild/timeline.js';
import { type PlannedFile, type RestorePlan, restoredBytes } from './restore-plan.js';

/** Files that were written as an agent had them. */
export interface RestoredCopies {
  /** The folder by its whole path. */
  readonly to: string;
  /** By their paths below it. */
  readonly written: readonly string[];
  /** Those of which only the hash was kept. */
  readonly left: readonly string[];
}

/** Where a file lies below a folder that is made: below the one folder of the session, or by its whole path. */
function copyPaths({ files }: RestorePlan, folders: readonly string[]): (file: PlannedFile) => string {
  const [root] = folders.length === 1 ? folders : [];
  const isBelow = root !== undefined && files.every(({ source }) => source.path.startsWith(`${root}/`));
  return ({ source }) => source.path.slice(isBelow ? root.length + 1 : 1);
}

/**
 * Writes the files of a plan into a folder of their own: all of them, or nothing.
 * @throws {RestoreError} `folder-in-use`, `not-a-folder`
 * @throws {SourceError} a path that cannot be made there
 * @throws {StoreError} `missing-part`, `corrupt-part`
 */
export async function copyRestored({ present }: Timeline, plan: RestorePlan, folder: string): Promise<RestoredCopies> {
  const key = sessionObjectId(plan.session);
  const folders = ((await present.heads([key])).get(key)?.marks.roots ?? []).map(({ path }) => path);
  const pathOf = copyPaths(plan, folders);
  const written: string[] = [];
  const left: string[] = [];
  async function* copies() {
    for (const file of plan.files) {
      const bytes = await restoredBytes(plan, file);
      if (bytes === undefined) {
        if (file.had !== null) left.push(file.display);
        continue;
      }
      const path = pathOf(file);
      written.push(path);
      yield { path, bytes };
    }
  }
  return { to: await writeCopies(folder, copies()), written, left };
}

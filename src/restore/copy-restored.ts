import type { Timeline } from '../history/rebuild/timeline.js';
import { sessionObjectId } from '../objects/ids.js';
import { type PlannedFile, type RestorePlan, restoredBytes } from './restore-plan.js';
import { writeCopies } from './write-copies.js';

/** Files written as an agent had them. */
export interface RestoredCopies {
  /** The absolute path of the folder. */
  readonly to: string;
  /** Paths below the folder. */
  readonly written: readonly string[];
  /** Files without a recorded text at the moment. The database has at most their hash. */
  readonly left: readonly string[];
}

/**
 * Returns the path of a file in the new folder: its path below the session's only folder, or its
 * absolute path.
 */
function copyPaths({ files }: RestorePlan, folders: readonly string[]): (file: PlannedFile) => string {
  const [root] = folders.length === 1 ? folders : [];
  const isBelow = root !== undefined && files.every(({ source }) => source.path.startsWith(`${root}/`));
  return ({ source }) => source.path.slice(isBelow ? root.length + 1 : 1);
}

/**
 * Writes the files of a plan into a new folder: all of them, or nothing.
 *
 * @throws {RestoreError} `folder-in-use`, `not-a-folder`
 * @throws {SourceError} if a path cannot be created there
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
        if (file.had !== null || file.state === 'not-recorded') left.push(file.display);
        continue;
      }
      const path = pathOf(file);
      written.push(path);
      yield { path, bytes };
    }
  }
  return { to: await writeCopies(folder, copies()), written, left };
}

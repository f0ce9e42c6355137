import { readdir, realpath, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { StoredSessionsError, storedSessions } from '../lab/recordings/opencode/stored-sessions.js';
import { codeOf } from '../values/thrown.js';
import type { AgentHome } from './agent-homes.js';

/** A file that is named like a recording. */
export interface FoundFile {
  readonly home: AgentHome;
  readonly path: string;
  readonly size: number;
  /** Milliseconds since 1970. */
  readonly mtime: number;
}

/** A file or folder that could not be read, with the reason. */
export interface UnreadFile {
  readonly path: string;
  readonly reason: string;
}

/** The recordings of agents on this machine, and what could not be read. */
export interface FoundFiles {
  readonly files: readonly FoundFile[];
  readonly unread: readonly UnreadFile[];
}

/**
 * Returns the paths of all entries in a folder and its subfolders. A missing folder has none. A
 * folder that cannot be read is added to `unread`, and the others are still searched.
 */
async function entriesBelow(folder: string, unread: UnreadFile[]): Promise<readonly string[]> {
  const found: string[] = [];
  for (const folders = [folder]; folders.length > 0; ) {
    const next = folders.pop() as string;
    try {
      for (const entry of await readdir(next, { withFileTypes: true }))
        (entry.isDirectory() ? folders : found).push(join(next, entry.name));
    } catch (error) {
      const code = codeOf(error);
      if (code === undefined) throw error;
      if (code !== 'ENOENT') unread.push({ path: next, reason: `unreadable (${code})` });
    }
  }
  return found;
}

/**
 * Finds the recordings of agents by place and name, without opening them. A file with several paths
 * counts once.
 */
export async function findFiles(homes: readonly AgentHome[]): Promise<FoundFiles> {
  const files: FoundFile[] = [];
  const unread: UnreadFile[] = [];
  const seen = new Set<string>();
  for (const home of homes) {
    for (const folder of home.folders) {
      for (const path of await entriesBelow(folder, unread)) {
        if (!home.isRecording(join('/', relative(folder, path)))) continue;
        try {
          const [real, found] = [await realpath(path), await stat(path)];
          if (seen.has(real) || !found.isFile()) continue;
          seen.add(real);
          if (home.isDatabase === true) files.push(...storedSessions(path).map((session) => ({ home, ...session })));
          else files.push({ home, path, size: found.size, mtime: found.mtimeMs });
        } catch (error) {
          if (error instanceof StoredSessionsError) {
            unread.push({ path, reason: error.message });
            continue;
          }
          const code = codeOf(error);
          if (code === undefined) throw error;
          unread.push({ path, reason: `unreadable (${code})` });
        }
      }
    }
  }
  return { files, unread };
}

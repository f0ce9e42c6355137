import type { AgentHome } from './agent-homes.js';
import { type FoundFile, findFiles, type UnreadFile } from './find-files.js';
import { readFacts } from './read-facts.js';
import type { SessionFacts } from './session-facts.js';
import type { SessionIndex } from './session-index.js';

/** A session that an agent recorded on this machine. */
export interface FoundSession extends SessionFacts {
  readonly file: FoundFile;
}

/** The sessions of all agents, the most recently used first, and files that are no sessions. */
export interface FoundSessions {
  readonly sessions: readonly FoundSession[];
  readonly unread: readonly UnreadFile[];
}

/** Options of a search. */
export interface FindOptions {
  readonly homes: readonly AgentHome[];
  readonly index: SessionIndex;
  /** Called with the number of bytes read so far and in total. Only files that changed are read. */
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

/** Clocks of two machines differ by less. */
const CLOCKS_MS = 86_400_000;

/**
 * Returns when a session was last used: by its own clock, else by the file's. A time in the future
 * is wrong and would make the session the newest for years.
 */
export const lastUse = ({ endedAt, file }: FoundSession): number =>
  endedAt !== undefined && endedAt <= Date.now() + CLOCKS_MS ? endedAt : file.mtime;

/** Returns the sessions that people started, without sub-agents. */
export const ownSessions = (sessions: readonly FoundSession[]): readonly FoundSession[] =>
  sessions.filter(({ subagentOf, calls, turns }) => subagentOf === undefined && (calls > 0 || turns > 0));

/**
 * Finds the sessions of all agents. Reads the files that are new or have changed and keeps their
 * facts in the index. A file that cannot be read never ends the search.
 */
export async function findSessions({ homes, index, onProgress, signal }: FindOptions): Promise<FoundSessions> {
  const { files, unread } = await findFiles(homes);
  const sessions: FoundSession[] = [];
  const others = [...unread];
  const total = files.reduce((sum, file) => sum + (index.known(file) === undefined ? file.size : 0), 0);
  let done = 0;
  for (const file of files) {
    let read = index.known(file);
    if (read === undefined) {
      read = await readFacts(file, signal);
      index.keep(file, read);
      done += file.size;
      onProgress?.(done, total);
    }
    if ('facts' in read) sessions.push({ ...read.facts, file });
    else others.push({ path: file.path, reason: read.reason });
  }
  index.keepOnly(files);
  await index.save();
  sessions.sort((a, b) => lastUse(b) - lastUse(a));
  return { sessions, unread: others };
}

import type { MaskLoader } from '../client/record-mask.js';
import type { AgentHome } from './agent-homes.js';
import { type FoundFile, findFiles, type UnreadFile } from './find-files.js';
import { readRecording } from './read-facts.js';
import type { SessionFacts } from './session-facts.js';
import type { SessionIndex } from './session-index.js';

/** A session that an agent recorded on this machine. */
export interface FoundSession extends SessionFacts {
  readonly file: FoundFile;
}

/**
 * The sessions of all agents, most recently used first, and files that could not be read as
 * sessions.
 */
export interface FoundSessions {
  readonly sessions: readonly FoundSession[];
  readonly unread: readonly UnreadFile[];
}

/** Options of a search. */
export interface FindOptions {
  readonly homes: readonly AgentHome[];
  readonly index: SessionIndex;
  readonly mask: MaskLoader;
  /** Whether to compute the context use as well, in the same pass. Default: false. */
  readonly withUse?: boolean;
  /** Called with the number of bytes read so far and the total. Only changed files are read. */
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

/** Maximum difference between the clocks of two machines. */
const CLOCKS_MS = 86_400_000;

/**
 * Returns when a session was last used, by its own times or else by the file's time. A time in the
 * future is ignored, because the session would stay the newest one for long.
 */
export const lastUse = ({ endedAt, file }: FoundSession): number =>
  endedAt !== undefined && endedAt <= Date.now() + CLOCKS_MS ? endedAt : file.mtime;

/** Returns the sessions that people started, which excludes sub-agents. */
export const ownSessions = (sessions: readonly FoundSession[]): readonly FoundSession[] =>
  sessions.filter(({ subagentOf, calls, turns }) => subagentOf === undefined && (calls > 0 || turns > 0));

function hasFacts(index: SessionIndex, file: FoundFile): boolean {
  const known = index.known(file);
  return known !== undefined && 'facts' in known;
}

/**
 * Finds the sessions of all agents. It reads new and changed files and stores their facts in the
 * index. A file that cannot be read does not end the search.
 */
export async function findSessions({
  homes,
  index,
  mask,
  withUse = false,
  onProgress,
  signal,
}: FindOptions): Promise<FoundSessions> {
  const { files, unread } = await findFiles(homes);
  const sessions: FoundSession[] = [];
  const others = [...unread];
  const isKnown = (file: FoundFile): boolean =>
    index.known(file) !== undefined && (!withUse || index.knownUse(file) !== undefined || !hasFacts(index, file));
  const total = files.reduce((sum, file) => sum + (isKnown(file) ? 0 : file.size), 0);
  let done = 0;
  for (const file of files) {
    let read = isKnown(file) ? index.known(file) : undefined;
    if (read === undefined) {
      const found = await readRecording(file, { withUse, mask, signal });
      read = found.read;
      index.keep(file, read);
      if (found.use !== undefined) index.keepUse(file, found.use);
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

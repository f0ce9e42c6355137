import { createHash } from 'node:crypto';
import { FOLLOWER, isFollowed } from '../host/followed-session.js';
import { type ImportedSession, importedSessions, noteImported } from '../host/imported-sessions.js';
import { ownId } from '../host/own-id.js';
import type { RecordingSource } from '../lab/recordings/importer.js';
import { openRecording } from '../lab/recordings/open-recording.js';
import { parseReplayConfig } from '../lab/replay/replay-config.js';
import type { ReplayDatabase } from '../lab/replay/replay-database.js';
import { ReplayError } from '../lab/replay/replay-error.js';
import { type DeliveredReplay, type RecordingReplay, replayRecording } from '../lab/replay/replay-recording.js';
import { filesystemId, type SessionId, sessionId, sessionObjectId } from '../objects/ids.js';
import type { ObjectStore } from '../store/object-store.js';
import { defined } from '../values/defined.js';
import type { ChosenSession } from './choose-session.js';

/** The facts of a session's file that are stored with its import. */
export type RecordedFile = Pick<
  ChosenSession,
  'id' | 'agent' | 'title' | 'folder' | 'path' | 'size' | 'mtime' | 'subagentOf'
>;

/**
 * An import of a file that its agent is still writing. It lasts as long as the file is followed.
 */
export interface LiveImport extends Pick<RecordingReplay, 'disk' | 'onEntry'> {
  /** Opens the growing file from its start. */
  source(): Promise<RecordingSource>;
  /** Called when the import begins to write to a session. */
  onBegin(session: SessionId, running: Parameters<NonNullable<RecordingReplay['onBegin']>>[0]): void;
  /** Returns the file's facts at the end of the import. */
  ended(): Pick<RecordedFile, 'title' | 'size' | 'mtime'>;
}

/** The effect that opening a session had on the database. */
export interface OpenedSession {
  readonly session: SessionId;
  /**
   * - `imported`: imported for the first time
   * - `continued`: the recording had grown since the last import
   * - `anew`: an earlier part of the recording had changed, so it was imported as another session
   * - `unchanged`: there was nothing to import
   * - `recorded`: Palimpsest itself recorded the session
   * - `followed`: `palimpsest watch` is importing the session now
   */
  readonly outcome: 'imported' | 'continued' | 'anew' | 'unchanged' | 'recorded' | 'followed';
}

/** The database and callbacks of an import. */
export interface ImportInto {
  readonly database: ReplayDatabase & { readonly dataDir: string };
  readonly store: ObjectStore;
  /** Called with the number of bytes read so far and the total. */
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
  /**
   * Set to follow the file while it grows. Without it, the import stops at the file's current end.
   */
  readonly live?: LiveImport;
}

const hashOf = (...parts: readonly string[]): string => createHash('sha256').update(parts.join('\n')).digest('hex');

/** Token counts are off, because counting would take longer than the rest of the import. */
const CONFIG = parseReplayConfig({ tokens: false }, 'an import');

async function replayInto(
  session: SessionId,
  chosen: RecordedFile,
  { database, onProgress, signal, live }: ImportInto,
): Promise<void> {
  const { agent, title, folder, path, size, mtime, subagentOf } = chosen;
  const noted: ImportedSession = {
    agent,
    title,
    path,
    size,
    mtime,
    ...defined({ folder, subagentOf: subagentOf === undefined ? undefined : ownId(subagentOf) }),
  };
  // An import that was killed stays marked as incomplete, so the next import continues it.
  await noteImported(database.dataDir, session, { ...noted, size: -1 });
  const source = await (live === undefined ? openRecording(path) : live.source());
  await replayRecording(source, database, {
    config: CONFIG,
    // The ids of files stay the same when the recording grows.
    identity: { session, filesystemId: filesystemId(`replay-${hashOf(agent, session)}`) },
    growing: true,
    sessionOf: ownId,
    onProgress: ({ bytes, total }) => onProgress?.(bytes, total),
    ...defined({ signal, disk: live?.disk, onEntry: live?.onEntry }),
    ...(live === undefined
      ? {}
      : { what: FOLLOWER, onBegin: (running: DeliveredReplay) => live.onBegin(session, running) }),
    conclude: () => undefined,
  });
  await noteImported(database.dataDir, session, { ...noted, size: source.size, ...live?.ended() });
}

/** Maximum number of sessions for one recording whose earlier parts keep changing. */
const MOST_ANEW = 20;

/**
 * Imports a recorded session under the agent's own id, or continues an earlier import. Reads the
 * recording only. Does not change a session that Palimpsest itself recorded.
 * @throws {RecordingError} if the recording cannot be read
 * @throws {SessionError} such as `lease-held`. A later import continues
 * @throws {XtdbError} from the database. A later import continues
 */
export async function importSession(chosen: RecordedFile, into: ImportInto): Promise<OpenedSession> {
  const first = ownId(chosen.id);
  const { store, database, live } = into;
  const noted = await importedSessions(database.dataDir);
  for (let nth = 1; nth <= MOST_ANEW; nth += 1) {
    const session = nth === 1 ? first : sessionId(`${first}+${nth}`);
    const earlier = noted.get(session);
    const exists = (await (await store.latest()).heads([sessionObjectId(session)])).size > 0;
    if (exists && earlier === undefined) return { session, outcome: 'recorded' };
    const isKnown = earlier?.size === chosen.size && earlier.mtime === chosen.mtime;
    // A follower needs its session open, even if there is nothing to import.
    if (exists && isKnown && live === undefined) return { session, outcome: 'unchanged' };
    try {
      await replayInto(session, chosen, into);
      return { session, outcome: nth > 1 && !exists ? 'anew' : exists ? 'continued' : 'imported' };
    } catch (error) {
      if (live === undefined && (await isFollowed(database.dataDir, session))) return { session, outcome: 'followed' };
      if (!(error instanceof ReplayError) || error.code !== 'other-session') throw error;
    }
  }
  throw new ReplayError(
    'other-session',
    `${chosen.path} has changed ${MOST_ANEW} times since its first import, the maximum for one data folder: name ` +
      'another one with --data',
  );
}

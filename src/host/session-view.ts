import type { ContextClientOptions } from '../client/session/client-options.js';
import { ContextClient } from '../client/session/context-client.js';
import type { ViewedSession } from '../client/session/viewed-session.js';
import { SourceError } from '../filesystem/access/errors.js';
import { type FilesystemId, type SessionId, sessionObjectId } from '../objects/ids.js';
import type { ObjectStore } from '../store/object-store.js';
import type { WatchedSession } from './followed-session.js';

/** A session that `palimpsest watch` writes, opened here only to answer an agent's calls. */
export interface SessionView {
  readonly session: ViewedSession;
  /** The client that reads the agent's paths, which lead to the session's own file objects. */
  readonly client: ContextClient;
  close(): Promise<void>;
}

/**
 * Returns the filesystem id of a followed session. Each followed session has its own filesystem id,
 * because its files have the texts of the transcript, not those on disk. Undefined for any other
 * session.
 */
async function filesystemOf(store: ObjectStore, id: SessionId): Promise<FilesystemId | undefined> {
  const key = sessionObjectId(id);
  const head = (await (await store.latest()).heads([key])).get(key);
  return head?.marks.roots?.findLast(({ path }) => path === '/')?.filesystemId;
}

/** Returns whether a folder is inside a client's roots. */
const isInside = (client: ContextClient, folder: string): Promise<boolean> =>
  client.files.locate(folder, { mustExist: false }).then(
    () => true,
    (error: unknown) => {
      if (error instanceof SourceError) return false;
      throw error;
    },
  );

/**
 * Opens a session that `palimpsest watch` writes. Files inside the options' roots are read from
 * disk, as files of the session. Undefined if the database does not have such a session yet, or if
 * its folder is unknown. Also undefined if the folder is outside the roots, unless `shareSessions`
 * is set.
 */
export async function openSessionView(
  store: ObjectStore,
  { session: id, folder }: WatchedSession,
  options: Omit<ContextClientOptions, 'filesystemId' | 'agentFilesystemId'>,
): Promise<SessionView | undefined> {
  const filesystemId = folder === undefined ? undefined : await filesystemOf(store, id);
  if (folder === undefined || filesystemId === undefined) return undefined;
  const client = await ContextClient.create({ ...options, filesystemId, journal: false, track: false });
  const close = async (): Promise<void> => {
    await client.close();
  };
  // A server opens only sessions whose folder is inside its roots (decision 0013).
  const isAllowed = options.shareSessions === true || (await isInside(client, folder));
  const session = isAllowed ? await client.view(id) : undefined;
  if (session !== undefined) return { session, client, close };
  await close();
  return undefined;
}

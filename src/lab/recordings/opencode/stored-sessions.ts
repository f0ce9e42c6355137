import { realpathSync } from 'node:fs';
import { messageOf } from '../../../values/thrown.js';

/** A database of the SQLite module in newer versions of Node. */
interface Database {
  prepare(sql: string): {
    all(...values: readonly string[]): readonly Readonly<Record<string, unknown>>[];
    iterate(...values: readonly string[]): Iterable<Readonly<Record<string, unknown>>>;
  };
  exec(sql: string): void;
  close(): void;
}
type DatabaseClass = new (path: string, options: { readonly readOnly: true }) => Database;

/** Thrown if OpenCode's database cannot be read. The message says why, and what to do. */
export class StoredSessionsError extends Error {
  override readonly name = 'StoredSessionsError';
}

/**
 * Returns Node's SQLite module. Suppresses Node's warning that the module is experimental, which
 * does not help the user of a command. Undefined before Node 22.13.
 */
function databaseClass(): DatabaseClass | undefined {
  const { getBuiltinModule, emitWarning } = process;
  process.emitWarning = () => undefined;
  try {
    const module: unknown = getBuiltinModule?.('node:sqlite');
    return (module as { readonly DatabaseSync?: DatabaseClass } | undefined)?.DatabaseSync;
  } finally {
    process.emitWarning = emitWarning;
  }
}

function openDatabase(path: string): Database {
  const Opened = databaseClass();
  if (Opened === undefined)
    throw new StoredSessionsError(`a database that Node ${process.version} cannot read: use Node 22.13 or newer`);
  try {
    return new Opened(path, { readOnly: true });
  } catch (error) {
    throw new StoredSessionsError(`unreadable (${messageOf(error)})`);
  }
}

function withDatabase<T>(path: string, work: (database: Database) => T): T {
  const database = openDatabase(path);
  try {
    return work(database);
  } catch (error) {
    throw error instanceof StoredSessionsError ? error : new StoredSessionsError(`unreadable (${messageOf(error)})`);
  } finally {
    database.close();
  }
}

/** A session in OpenCode's database. */
export interface StoredSession {
  /** The path by which `openRecording` opens it: `opencode.db#ses_…`. */
  readonly path: string;
  /**
   * Number of characters in the session's messages and parts. Almost every change of the session
   * changes this number.
   */
  readonly size: number;
  /** Milliseconds since 1970. */
  readonly mtime: number;
}

const LENGTHS = `select session_id, sum(length(data)) as size from
  (select session_id, data from message union all select session_id, data from part)`;

const pathOf = (database: string, id: unknown): string => `${database}#${String(id)}`;

const SESSIONS = `select id, time_updated, size from session join (${LENGTHS} group by session_id) on session_id = id`;

const sessionAt = (path: string, { id, time_updated: mtime, size }: Readonly<Record<string, unknown>>) => ({
  path: pathOf(path, id),
  size: Number(size),
  mtime: Number(mtime),
});

/**
 * Lists the sessions in a database of OpenCode 1.
 * @throws {StoredSessionsError}
 */
export function storedSessions(path: string): readonly StoredSession[] {
  return withDatabase(path, (database) =>
    database
      .prepare(SESSIONS)
      .all()
      .map((row) => sessionAt(path, row)),
  );
}

/**
 * The state of a database when it was last read: the time of the latest change, and the rows
 * changed at that time.
 */
export interface DatabaseLook {
  /** Milliseconds since 1970. */
  readonly since: number;
  readonly rows: ReadonlySet<string>;
}

/**
 * Returns the sessions that changed since an earlier look at the database, and the new
 * `DatabaseLook` for the next call. Reads no content.
 * @throws {StoredSessionsError}
 */
export function changedSessions(path: string, { since: before, rows: known }: DatabaseLook) {
  const since = Math.floor(before);
  const all = ['session', 'message', 'part'].map((table) => {
    const columns = table === 'session' ? 'id as session, 0 as size' : 'session_id as session, length(data) as size';
    return `select id, time_updated as at, ${columns} from ${table} where time_updated >= ${since}`;
  });
  const sql = all.join(' union all ');
  const found = withDatabase(path, (database) => database.prepare(sql).all());
  const last = found.reduce((latest, { at }) => Math.max(latest, Number(at)), since);
  // Two changes of a session may have the same time. Then the size usually differs.
  const nameOf = ({ id, at, size }: Readonly<Record<string, unknown>>): string => `${id} ${at} ${size}`;
  const fresh = found.filter((row) => !known.has(nameOf(row)));
  const rows = new Set(found.filter(({ at }) => Number(at) === last).map(nameOf));
  return {
    paths: [...new Set(fresh.map(({ session }) => pathOf(path, session)))],
    look: { since: last, rows } satisfies DatabaseLook,
  };
}

/** A database and the id of one of its sessions. */
interface StoredPlace {
  readonly database: string;
  readonly id: string;
}

/** Splits a path like `opencode.db#ses_…` into database and session. Undefined for other paths. */
export function storedSessionAt(path: string): StoredPlace | undefined {
  const [, database, id] = /^(.+\.db)#(ses_[A-Za-z0-9]+)$/s.exec(path) ?? [];
  return database === undefined || id === undefined ? undefined : { database, id };
}

/** Returns the real path of a recording, which may be a session in a database. */
export function realRecordingPath(path: string): string {
  const stored = storedSessionAt(path);
  return stored === undefined ? realpathSync(path) : pathOf(realpathSync(stored.database), stored.id);
}

/** Returns a session's fields that the export names differently from the columns. */
function infoOf(row: Readonly<Record<string, unknown>>): object {
  const { id, parent_id: parentID, directory, title, version, model, time_created, time_updated } = row;
  const time = { created: time_created, updated: time_updated };
  const named = typeof model === 'string' ? JSON.parse(model) : undefined;
  return { id, ...(parentID === null ? {} : { parentID }), directory, title, version, model: named, time };
}

/**
 * A prompt is stored part by part. It is complete once no part has changed for this many
 * milliseconds.
 */
const PROMPT_REST_MS = 1_000;

/**
 * Returns the id of the last message if that message is not final yet. An answer is final once the
 * model has finished it. A prompt is final after `PROMPT_REST_MS` without a change.
 */
function unfinishedMessage(database: Database, id: string): unknown {
  const newest = 'select id, data from message where session_id = ? order by time_created desc, id desc limit 1';
  const [last] = database.prepare(newest).all(id);
  if (last === undefined) return undefined;
  const { role, error, time } = JSON.parse(String(last.data));
  if (role === 'assistant') return error === undefined && time?.completed === undefined ? last.id : undefined;
  const parts = 'select max(time_updated) as at from part where message_id = ?';
  const [{ at = null } = {}] = database.prepare(parts).all(String(last.id));
  return at === null || Date.now() - Number(at) < PROMPT_REST_MS ? last.id : undefined;
}

/**
 * Streams a stored session as `opencode export` writes it. The database is read in one transaction.
 * The stream ends before a message that is still being written.
 * @throws {StoredSessionsError}
 */
export function* storedDocument(path: string, id: string): Iterable<string> {
  const database = openDatabase(path);
  try {
    database.exec('begin');
    const [session] = database.prepare('select * from session where id = ?').all(id);
    if (session === undefined) throw new StoredSessionsError(`it has no session ${id}`);
    yield `{"info":${JSON.stringify(infoOf(session))},"messages":[`;
    const parts = database.prepare('select data from part where message_id = ? order by id');
    const unfinished = unfinishedMessage(database, id);
    const messages = database.prepare('select id, data from message where session_id = ? order by time_created, id');
    let comma = '';
    for (const message of messages.iterate(id)) {
      if (message.id === unfinished) break;
      const info = { ...JSON.parse(String(message.data)), id: message.id };
      yield `${comma}{"info":${JSON.stringify(info)},"parts":[`;
      yield parts
        .all(String(message.id))
        .map(({ data }) => String(data))
        .join(',');
      yield ']}';
      comma = ',';
    }
    yield ']}';
  } finally {
    database.close();
  }
}

/**
 * Returns a stored session in the form of `storedSessions`. Undefined if it has no message.
 * @throws {StoredSessionsError}
 */
export function storedSession({ database: path, id }: StoredPlace): StoredSession | undefined {
  return withDatabase(path, (database) => {
    const lengths = `${LENGTHS} where session_id = ?1 group by session_id`;
    const sql = `select id, time_updated, size from session join (${lengths}) on session_id = id`;
    const [row] = database.prepare(sql).all(id);
    return row === undefined ? undefined : sessionAt(path, row);
  });
}

import { hashText } from '../objects/hashes.js';
import { type SessionId, sessionId, sessionObjectId, sessionOfStepCall } from '../objects/ids.js';
import { marksOf } from '../store/head.js';
import type { SessionDocuments } from '../store/session-documents.js';
import { BundleError } from './bundle-error.js';
import { bundleLine } from './bundle-lines.js';
import type { CheckedBundle, CheckedPut } from './check-bundle.js';

/** The versions of a bundle that a database already holds. */
export interface HeldVersions {
  isThere(put: CheckedPut): boolean;
  /** Returns whether the database holds a document with this id. */
  isKnown(id: string): boolean;
  /** Whether the database holds all versions of the bundle. */
  readonly isAll: boolean;
  /** The sessions of the bundle that the database does not hold. */
  readonly newSessions: readonly string[];
  /**
   * The files whose versions the import keeps private to its sessions, because the database already
   * has these files (decision F10).
   */
  readonly lined: readonly string[];
}

const keyOf = (id: string, validTime: number): string => `${id}\0${validTime}`;

/** Returns whether a document can belong to one session only. */
function belongsTo(id: string, session: string): boolean {
  const own = [`session:${session}`, `chat:${session}`, `system_prompt:${session}`];
  const parts = [`step:${session}:`, `snapshot:${session}:`, `assembly:${session}:`];
  return (
    own.includes(id) ||
    parts.some((prefix) => id.startsWith(prefix)) ||
    (id.startsWith('record:') && id.includes(`:session:${session}:`))
  );
}

const conflict = (why: string): BundleError => new BundleError('conflict', `${why}; nothing was changed`);

/**
 * Versions in a database, by object and valid time. Each version is represented by the hash of its
 * bundle line.
 */
type Here = ReadonlyMap<string, ReadonlyMap<number, string>>;

/** Reads the versions of some objects in a database. */
async function versionsHere(documents: SessionDocuments, ids: readonly string[]): Promise<Here> {
  const places = await documents.places(ids);
  const found = await documents.at(places);
  const here = new Map<string, Map<number, string>>();
  for (const [i, { id, validTime }] of places.entries()) {
    const versions = here.get(id) ?? new Map<number, string>();
    here.set(id, versions);
    versions.set(validTime.getTime(), hashText(bundleLine({ put: found[i], valid: validTime.toISOString() })));
  }
  return here;
}

/**
 * Returns the files whose versions an import keeps private to its sessions (decision F10): every
 * file that the database already has. Files with only equal versions count too, because the two
 * databases may have learned the versions at different times. A file does not count if this import
 * wrote a version of it before an interruption.
 */
function linedFiles(
  puts: readonly CheckedPut[],
  { here, written }: { readonly here: Here; readonly written: ReadonlySet<string> },
): readonly string[] {
  const brought = new Set<string>();
  const own = new Set<string>();
  for (const put of puts) {
    if (put.type !== 'file' || !here.has(put.id)) continue;
    brought.add(put.id);
    if (written.has(keyOf(put.id, put.validTime))) own.add(put.id);
  }
  return [...brought].filter((id) => !own.has(id));
}

/**
 * Rejects calls whose ids a session of this database will give to its next calls. After the import,
 * the ids would no longer be free.
 */
async function checkStepCalls(
  puts: readonly CheckedPut[],
  sessions: readonly string[],
  documents: SessionDocuments,
): Promise<void> {
  const named = new Map<SessionId, string>();
  for (const { id, type } of puts) {
    const owner = type === 'toolcall' ? sessionOfStepCall(id) : undefined;
    if (owner !== undefined && !sessions.includes(owner)) named.set(owner, id);
  }
  const here = await documents.newest([...named.keys()].map(sessionObjectId));
  for (const [owner, id] of named)
    if (here.has(sessionObjectId(owner)))
      throw conflict(
        `the bundle has the call ${JSON.stringify(id)}, an id for calls of session ${owner}, which is in this ` +
          'database. Import the bundle with --data into another data folder',
      );
}

/** Compares the versions of a bundle with those that a database holds of the same objects. */
export async function heldVersions(
  puts: readonly CheckedPut[],
  {
    documents,
    sessions,
    written,
  }: {
    readonly documents: SessionDocuments;
    readonly sessions: readonly string[];
    /** The versions that this import wrote before it was interrupted. */
    readonly written: ReadonlySet<string>;
  },
) {
  const ids = [...new Set(puts.map(({ id }) => id))];
  const known = new Set((await documents.newest(ids)).keys());
  const types = new Map(puts.map(({ id, type }) => [id, type]));
  // Records of contexts are compared by id. The id covers all content except the basis, which
  // differs between databases.
  const compared = ids.filter((id) => known.has(id) && types.get(id) !== 'assembly');
  const here = await versionsHere(documents, compared);
  const isThere = ({ id, type, validTime, sha256 }: CheckedPut): boolean =>
    type === 'assembly' ? known.has(id) : here.get(id)?.get(validTime) === sha256;
  const missing = puts.filter((put) => !isThere(put));
  const newSessions = sessions.filter((session) => !known.has(sessionObjectId(session as never)));
  const lined = linedFiles(puts, { here, written });
  const held: HeldVersions = {
    isThere,
    isKnown: (id) => known.has(id),
    isAll: missing.length === 0,
    newSessions,
    lined,
  };
  return { held, missing, here };
}

/**
 * Rejects a different bundle of a session that the database has. An import adds whole sessions and
 * never extends one.
 */
async function checkKnown(
  { header, transactions }: CheckedBundle,
  {
    held,
    missing,
    documents,
  }: { readonly held: HeldVersions; readonly missing: readonly CheckedPut[]; readonly documents: SessionDocuments },
): Promise<void> {
  const [lacking] = missing;
  const session = sessionId(header.session);
  if (lacking === undefined || held.newSessions.includes(session)) return;
  const head = (await documents.newest([sessionObjectId(session)])).get(sessionObjectId(session));
  const steps = head === undefined ? 0 : (marksOf(head).upto ?? 0);
  const total = transactions.reduce((sum, { puts }) => sum + puts.length, 0);
  const how =
    header.step > steps
      ? `the bundle is a later state of the session, up to step ${header.step}`
      : `the bundle is another state of the session, up to step ${header.step}`;
  throw conflict(
    `the database holds session ${session} already, up to step ${steps}, and ${how}. ${missing.length} of its ` +
      `${total} versions are missing here, such as ${JSON.stringify(lacking.id)}. An import never changes an ` +
      'existing session: import it with --data into another data folder',
  );
}

/**
 * Compares a checked bundle with a database, and returns the versions that it already holds.
 *
 * @throws {BundleError} `conflict`
 */
export async function compareWithDatabase(
  bundle: CheckedBundle,
  documents: SessionDocuments,
  written: ReadonlySet<string>,
): Promise<HeldVersions> {
  const { sessions } = bundle.header;
  const puts = bundle.transactions.flatMap((transaction) => transaction.puts);
  const { held, missing, here } = await heldVersions(puts, { documents, sessions, written });
  await checkStepCalls(missing, sessions, documents);
  const other = missing.find(
    ({ id, type, validTime }) =>
      type !== 'file' && (here.get(id)?.has(validTime) === true || (here.has(id) && type === 'toolcall')),
  );
  if (other !== undefined)
    throw conflict(
      `the ${other.type} ${JSON.stringify(other.id)} of the database differs from that of the bundle. Import the ` +
        'bundle with --data into another data folder',
    );
  const isResumed = written.size > 0;
  if (!isResumed) await checkKnown(bundle, { held, missing, documents });
  for (const session of sessions) {
    const lacking =
      isResumed || held.newSessions.includes(session) ? undefined : missing.find(({ id }) => belongsTo(id, session));
    if (lacking !== undefined)
      throw conflict(
        `session ${session} of the database differs from that of the bundle: ${JSON.stringify(lacking.id)} differs ` +
          'or is missing. Import the bundle with --data into another data folder',
      );
  }
  return held;
}

/** Returns the key of a version that an import has written. */
export const importedKey = keyOf;

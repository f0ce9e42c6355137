import type { DisplayPaths } from '../../assembly/metadata.js';
import { quoted } from '../../objects/errors.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { similarPaths } from '../../values/similar-names.js';
import { findSession, sessionOf } from '../rebuild/find-session.js';
import { HistoryError } from '../rebuild/history-error.js';

/** Minimum length of an abbreviated id. */
const SHORTEST = 4;
const SHOWN = 5;

/** Options of an object search. */
export interface ObjectSearch {
  /** Only objects of this session's index. */
  readonly session?: SessionId | undefined;
  /** Shows the paths of files [§5.3]. */
  readonly paths: DisplayPaths;
}

function ambiguous(name: string, candidates: readonly string[]): HistoryError {
  const shown = candidates.slice(0, SHOWN).join(', ');
  return new HistoryError(
    'ambiguous',
    `${quoted(name)} fits several objects: ${shown}${candidates.length > SHOWN ? ', …' : ''}`,
  );
}

/** Returns whether a path equals the wanted one, or ends in it at a folder border. */
const fits = (path: string, wanted: string): boolean => path === wanted || path.endsWith(`/${wanted}`);

/** The snapshot and the objects that a name is looked up in. Without a list, all objects. */
interface Candidates {
  readonly snapshot: StoreSnapshot;
  readonly members: ReadonlySet<string> | undefined;
}

/** Returns whether a name states its own start. */
const isAnchored = (name: string): boolean => /^(?:\/|\.\.?(?:\/|$))/.test(name);

async function byPath(
  { snapshot, members }: Candidates,
  name: string,
  { paths: shown }: ObjectSearch,
): Promise<ObjectId | undefined> {
  const wanted = name.replace(/^\.\//, '').replace(/\/+$/, '');
  if (wanted === '') return undefined;
  const files = (await snapshot.sources())
    .filter(({ id }) => members === undefined || members.has(id))
    .map(({ id, source }) => ({ id, paths: [shown.display(source), source.path] }));
  const named = (names: readonly string[]) => files.filter(({ paths }) => paths.some((path) => names.includes(path)));
  const exact = named([name]);
  const here = exact.length > 0 ? exact : named(shown.here?.(name) ?? []);
  const isOnlyHere = shown.here !== undefined && isAnchored(name);
  const found =
    here.length > 0 || isOnlyHere ? here : files.filter(({ paths }) => paths.some((path) => fits(path, wanted)));
  const [one, ...others] = found;
  if (others.length > 0)
    throw ambiguous(
      name,
      found.map(({ id, paths }) => `${paths[0]} (${id.slice(0, 12)})`),
    );
  return one?.id;
}

/**
 * Finds the object that a reviewer names. A name is a full id, the unique beginning of an id (four
 * characters or more), or a display or canonical path. It may also be a path relative to the
 * question's folder, or the unique end of a path. A name that begins with `./`, `../` or `/` never
 * matches the end of another path. Exact matches win over partial ones. Returns undefined if none
 * matches.
 *
 * @throws {HistoryError} `ambiguous`
 */
async function findObject(snapshot: StoreSnapshot, name: string, search: ObjectSearch): Promise<ObjectId | undefined> {
  if (name === '' || !name.isWellFormed()) return undefined;
  const exact = (await snapshot.heads([name])).keys().next();
  if (!exact.done) return exact.value as ObjectId;
  const members =
    search.session === undefined ? undefined : new Set<string>((await snapshot.sets(search.session)).sets.index);
  const candidates = { snapshot, members };
  const like = (): Promise<ObjectId | undefined> => byStart(candidates, name);
  const path = (): Promise<ObjectId | undefined> => byPath(candidates, name, search);
  // A name like a digest is rarely a path, and a search by path reads the source of every file.
  const [first, second] = /^[0-9a-f]+$/.test(name) ? [like, path] : [path, like];
  return (await first()) ?? second();
}

async function byStart({ snapshot, members }: Candidates, name: string): Promise<ObjectId | undefined> {
  if (name.length < SHORTEST) return undefined;
  const ids = await snapshot.objectsFrom(name, 200);
  const matches = ids.filter((id) => members === undefined || members.has(id)).sort();
  if (matches.length > 1) throw ambiguous(name, matches);
  return matches[0];
}

/** Returns the shown file paths most similar to a name. */
async function pathsLike(
  snapshot: StoreSnapshot,
  name: string,
  { session, paths }: ObjectSearch,
): Promise<readonly string[]> {
  const members = session === undefined ? undefined : new Set<string>((await snapshot.sets(session)).sets.index);
  const files = (await snapshot.sources()).filter(
    ({ id, source }) => members?.has(id) !== false && paths.shows?.(source) !== false,
  );
  return similarPaths(
    name,
    files.map(({ source }) => paths.display(source)),
  );
}

/** Calls `findObject`. If it finds none, throws `unknown-object` with the most similar paths. */
export async function requireObject(snapshot: StoreSnapshot, name: string, search: ObjectSearch): Promise<ObjectId> {
  const found = await findObject(snapshot, name, search);
  if (found !== undefined) return found;
  const where = search.session === undefined ? 'the database' : `session ${search.session}`;
  const like = await pathsLike(snapshot, name, search);
  const hint = like.length === 0 ? 'name it' : `did you mean ${like.map(quoted).join(' or ')}? Else name it`;
  throw new HistoryError(
    'unknown-object',
    `there is no object ${quoted(name)} in ${where}: ${hint} by id, by ${SHORTEST} or more characters ` +
      'that its id begins with, or by path',
  );
}

/** The target of a name that may mean an object or a session. */
export type Subject =
  | { readonly kind: 'object'; readonly id: ObjectId }
  | { readonly kind: 'session'; readonly session: SessionId };

/**
 * Finds the object or session that a reviewer names. A session's exact id wins over objects whose
 * ids begin with it, such as its calls. An object wins over the beginning of a session's id.
 *
 * @throws {HistoryError} `unknown-object`, `ambiguous`
 */
export async function findSubject(snapshot: StoreSnapshot, name: string, search: ObjectSearch): Promise<Subject> {
  const exact = await sessionOf(snapshot, name);
  if (exact !== undefined) return { kind: 'session', session: exact };
  const id = await findObject(snapshot, name, search);
  if (id !== undefined) return { kind: 'object', id };
  const session = await findSession(snapshot, name);
  if (session !== undefined) return { kind: 'session', session };
  return { kind: 'object', id: await requireObject(snapshot, name, search) };
}

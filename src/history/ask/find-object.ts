import type { DisplayPaths } from '../../assembly/metadata.js';
import { quoted } from '../../objects/errors.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { similarPaths } from '../../values/similar-names.js';
import { findSession, sessionOf } from '../rebuild/find-session.js';
import { HistoryError } from '../rebuild/history-error.js';

/** The fewest characters that may stand for an id. */
const SHORTEST = 4;
const SHOWN = 5;

/** How an object is looked for. */
export interface ObjectSearch {
  /** Only objects of this session's index. */
  readonly session?: SessionId | undefined;
  /** How the paths of files are shown [§5.3]. */
  readonly paths: DisplayPaths;
}

function ambiguous(name: string, candidates: readonly string[]): HistoryError {
  const shown = candidates.slice(0, SHOWN).join(', ');
  return new HistoryError(
    'ambiguous',
    `${quoted(name)} fits several objects: ${shown}${candidates.length > SHOWN ? ', …' : ''}`,
  );
}

/** Whether a path is the one asked for, or ends in it at a folder. */
const fits = (path: string, wanted: string): boolean => path === wanted || path.endsWith(`/${wanted}`);

/** Where a name is looked up: in which snapshot, and among which objects; among all where absent. */
interface Candidates {
  readonly snapshot: StoreSnapshot;
  readonly members: ReadonlySet<string> | undefined;
}

/** Whether a name says itself where it starts. */
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
 * The object that a reviewer names: by full id, by the unique beginning of one (four characters or more), by display path or canonical
 * path, by a path relative to where the question is asked, or by a unique end of one; a name that begins with `./`, `../` or `/` is no end of another path. What is exact is never made ambiguous by what merely fits. Undefined when none fits.
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
  // What looks like a digest is hardly a path; looking for a path reads the source of every file.
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

/** Paths of files that are shown, most like a name. */
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

/** As `findObject`; throws HistoryError `unknown-object`, which names the paths most like it. */
export async function requireObject(snapshot: StoreSnapshot, name: string, search: ObjectSearch): Promise<ObjectId> {
  const found = await findObject(snapshot, name, search);
  if (found !== undefined) return found;
  const where = search.session === undefined ? 'the database' : `session ${search.session}`;
  const like = await pathsLike(snapshot, name, search);
  const hint = like.length === 0 ? 'name it' : `did you mean ${like.map(quoted).join(' or ')}? Else name it`;
  throw new HistoryError(
    'unknown-object',
    `there is no object ${quoted(name)} in ${where}: ${hint} by id, by ${SHORTEST} or more characters that its id begins with, or by path`,
  );
}

/** What a name stands for where both objects and sessions are meant. */
export type Subject =
  | { readonly kind: 'object'; readonly id: ObjectId }
  | { readonly kind: 'session'; readonly session: SessionId };

/**
 * The object or session that a reviewer names. A session's exact id wins over objects whose ids merely begin with it, as those of its calls
 * do; an object wins over the beginning of a session's id.
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

import type { DisplayPaths } from '../../assembly/metadata.js';
import { refuseErased } from '../../history/rebuild/erased.js';
import { findSession, sessionOf } from '../../history/rebuild/find-session.js';
import { HistoryError } from '../../history/rebuild/history-error.js';
import { quoted } from '../../objects/errors.js';
import { sourcedIdentityHash } from '../../objects/hashes.js';
import { type ObjectId, type SessionId, sessionObjectId } from '../../objects/ids.js';
import { parseSource } from '../../objects/source.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { similarPaths } from '../../values/similar-names.js';

/** Minimum length of an abbreviated id. */
const SHORTEST = 4;
const SHOWN = 5;

/** Options of an object search. */
export interface ObjectSearch {
  /** Restricts the search to objects of this session's index. */
  readonly session?: SessionId | undefined;
  /** Shows the paths of files [§5.3]. */
  readonly paths: DisplayPaths;
}

function ambiguous(name: string, candidates: readonly string[]): HistoryError {
  const shown = candidates.slice(0, SHOWN).join(', ');
  return new HistoryError(
    'ambiguous',
    `${quoted(name)} matches several objects: ${shown}${candidates.length > SHOWN ? ', …' : ''}`,
  );
}

/** Returns whether a path equals the wanted path, or ends with it after a slash. */
const endsWithPath = (path: string, wanted: string): boolean => path === wanted || path.endsWith(`/${wanted}`);

/** A file that a name may mean, with its display path and its canonical path. */
interface NamedFile {
  readonly id: ObjectId;
  readonly paths: readonly string[];
}

type SourceOf = Awaited<ReturnType<StoreSnapshot['sources']>>[number];

/**
 * The objects that a name can mean: those of one session, or all. Reads the session's index and the
 * files' sources at most once, and only if a name needs them.
 */
class Candidates {
  readonly snapshot: StoreSnapshot;
  readonly shown: DisplayPaths;
  readonly #session: SessionId | undefined;
  #members: Promise<ReadonlySet<string> | undefined> | undefined;
  #sources: Promise<readonly SourceOf[]> | undefined;

  constructor(snapshot: StoreSnapshot, { session, paths }: ObjectSearch) {
    this.snapshot = snapshot;
    this.shown = paths;
    this.#session = session;
  }

  get where(): string {
    return this.#session === undefined ? 'the database' : `session ${this.#session}`;
  }

  /**
   * Returns the ids of the session's objects. Undefined without a session, because then all objects
   * count.
   */
  members(): Promise<ReadonlySet<string> | undefined> {
    this.#members ??= this.#readMembers();
    return this.#members;
  }

  /** Returns the sources of all files. Reads a document for each file. */
  sources(): Promise<readonly SourceOf[]> {
    this.#sources ??= this.#readSources();
    return this.#sources;
  }

  /**
   * Returns the files at some absolute paths of this machine. Their ids follow from the paths, so
   * no other file is read.
   */
  async filesAt(names: readonly string[]): Promise<readonly NamedFile[]> {
    const sources = names.flatMap((name) => this.shown.sourcesAt?.(name) ?? []);
    const ids = new Set<string>(sources.map((source) => sourcedIdentityHash('file', source)));
    if (ids.size === 0) return [];
    const heads = await this.snapshot.heads([...ids]);
    const members = heads.size === 0 ? undefined : await this.members();
    return [...heads].flatMap(([id, { document }]) => {
      const source = members?.has(id) === false ? null : parseSource(document.source);
      return source === null ? [] : [this.named({ id: id as ObjectId, source })];
    });
  }

  named({ id, source }: SourceOf): NamedFile {
    return { id, paths: [this.shown.display(source), source.path] };
  }

  async #readMembers(): Promise<ReadonlySet<string> | undefined> {
    return this.#session === undefined ? undefined : new Set((await this.snapshot.sets(this.#session)).sets.index);
  }

  async #readSources(): Promise<readonly SourceOf[]> {
    const [members, sources] = await Promise.all([this.members(), this.snapshot.sources()]);
    return sources.filter(({ id }) => members?.has(id) !== false);
  }
}

/** Returns whether a name begins with `/`, `./` or `../`. */
const isAnchored = (name: string): boolean => /^(?:\/|\.\.?(?:\/|$))/.test(name);

/** Tries lists of paths in order. Returns the files of the first list that matches any file. */
function exactly(files: readonly NamedFile[], ...lists: readonly (readonly string[])[]): readonly NamedFile[] {
  for (const names of lists) {
    const found = files.filter(({ paths }) => paths.some((path) => names.includes(path)));
    if (found.length > 0) return found;
  }
  return [];
}

async function filesNamed(candidates: Candidates, name: string): Promise<readonly NamedFile[]> {
  const { shown } = candidates;
  const wanted = name.replace(/^\.\//, '').replace(/\/+$/, '');
  if (wanted === '') return [];
  const here = shown.here?.(name) ?? [];
  const near = exactly(await candidates.filesAt([name, ...here]), [name], here);
  if (near.length > 0) return near;
  const files = (await candidates.sources()).map((one) => candidates.named(one));
  const found = exactly(files, [name], here);
  const isOnlyHere = shown.here !== undefined && isAnchored(name);
  return found.length > 0 || isOnlyHere
    ? found
    : files.filter(({ paths }) => paths.some((path) => endsWithPath(path, wanted)));
}

async function byPath(candidates: Candidates, name: string): Promise<ObjectId | undefined> {
  const found = await filesNamed(candidates, name);
  if (found.length > 1)
    throw ambiguous(
      name,
      found.map(({ id, paths }) => `${paths[0]} (${id.slice(0, 12)})`),
    );
  return found[0]?.id;
}

async function byStart(candidates: Candidates, name: string): Promise<ObjectId | undefined> {
  if (name.length < SHORTEST) return undefined;
  const [ids, members] = await Promise.all([candidates.snapshot.objectsFrom(name, 200), candidates.members()]);
  const matches = ids.filter((id) => members?.has(id) !== false).sort();
  if (matches.length > 1) throw ambiguous(name, matches);
  return matches[0];
}

/**
 * Finds the object that a reviewer names. A name is a full id, the unique beginning of an id (four
 * characters or more), or a display or canonical path. It may also be a path relative to the
 * reviewer's folder, or the unique end of a path. A name that begins with `./`, `../` or `/` never
 * matches the end of another path. Exact matches win over partial ones, and files of this machine
 * over those of other machines. Returns undefined if no object matches.
 *
 * @throws {HistoryError} `erased`, `ambiguous`
 */
async function findObject(candidates: Candidates, name: string): Promise<ObjectId | undefined> {
  if (name === '' || !name.isWellFormed()) return undefined;
  const exact = (await candidates.snapshot.heads([name])).keys().next();
  if (!exact.done) return exact.value as ObjectId;
  // Another object's id may begin with an erased id. The erased id must not find that object.
  await refuseErased(candidates.snapshot, [name, sessionObjectId(name as SessionId)]);
  // A hexadecimal name is rarely a path, and a search by path may read the source of every file.
  const [first, second] = /^[0-9a-f]+$/.test(name) ? [byStart, byPath] : [byPath, byStart];
  return (await first(candidates, name)) ?? second(candidates, name);
}

/** Throws `unknown-object` with the display paths that are most similar to a name. */
async function unknownObject(candidates: Candidates, name: string): Promise<never> {
  const { shown, where } = candidates;
  const files = (await candidates.sources()).filter(({ source }) => shown.shows?.(source) !== false);
  const like = similarPaths(
    name,
    files.map(({ source }) => shown.display(source)),
  );
  const hint = like.length === 0 ? 'name it' : `did you mean ${like.map(quoted).join(' or ')}? Otherwise name it`;
  throw new HistoryError(
    'unknown-object',
    `there is no object ${quoted(name)} in ${where}: ${hint} by its id, by the first characters of its id ` +
      `(at least ${SHORTEST}), or by its path`,
  );
}

/** Finds the object that a reviewer names. If there is none, the error names similar paths. */
export async function requireObject(snapshot: StoreSnapshot, name: string, search: ObjectSearch): Promise<ObjectId> {
  const candidates = new Candidates(snapshot, search);
  return (await findObject(candidates, name)) ?? unknownObject(candidates, name);
}

/** The target of a name that may mean an object or a session. */
export type Subject =
  | { readonly kind: 'object'; readonly id: ObjectId }
  | { readonly kind: 'session'; readonly session: SessionId };

/**
 * Finds the object or session that a reviewer names. A session's exact id wins over objects whose
 * ids begin with it, such as its calls. If a name could be an object or the beginning of a
 * session's id, it means the object.
 *
 * @throws {HistoryError} `unknown-object`, `erased`, `ambiguous`
 */
export async function findSubject(snapshot: StoreSnapshot, name: string, search: ObjectSearch): Promise<Subject> {
  const exact = await sessionOf(snapshot, name);
  if (exact !== undefined) return { kind: 'session', session: exact };
  const candidates = new Candidates(snapshot, search);
  const id = await findObject(candidates, name);
  if (id !== undefined) return { kind: 'object', id };
  const session = await findSession(snapshot, name);
  return session === undefined ? unknownObject(candidates, name) : { kind: 'session', session };
}

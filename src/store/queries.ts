import pLimit from 'p-limit';
import { type EdnSymbol, list, sym } from '../edn/values.js';
import { type ObjectId, type SessionId, type Sha256, sessionObjectId } from '../objects/ids.js';
import { FIELDS } from '../objects/object-type.js';
import { parseSource, type Source } from '../objects/source.js';
import { type DatalogQuery, each, predicate, pull, triple, type WhereClause } from '../xtdb/datalog.js';
import type { DbSnapshot, EntityTx } from '../xtdb/db-snapshot.js';
import { type StoredDocument, toAttribute, toDocument } from '../xtdb/documents.js';
import { XtdbError } from '../xtdb/errors.js';
import { StoreError } from './errors.js';

const e = sym('?e');
const id = sym('?id');
const ref = sym('?ref');
const seq = sym('?seq');
const type = sym('?type');
const from = sym('?from');
const to = sym('?to');
const since = sym('?since');
const source = sym('?source');
const hash = sym('?hash');
const text = sym('?text');
const body = sym('?body');
const epoch = sym('?epoch');
const previous = sym('?previous');

/**
 * `[(get-start-valid-time ?e) ?since]`: the beginning of the valid time of the version that is
 * current at the basis.
 */
export const VALID_SINCE = [...predicate('get-start-valid-time', e), since];

const HEADS: DatalogQuery = { find: [e, pull(e), since], in: [each(e)], where: [triple(e, 'xt/id'), VALID_SINCE] };

const EXISTING: DatalogQuery = { find: [e], in: [each(e)], where: [triple(e, 'xt/id')] };

/**
 * Parts with a step number: steps, context records, and the context records that begin an epoch.
 */
type PartsAtSteps = 'steps' | 'assemblies' | 'epochs';

/** The attribute that names the session of such a part. */
type SessionRef = 'session_ref' | 'assembly_ref';

const partsOf = (attribute: SessionRef | 'snapshot_ref'): DatalogQuery => ({
  find: [e, pull(e)],
  in: [ref],
  where: [triple(e, attribute, ref)],
});

const betweenSteps = (attribute: SessionRef, ...more: readonly WhereClause[]): DatalogQuery => ({
  find: [e, pull(e)],
  in: [ref, from, to],
  where: [
    triple(e, attribute, ref),
    triple(e, 'seq', seq),
    predicate('>=', seq, from),
    predicate('<=', seq, to),
    ...more,
  ],
});

/** `[(get ?map "key") ?value]`: the value of a key of a nested object, or nil. */
const member = (map: EdnSymbol, key: string, value: EdnSymbol): WhereClause => [list(sym('get'), map, key), value];

const AT_STEPS: Readonly<Record<PartsAtSteps, DatalogQuery>> = {
  steps: betweenSteps('session_ref'),
  assemblies: betweenSteps('assembly_ref'),
  // The record of an epoch's first context names no previous record.
  epochs: betweenSteps(
    'assembly_ref',
    triple(e, 'body', body),
    member(body, 'epoch', epoch),
    predicate('some?', epoch),
    member(epoch, 'previous', previous),
    predicate('nil?', previous),
  ),
};

/**
 * The same queries without step bounds. The database needs a quarter less time for them. Their
 * results include parts without a step number.
 */
const OF_ALL_STEPS: Readonly<Record<Exclude<PartsAtSteps, 'epochs'>, DatalogQuery>> = {
  steps: partsOf('session_ref'),
  assemblies: partsOf('assembly_ref'),
};

/**
 * Returns the query that walks the index of record keys once for each range. A key begins with kind
 * and owner and ends with a step. Each branch must contain its own walk: if only the bounds are in
 * an `or` or a relation, the database scans every key.
 */
function recordsBetween(ranges: number): DatalogQuery {
  const bounds = Array.from({ length: ranges }, (_, i) => [sym(`?from${i}`), sym(`?to${i}`)] as const);
  const branches = bounds.map(([low, high]) =>
    list(sym('and'), triple(e, 'record_ref', ref), predicate('>=', ref, low), predicate('<=', ref, high)),
  );
  return { find: [e, pull(e)], in: bounds.flat(), where: [list(sym('or-join'), [e, ...bounds.flat()], ...branches)] };
}

const SNAPSHOTS = partsOf('snapshot_ref');

const IDS_BETWEEN: DatalogQuery = {
  find: [id],
  in: [from, to, each(type)],
  where: [triple(e, 'xt/id', id), predicate('>=', id, from), predicate('<', id, to), triple(e, 'type', type)],
};

const FILES: DatalogQuery = {
  find: [e, source],
  in: [type],
  where: [triple(e, 'type', type), triple(e, 'source', source)],
};

/** Reads only the index. Reading the documents of many objects takes several times as long. */
const SOURCES: DatalogQuery = { find: [e, source], in: [each(e)], where: [triple(e, 'source', source)] };

const READ: DatalogQuery = {
  find: [e],
  in: [each(e)],
  where: [triple(e, 'file_hash', hash), predicate('string?', hash)],
};

/** Finds all objects that were read: walks the index of file hashes from its first hash. */
const ANY_READ: DatalogQuery = {
  find: [e],
  in: [from],
  where: [triple(e, 'file_hash', hash), predicate('>=', hash, from)],
};

const GONE: DatalogQuery = { find: [e], in: [type], where: [triple(e, 'gone', type)] };

const CONTENTS: DatalogQuery = {
  find: [hash, text],
  in: [each(hash)],
  where: [triple(e, 'content_hash', hash), triple(e, 'content', text)],
};

/**
 * Starts from the few lists of chunks, because few texts are long. In a list's id, the hash follows
 * the seven characters `chunks:`.
 */
const LONG_CONTENTS: DatalogQuery = {
  find: [e, hash],
  in: [type, from, to],
  where: [triple(id, 'type', type), [...predicate('subs', id, from, to), hash], triple(e, 'content_hash', hash)],
};

/**
 * A head with the beginning of its valid time. The version is the one current at the snapshot's
 * basis.
 */
export interface TimedDocument {
  readonly document: StoredDocument;
  readonly validTime: Date;
}

/** The valid time of a version, as far as known, and its transaction time [decision F7]. */
export type VersionTimes = EntityTx;

/** Number of ids per query for heads, which are small. */
const HEADS_AT_ONCE = 500;
/** Number of ids per query that reads no documents. */
const IDS_AT_ONCE = 2_500;
/**
 * Maximum concurrent queries of one read. The node runs few at a time, and the timeout of a waiting
 * query already runs.
 */
const QUERIES_AT_ONCE = 3;
/** Maximum concurrent look-ups of times. Each is one seek. */
const TIMES_AT_ONCE = 8;

/** Returns the value that `VALID_SINCE` bound. */
export function validTimeOf(value: unknown): Date {
  if (value instanceof Date) return value;
  throw new StoreError('corrupt-part', 'the database returned a version without a valid time');
}

const documents = (rows: readonly (readonly unknown[])[]): readonly StoredDocument[] =>
  rows.map(([, document]) => toDocument(document as never));

/** Returns the rows of a query for many ids, one page of ids at a time. */
async function pagedRows(
  db: DbSnapshot,
  query: DatalogQuery,
  { ids, atOnce }: { readonly ids: readonly string[]; readonly atOnce: number },
): Promise<Awaited<ReturnType<DbSnapshot['query']>>> {
  const pages = Array.from({ length: Math.ceil(ids.length / atOnce) }, (_, i) =>
    ids.slice(i * atOnce, (i + 1) * atOnce),
  );
  return (await pLimit(QUERIES_AT_ONCE).map(pages, (page) => db.query(query, [page]))).flat();
}

/**
 * Returns the documents under many ids, each with the beginning of its valid time. Unknown ids are
 * absent.
 */
export async function headsWithTimes(db: DbSnapshot, ids: readonly string[]): Promise<readonly TimedDocument[]> {
  const { memory } = db;
  const wanted = memory === undefined ? ids : [...new Set(ids)].filter((one) => !memory.knows(one, true));
  const rows = await pagedRows(db, HEADS, { ids: wanted, atOnce: HEADS_AT_ONCE });
  const found = rows.map(([, document, validTime]) => ({
    document: toDocument(document ?? null),
    validTime: validTimeOf(validTime),
  }));
  if (memory === undefined) return found;
  for (const { document, validTime } of found) memory.learn(document, validTime);
  const here = new Map(found.map((one) => [String(one.document['xt/id']), one]));
  memory.learnAbsent(wanted.filter((one) => !here.has(one)));
  return [...new Set(ids)].flatMap((one) => {
    const { document, since } = memory.get(one) ?? {};
    return here.get(one) ?? (document === undefined || since === undefined ? [] : [{ document, validTime: since }]);
  });
}

/** Returns the given ids that exist, without reading their documents. */
export async function existingIds(db: DbSnapshot, ids: readonly string[]): Promise<readonly string[]> {
  if (ids.length === 0) return [];
  return (await db.query(EXISTING, [ids])).flatMap(([found]) => (typeof found === 'string' ? [found] : []));
}

/** Returns the times of the current versions under many ids. Unknown ids are absent. */
export async function readTimes(db: DbSnapshot, ids: readonly string[]): Promise<ReadonlyMap<string, VersionTimes>> {
  const found = await pLimit(TIMES_AT_ONCE).map(ids, async (one) => ({ one, times: await db.entityTx(one) }));
  return new Map(found.flatMap(({ one, times }) => (times === undefined ? [] : [[one, times] as const])));
}

/** Parts at the steps of one session, both ends included. `Infinity` means no end. */
export interface WantedParts {
  readonly kind: PartsAtSteps;
  readonly session: SessionId;
  readonly first: number;
  readonly last: number;
}

/** Returns the parts at some steps of a session, in no order. */
export async function partsAtSteps(
  db: DbSnapshot,
  { kind, session, first, last }: WantedParts,
): Promise<readonly StoredDocument[]> {
  const owner = sessionObjectId(session);
  const isAll = kind !== 'epochs' && first <= 1 && last >= Number.MAX_SAFE_INTEGER;
  const rows = isAll
    ? await db.query(OF_ALL_STEPS[kind], [owner])
    : await db.query(AT_STEPS[kind], [owner, first, Math.min(last, Number.MAX_SAFE_INTEGER)]);
  const found = documents(rows).filter(({ seq }) => Number(seq) >= first);
  // Caches the steps: a caller that reads many steps usually reads some of them by id later.
  if (kind === 'steps') for (const step of found) db.memory?.learn(step);
  return found;
}

/**
 * Returns the parts of records whose keys are within one of the ranges, both ends included, in no
 * order.
 */
export async function recordParts(
  db: DbSnapshot,
  ranges: readonly (readonly [first: string, last: string])[],
): Promise<readonly StoredDocument[]> {
  if (ranges.length === 0) return [];
  try {
    return documents(await db.query(recordsBetween(ranges.length), ranges.flat()));
  } catch (error) {
    if (!(error instanceof XtdbError) || error.code !== 'too-large' || ranges.length === 1) throw error;
    const half = Math.ceil(ranges.length / 2);
    return [...(await recordParts(db, ranges.slice(0, half))), ...(await recordParts(db, ranges.slice(half)))];
  }
}

/** Returns the snapshot parts of a session, in no order. */
export async function snapshotParts(db: DbSnapshot, session: SessionId): Promise<readonly StoredDocument[]> {
  return documents(await db.query(SNAPSHOTS, [sessionObjectId(session)]));
}

/** Returns the first string after all strings with a prefix, in the order of UTF-16 units. */
function after(prefix: string): string {
  return `${prefix.slice(0, -1)}${String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1)}`;
}

/** Returns at most `most` ids of documents of some types that begin with a prefix. */
export async function idsFrom(
  db: DbSnapshot,
  prefix: string,
  { types, most }: { readonly types: readonly string[]; readonly most: number },
): Promise<readonly string[]> {
  const end = after(prefix);
  if (prefix === '' || !prefix.isWellFormed() || !end.isWellFormed()) return [];
  const rows = await db.query({ ...IDS_BETWEEN, limit: most }, [prefix, end, types]);
  return rows.flatMap(([found]) => (typeof found === 'string' ? [found] : []));
}

/** Returns at most `most` ids of objects, parts excluded, that begin with a prefix. */
export const objectIdsFrom = (db: DbSnapshot, prefix: string, most: number): Promise<readonly ObjectId[]> =>
  idsFrom(db, prefix, { types: Object.keys(FIELDS), most }) as Promise<readonly ObjectId[]>;

/** The source of an object. `isStub`: the object was never read and is not confirmed deleted. */
export interface NamedSource {
  readonly source: Source;
  readonly isStub: boolean;
}

/**
 * Returns the given objects that have been read. Walks the index of hashes, because most objects of
 * a long list were only mentioned. If the database has very many read files, looks up each object
 * instead.
 */
async function readAmong(db: DbSnapshot, ids: readonly string[]): Promise<ReadonlySet<unknown>> {
  const limit = Math.ceil(ids.length / 4);
  const any = await db.query({ ...ANY_READ, limit }, ['']);
  const rows = any.length < limit ? any : await pagedRows(db, READ, { ids, atOnce: IDS_AT_ONCE });
  return new Set(rows.map(([found]) => found));
}

/**
 * Returns the sources of many objects. Objects without a source are absent. The known sources of
 * some of them are not read.
 */
export async function namedSources(
  db: DbSnapshot,
  ids: readonly string[],
  known: ReadonlyMap<ObjectId, Source> = new Map(),
): Promise<ReadonlyMap<ObjectId, NamedSource>> {
  if (ids.length === 0) return new Map();
  // Sorts the ids, because neighbouring ids lie in the same blocks of the index.
  const sorted = ids.toSorted();
  const [rows, read, deleted] = await Promise.all([
    pagedRows(db, SOURCES, { ids: sorted.filter((id) => !known.has(id as ObjectId)), atOnce: IDS_AT_ONCE }),
    readAmong(db, sorted),
    db.query(GONE, [true]),
  ]);
  const gone = new Set(deleted.map(([found]) => found));
  const named = new Map<ObjectId, NamedSource>();
  const add = (id: ObjectId, source: Source): void => {
    named.set(id, { source, isStub: !read.has(id) && !gone.has(id) });
  };
  for (const [id, source] of known) add(id, source);
  for (const [found, value] of rows) {
    const parsed = parseSource(toAttribute('source', value ?? null));
    if (typeof found === 'string' && parsed !== null) add(found as ObjectId, parsed);
  }
  return named;
}

/** Returns id and source of every file. */
export async function fileSources(
  db: DbSnapshot,
): Promise<readonly { readonly id: ObjectId; readonly source: Source }[]> {
  const rows = await db.query(FILES, ['file']);
  return rows.flatMap(([found, value]) => {
    const read = parseSource(toAttribute('source', value ?? null));
    return typeof found === 'string' && read !== null ? [{ id: found as ObjectId, source: read }] : [];
  });
}

/** Returns the contents that heads hold themselves, by hash. Other hashes are absent. */
export async function inlineContents(db: DbSnapshot, hashes: readonly Sha256[]): Promise<ReadonlyMap<Sha256, string>> {
  const rows = hashes.length === 0 ? [] : await db.query(CONTENTS, [hashes]);
  return new Map(rows.map(([key, content]) => [String(key) as Sha256, String(content)]));
}

/** Returns the objects whose content is longer than one chunk, with its hash. */
export async function longContents(db: DbSnapshot): Promise<readonly (readonly [ObjectId, Sha256])[]> {
  const from = 'chunks:'.length;
  const rows = await db.query(LONG_CONTENTS, ['chunks', from, from + 64]);
  return rows.map(([found, key]) => [String(found) as ObjectId, String(key) as Sha256]);
}

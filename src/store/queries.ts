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
import { ARRIVING, importId } from './import-parts.js';

const e = sym('?e');
const id = sym('?id');
const ref = sym('?ref');
const seq = sym('?seq');
const chat = sym('?chat');
const type = sym('?type');
const turns = sym('?turns');
const from = sym('?from');
const to = sym('?to');
const since = sym('?since');
const source = sym('?source');
const hash = sym('?hash');
const text = sym('?text');
const body = sym('?body');
const epoch = sym('?epoch');
const previous = sym('?previous');

/** `[(get-start-valid-time ?e) ?since]`: from when on the version that is current at the basis holds. */
const VALID_SINCE = [...predicate('get-start-valid-time', e), since];

const HEADS: DatalogQuery = { find: [e, pull(e), since], in: [each(e)], where: [triple(e, 'xt/id'), VALID_SINCE] };

const OF_TYPE: DatalogQuery = { find: [e], in: [type], where: [triple(e, 'type', type)] };

const EXISTING: DatalogQuery = { find: [e], in: [each(e)], where: [triple(e, 'xt/id')] };

/** Parts that stand at a step: steps, the records of contexts, and those of them with which an epoch begins. */
type PartsAtSteps = 'steps' | 'assemblies' | 'epochs';

/** What names the session of such a part. */
type SessionRef = 'session_ref' | 'assembly_ref';

const partsOf = (attribute: SessionRef | 'snapshot_ref'): DatalogQuery => ({
  find: [e, pull(e)],
  in: [ref],
  where: [triple(e, attribute, ref)],
});

const betweenSteps = (attribute: SessionRef, ...more: readonly WhereClause[]): DatalogQuery => ({
  find: [e, pull(e)],
  in: [ref, from, to],
  where: [triple(e, attribute, ref), triple(e, 'seq', seq), predicate('>=', seq, from), predicate('<=', seq, to), ...more],
});

/** `[(get ?map "key") ?value]`: what an object inside a document has under a key; nil where it has none. */
const member = (map: EdnSymbol, key: string, value: EdnSymbol): WhereClause => [list(sym('get'), map, key), value];

const AT_STEPS: Readonly<Record<PartsAtSteps, DatalogQuery>> = {
  steps: betweenSteps('session_ref'),
  assemblies: betweenSteps('assembly_ref'),
  // An epoch's first context names none that it follows.
  epochs: betweenSteps(
    'assembly_ref',
    triple(e, 'body', body),
    member(body, 'epoch', epoch),
    predicate('some?', epoch),
    member(epoch, 'previous', previous),
    predicate('nil?', previous),
  ),
};

/** The same from the first to the last: without bounds the database takes a quarter less. What has no place among the steps is among them. */
const OF_ALL_STEPS: Readonly<Record<Exclude<PartsAtSteps, 'epochs'>, DatalogQuery>> = {
  steps: partsOf('session_ref'),
  assemblies: partsOf('assembly_ref'),
};

/**
 * Walks along the index of references, which begin with a kind and an owner and end with a step: one for each of so many ranges. The walk has to stand in its branch:
 * behind an `or` of the bounds alone, or with the bounds as a relation, the database goes through every reference that it has.
 */
function recordsBetween(ranges: number): DatalogQuery {
  const bounds = Array.from({ length: ranges }, (_, i) => [sym(`?from${i}`), sym(`?to${i}`)] as const);
  const branches = bounds.map(([low, high]) =>
    list(sym('and'), triple(e, 'record_ref', ref), predicate('>=', ref, low), predicate('<=', ref, high)),
  );
  return { find: [e, pull(e)], in: bounds.flat(), where: [list(sym('or-join'), [e, ...bounds.flat()], ...branches)] };
}

const SNAPSHOTS = partsOf('snapshot_ref');

/** Through the chat that a session names: every step and call names its session or chat too, which would be many times as many rows. */
const SESSIONS: DatalogQuery = {
  find: [e, pull(e, ['xt/id', 'session_id', 'upto', 'parent', 'roots']), turns, since],
  in: [type],
  where: [triple(e, 'type', type), triple(e, 'chat_ref', chat), triple(chat, 'turn_count', turns), VALID_SINCE],
};

const IDS_BETWEEN: DatalogQuery = {
  find: [id],
  in: [from, to, each(type)],
  where: [triple(e, 'xt/id', id), predicate('>=', id, from), predicate('<', id, to), triple(e, 'type', type)],
};

const FILES: DatalogQuery = { find: [e, source], in: [type], where: [triple(e, 'type', type), triple(e, 'source', source)] };

/** Through the index alone: the documents of many objects take several times as long to read. */
const SOURCES: DatalogQuery = {
  find: [e, source, hash],
  in: [each(e)],
  where: [triple(e, 'source', source), triple(e, 'file_hash', hash)],
};

const GONE: DatalogQuery = { find: [e], in: [type], where: [triple(e, 'gone', type)] };

const CONTENTS: DatalogQuery = {
  find: [hash, text],
  in: [each(hash)],
  where: [triple(e, 'content_hash', hash), triple(e, 'content', text)],
};

/** Through the lists of chunks, of which there are few: `chunks:` is seven characters, a hash 64. */
const LONG_CONTENTS: DatalogQuery = {
  find: [e, hash],
  in: [type, from, to],
  where: [triple(id, 'type', type), [...predicate('subs', id, from, to), hash], triple(e, 'content_hash', hash)],
};

/** A head with the beginning of the valid time of the version that is current at the snapshot's basis. */
export interface TimedDocument {
  readonly document: StoredDocument;
  readonly validTime: Date;
}

/** A session's head with the number of its turns. */
export interface SessionRow extends TimedDocument {
  readonly turns: number;
}

/** When a version became true, as far as is known, and when the database learned it [decision F7]. */
export type VersionTimes = EntityTx;

/** Ids a query; documents of heads are small. */
const HEADS_AT_ONCE = 500;
/** Ids of a query that reads no documents. */
const IDS_AT_ONCE = 2_500;
/** Queries of one reading that are under way at once: the node runs few at a time, and the time limit of one that waits for its turn runs. */
const QUERIES_AT_ONCE = 3;
/** Look-ups of times under way at once: each is one seek. */
const TIMES_AT_ONCE = 8;

function validTimeOf(value: unknown): Date {
  if (value instanceof Date) return value;
  throw new StoreError('corrupt-part', 'the database answered with a version that has no valid time');
}

const documents = (rows: readonly (readonly unknown[])[]): readonly StoredDocument[] =>
  rows.map(([, document]) => toDocument(document as never));

/** The rows of a query for many ids, page by page. */
async function pagedRows(
  db: DbSnapshot,
  query: DatalogQuery,
  { ids, atOnce }: { readonly ids: readonly string[]; readonly atOnce: number },
): Promise<Awaited<ReturnType<DbSnapshot['query']>>> {
  const pages = Array.from({ length: Math.ceil(ids.length / atOnce) }, (_, i) => ids.slice(i * atOnce, (i + 1) * atOnce));
  return (await pLimit(QUERIES_AT_ONCE).map(pages, (page) => db.query(query, [page]))).flat();
}

/** The documents under many ids with the time from which on each holds; ids that the database does not know are absent. */
export async function headsWithTimes(db: DbSnapshot, ids: readonly string[]): Promise<readonly TimedDocument[]> {
  const { memory } = db;
  const wanted = memory === undefined ? ids : [...new Set(ids)].filter((one) => !memory.knows(one, true));
  const rows = await pagedRows(db, HEADS, { ids: wanted, atOnce: HEADS_AT_ONCE });
  const found = rows.map(([, document, validTime]) => ({ document: toDocument(document ?? null), validTime: validTimeOf(validTime) }));
  if (memory === undefined) return found;
  for (const { document, validTime } of found) memory.learn(document, validTime);
  const here = new Map(found.map((one) => [String(one.document['xt/id']), one]));
  memory.learnAbsent(wanted.filter((one) => !here.has(one)));
  return [...new Set(ids)].flatMap((one) => {
    const { document, since } = memory.get(one) ?? {};
    return here.get(one) ?? (document === undefined || since === undefined ? [] : [{ document, validTime: since }]);
  });
}

/** Which of some ids the database knows, without their documents. */
export async function existingIds(db: DbSnapshot, ids: readonly string[]): Promise<readonly string[]> {
  if (ids.length === 0) return [];
  return (await db.query(EXISTING, [ids])).flatMap(([found]) => (typeof found === 'string' ? [found] : []));
}

/** The times of the current versions under many ids; ids that the database does not know are absent. */
export async function readTimes(db: DbSnapshot, ids: readonly string[]): Promise<ReadonlyMap<string, VersionTimes>> {
  const found = await pLimit(TIMES_AT_ONCE).map(ids, async (one) => ({ one, times: await db.entityTx(one) }));
  return new Map(found.flatMap(({ one, times }) => (times === undefined ? [] : [[one, times] as const])));
}

/** The ids of what says that a session is still being imported. */
async function arrivingIds(db: DbSnapshot): Promise<readonly string[]> {
  return (await db.query(OF_TYPE, [ARRIVING])).flatMap(([found]) => (typeof found === 'string' ? [found] : []));
}

/** Every session of the database: id, marks, number of turns; none that is still being imported. */
export async function sessionRows(db: DbSnapshot): Promise<readonly SessionRow[]> {
  const [rows, arriving] = await Promise.all([db.query(SESSIONS, ['session']), arrivingIds(db)]);
  const hidden = new Set(arriving);
  const all = rows.map(([, document, count, validTime]) => ({
    document: toDocument(document ?? null),
    turns: Number(toAttribute('turn_count', count ?? null)),
    validTime: validTimeOf(validTime),
  }));
  return hidden.size === 0 ? all : all.filter(({ document }) => !hidden.has(importId(document.session_id as SessionId)));
}

/** Parts of one session that stand at its steps, both ends included; `Infinity` for no end. */
export interface WantedParts {
  readonly kind: PartsAtSteps;
  readonly session: SessionId;
  readonly first: number;
  readonly last: number;
}

/** The parts at some steps of a session, in no order. */
export async function partsAtSteps(db: DbSnapshot, { kind, session, first, last }: WantedParts): Promise<readonly StoredDocument[]> {
  const owner = sessionObjectId(session);
  const isAll = kind !== 'epochs' && first <= 1 && last >= Number.MAX_SAFE_INTEGER;
  const rows = isAll
    ? await db.query(OF_ALL_STEPS[kind], [owner])
    : await db.query(AT_STEPS[kind], [owner, first, Math.min(last, Number.MAX_SAFE_INTEGER)]);
  const found = documents(rows).filter(({ seq }) => Number(seq) >= first);
  // Who reads steps together asks for some of them by their ids later.
  if (kind === 'steps') for (const step of found) db.memory?.learn(step);
  return found;
}

/** The parts of records whose references stand between pairs of them, both included, in no order. */
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

/** The snapshot parts of a session, in no order. */
export async function snapshotParts(db: DbSnapshot, session: SessionId): Promise<readonly StoredDocument[]> {
  return documents(await db.query(SNAPSHOTS, [sessionObjectId(session)]));
}

/** The first string after all those that begin with a prefix, in the order of UTF-16 units. */
function after(prefix: string): string {
  return `${prefix.slice(0, -1)}${String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1)}`;
}

/** Ids of documents of some types that begin with a prefix; at most `most` of them. */
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

/** Ids of objects, not of parts, that begin with a prefix; at most `most` of them. */
export const objectIdsFrom = (db: DbSnapshot, prefix: string, most: number): Promise<readonly ObjectId[]> =>
  idsFrom(db, prefix, { types: Object.keys(FIELDS), most }) as Promise<readonly ObjectId[]>;

/** The source of an object, and whether it is known by name alone: nothing of it was read, and it is not confirmed deleted. */
export interface NamedSource {
  readonly source: Source;
  readonly isStub: boolean;
}

/** The sources of many objects; ids of objects without a source are absent. */
export async function namedSources(db: DbSnapshot, ids: readonly string[]): Promise<ReadonlyMap<ObjectId, NamedSource>> {
  if (ids.length === 0) return new Map();
  const [rows, deleted] = await Promise.all([pagedRows(db, SOURCES, { ids, atOnce: IDS_AT_ONCE }), db.query(GONE, [true])]);
  const gone = new Set(deleted.map(([found]) => found));
  return new Map(
    rows.flatMap(([found, value, fileHash]) => {
      const read = parseSource(toAttribute('source', value ?? null));
      return typeof found !== 'string' || read === null
        ? []
        : [[found as ObjectId, { source: read, isStub: fileHash === null && !gone.has(found) }] as const];
    }),
  );
}

/** Id and source of every file. */
export async function fileSources(db: DbSnapshot): Promise<readonly { readonly id: ObjectId; readonly source: Source }[]> {
  const rows = await db.query(FILES, ['file']);
  return rows.flatMap(([found, value]) => {
    const read = parseSource(toAttribute('source', value ?? null));
    return typeof found === 'string' && read !== null ? [{ id: found as ObjectId, source: read }] : [];
  });
}

/** The contents that heads hold themselves, by hash; others are absent. */
export async function inlineContents(db: DbSnapshot, hashes: readonly Sha256[]): Promise<ReadonlyMap<Sha256, string>> {
  const rows = hashes.length === 0 ? [] : await db.query(CONTENTS, [hashes]);
  return new Map(rows.map(([key, content]) => [String(key) as Sha256, String(content)]));
}

/** The objects whose content is longer than one chunk, with its hash. */
export async function longContents(db: DbSnapshot): Promise<readonly (readonly [ObjectId, Sha256])[]> {
  const from = 'chunks:'.length;
  const rows = await db.query(LONG_CONTENTS, ['chunks', from, from + 64]);
  return rows.map(([found, key]) => [String(found) as ObjectId, String(key) as Sha256]);
}

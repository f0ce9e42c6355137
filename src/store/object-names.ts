import { sym } from '../edn/values.js';
import type { ObjectId } from '../objects/ids.js';
import { FIELDS } from '../objects/object-type.js';
import { parseSource, type Source } from '../objects/source.js';
import { type DatalogQuery, each, predicate, triple } from '../xtdb/datalog.js';
import type { DbSnapshot } from '../xtdb/db-snapshot.js';
import { toAttribute } from '../xtdb/documents.js';

const e = sym('?e');
const id = sym('?id');
const type = sym('?type');
const from = sym('?from');
const to = sym('?to');
const source = sym('?source');

const FROM: DatalogQuery = {
  find: [id],
  in: [from, to, each(type)],
  where: [triple(e, 'xt/id', id), predicate('>=', id, from), predicate('<', id, to), triple(e, 'type', type)],
};

const FILES: DatalogQuery = { find: [e, source], in: [type], where: [triple(e, 'type', type), triple(e, 'source', source)] };

/** The first string after all those that begin with a prefix, in the order of UTF-16 units. */
function after(prefix: string): string {
  return `${prefix.slice(0, -1)}${String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1)}`;
}

/** Ids of objects, not of parts, that begin with a prefix. */
export async function objectIdsFrom(db: DbSnapshot, prefix: string, most: number): Promise<readonly ObjectId[]> {
  const end = after(prefix);
  if (prefix === '' || !prefix.isWellFormed() || !end.isWellFormed()) return [];
  const rows = await db.query({ ...FROM, limit: most }, [prefix, end, Object.keys(FIELDS)]);
  return rows.flatMap(([found]) => (typeof found === 'string' ? [found as ObjectId] : []));
}

/** Id and source of every file. */
export async function fileSources(db: DbSnapshot): Promise<readonly { readonly id: ObjectId; readonly source: Source }[]> {
  const rows = await db.query(FILES, ['file']);
  return rows.flatMap(([found, value]) => {
    const read = parseSource(toAttribute('source', value ?? null));
    return typeof found === 'string' && read !== null ? [{ id: found as ObjectId, source: read }] : [];
  });
}

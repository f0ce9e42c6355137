import { EdnMap, type EdnValue } from '../edn/values.js';
import { fromDocument, type StoredDocument, toDocument } from './documents.js';

/**
 * Alternative names of entities for one reader, valid from one transaction, optionally until
 * another.
 */
export interface EntityNames {
  /** Identifies the naming and its reader. */
  readonly of: string;
  /** Returns the name in the database; the same if the entity has no other name. */
  stored(id: string): string;
  /** Returns a document under its reader's name. Undefined if it has no other name. */
  read(document: StoredDocument): StoredDocument | undefined;
  readonly from: number;
  /** Absent if the names hold at every later transaction. */
  readonly until?: number | undefined;
}

/** Returns whether the names hold at a transaction. */
export const holdsAt = ({ from, until = Number.POSITIVE_INFINITY }: EntityNames, txId: number): boolean =>
  from <= txId && txId <= until;

/** Returns the arguments of a query with the database's names. */
export function storedArguments(args: readonly EdnValue[], names: EntityNames): readonly EdnValue[] {
  return args.map((value): EdnValue => {
    if (typeof value === 'string') return names.stored(value);
    return Array.isArray(value) ? storedArguments(value, names) : value;
  });
}

/** Returns a row of an answer with its reader's names. `ids` maps the database's names to them. */
export function readRow(
  row: readonly EdnValue[],
  ids: ReadonlyMap<string, string>,
  names: EntityNames,
): readonly EdnValue[] {
  return row.map((value) => {
    if (typeof value === 'string') return ids.get(value) ?? value;
    if (!(value instanceof EdnMap) || !ids.has(String(value.get('xt/id')))) return value;
    const document = names.read(toDocument(value));
    return document === undefined ? value : fromDocument(document);
  });
}

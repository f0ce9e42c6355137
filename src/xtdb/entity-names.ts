import { EdnMap, type EdnValue } from '../edn/values.js';
import { fromDocument, type StoredDocument, toDocument } from './documents.js';

/** Entities that a reader knows by other names than the database: from one transaction on, up to another. */
export interface EntityNames {
  /** What they are called for whom. */
  readonly of: string;
  /** The name in the database; the same where it has no other. */
  stored(id: string): string;
  /** A document as its reader knows it; undefined for one that goes by its own name. */
  read(document: StoredDocument): StoredDocument | undefined;
  readonly from: number;
  /** Absent where they hold at every later transaction. */
  readonly until?: number | undefined;
}

/** Whether some names hold at a transaction. */
export const holdsAt = ({ from, until = Number.POSITIVE_INFINITY }: EntityNames, txId: number): boolean => from <= txId && txId <= until;

/** The arguments of a query with the database's names. */
export function storedArguments(args: readonly EdnValue[], names: EntityNames): readonly EdnValue[] {
  return args.map((value): EdnValue => {
    if (typeof value === 'string') return names.stored(value);
    return Array.isArray(value) ? storedArguments(value, names) : value;
  });
}

/** A row of an answer with its reader's names; `ids` has these by the database's. */
export function readRow(row: readonly EdnValue[], ids: ReadonlyMap<string, string>, names: EntityNames): readonly EdnValue[] {
  return row.map((value) => {
    if (typeof value === 'string') return ids.get(value) ?? value;
    if (!(value instanceof EdnMap) || !ids.has(String(value.get('xt/id')))) return value;
    const document = names.read(toDocument(value));
    return document === undefined ? value : fromDocument(document);
  });
}

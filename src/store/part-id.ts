import { isPartId, type PartId, type SessionId } from '../objects/ids.js';
import type { DbSnapshot } from '../xtdb/db-snapshot.js';
import type { StoredDocument } from '../xtdb/documents.js';

/**
 * The kinds of parts, each with the names that identify a part of that kind. A kind is also the
 * `type` of its documents.
 */
interface PartNames {
  /** A page of steps has a range of numbers. */
  readonly step: readonly [session: SessionId, seq: number | `${number}-${number}`];
  readonly snapshot: readonly [session: SessionId, seq: number];
  readonly assembly: readonly [session: SessionId, seq: number, sha256: string];
  readonly record: readonly [kind: string, owner: string, sha256: string];
  /** Transaction 0 stands for the import as a whole. */
  readonly import: readonly [session: SessionId, transaction: number];
  /** The line of versions of a file that only an import's sessions see. */
  readonly line: readonly [file: string, session: SessionId];
  readonly chunk: readonly [sha256: string];
  readonly chunks: readonly [sha256: string];
  /** The tombstone of a document that was erased on order. */
  readonly erased: readonly [id: string];
  /** The erasures that removed content from the contexts of a remaining session. */
  readonly unproved: readonly [session: SessionId];
}

/**
 * Returns the `xt/id` of a part, such as `step:{session}:{seq}~`. No object can have one, because
 * `objectId` rejects it. External ids therefore never name a part.
 */
export function partId<Kind extends keyof PartNames>(kind: Kind, ...names: PartNames[Kind]): PartId {
  return `${kind}:${names.join(':')}~` as PartId;
}

/**
 * Returns the id that a part had before data format 2. A tool call may have the same id, so readers
 * check the document's type.
 */
export const formerId = (id: PartId): string => id.slice(0, -1);

/** Converts a part to the current format. A part from an old journal gets its current id. */
export function renewedPart(part: StoredDocument): StoredDocument {
  return isPartId(part['xt/id']) ? part : { ...part, 'xt/id': `${part['xt/id']}~` };
}

/** The document types of parts. */
const PART_TYPES: ReadonlySet<unknown> = new Set([
  'step',
  'steps',
  'snapshot',
  'assembly',
  'record',
  'chunk',
  'chunks',
]);

/** Returns whether a document has its current id. */
export function isRenewed(document: StoredDocument): boolean {
  return isPartId(document['xt/id']) || !PART_TYPES.has(document.type);
}

const isKind = (id: PartId, { type }: StoredDocument): boolean => id.startsWith(`${String(type)}:`);

/**
 * Returns the parts that exist only under an id from before data format 2, by their current ids.
 */
export async function formerParts(
  db: DbSnapshot,
  ids: readonly PartId[],
): Promise<ReadonlyMap<PartId, StoredDocument>> {
  const found = ids.length === 0 ? new Map<string, StoredDocument>() : await db.entities(ids.map(formerId));
  return new Map(
    ids.flatMap((id) => {
      const part = found.get(formerId(id));
      return part !== undefined && isKind(id, part) ? [[id, part] as const] : [];
    }),
  );
}

/**
 * Returns the parts under some ids of one session's steps, in their order, from any format version.
 * Unknown ids are absent.
 *
 * A session's steps have former ids only before those with current ids. So if the first part has
 * its current id, no former id is queried. If the first part is absent under both ids, the other
 * former ids are not queried either.
 */
export async function readParts(db: DbSnapshot, ids: readonly PartId[]): Promise<ReadonlyMap<PartId, StoredDocument>> {
  const entities = (await db.entities(ids)) as ReadonlyMap<PartId, StoredDocument>;
  const asked = new Set(ids);
  const found = new Map([...entities].filter(([id]) => asked.has(id)));
  const [first] = ids;
  if (first === undefined || found.has(first) || (await formerParts(db, [first])).size === 0) return found;
  const missing = ids.filter((id) => !found.has(id));
  return new Map([...found, ...(await formerParts(db, missing))]);
}

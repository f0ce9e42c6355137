import { isPartId, type PartId, type SessionId } from '../objects/ids.js';
import type { DbSnapshot } from '../xtdb/db-snapshot.js';
import type { StoredDocument } from '../xtdb/documents.js';

/** The kinds of parts, which are the types of their documents too, each with what tells parts of that kind apart. */
interface PartNames {
  /** A range of numbers for a page of steps. */
  readonly step: readonly [session: SessionId, seq: number | `${number}-${number}`];
  readonly snapshot: readonly [session: SessionId, seq: number];
  readonly assembly: readonly [session: SessionId, seq: number, sha256: string];
  readonly record: readonly [kind: string, owner: string, sha256: string];
  /** 0 for the whole of it. */
  readonly import: readonly [session: SessionId, transaction: number];
  /** The versions of a file that an import keeps to its sessions. */
  readonly line: readonly [file: string, session: SessionId];
  readonly chunk: readonly [sha256: string];
  readonly chunks: readonly [sha256: string];
}

/** The `xt/id` of a part: `step:{session}:{seq}~` and the like. No object has one (`objectId` refuses it), so nothing from outside can name a part. */
export function partId<Kind extends keyof PartNames>(kind: Kind, ...names: PartNames[Kind]): PartId {
  return `${kind}:${names.join(':')}~` as PartId;
}

/** The id that versions before data format 2 gave a part. A tool call may have it too: whoever reads by it looks at the document's type. */
export const formerId = (id: PartId): string => id.slice(0, -1);

/** A part as it is written now: one that an earlier version left in a journal gets its id of today. */
export function renewedPart(part: StoredDocument): StoredDocument {
  return isPartId(part['xt/id']) ? part : { ...part, 'xt/id': `${part['xt/id']}~` };
}

/** The types of documents that are parts. */
const PART_TYPES: ReadonlySet<unknown> = new Set(['step', 'steps', 'snapshot', 'assembly', 'record', 'chunk', 'chunks']);

/** Whether a document has the id that it would be written under today. */
export function isRenewed(document: StoredDocument): boolean {
  return isPartId(document['xt/id']) || !PART_TYPES.has(document.type);
}

const isKind = (id: PartId, { type }: StoredDocument): boolean => id.startsWith(`${String(type)}:`);

/** The parts under some ids that only a version before data format 2 has written, by their ids of today. */
export async function formerParts(db: DbSnapshot, ids: readonly PartId[]): Promise<ReadonlyMap<PartId, StoredDocument>> {
  const found = ids.length === 0 ? new Map<string, StoredDocument>() : await db.entities(ids.map(formerId));
  return new Map(
    ids.flatMap((id) => {
      const part = found.get(formerId(id));
      return part !== undefined && isKind(id, part) ? [[id, part] as const] : [];
    }),
  );
}

/**
 * The parts under some ids of one session's steps, in their order, whichever version wrote them; unknown ids are absent. No version goes back to a former id, so
 * where the first one is there under its id of today no other is asked for under its former one, and where it is not there at all none is.
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

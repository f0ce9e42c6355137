import * as z from 'zod';
import type { PartId, SessionId } from '../objects/ids.js';
import type { StoredDocument } from '../xtdb/documents.js';
import { StoreError } from './errors.js';
import { partId } from './part-id.js';

const orderSchema = z.strictObject({
  /** The order's name. */
  order: z.string(),
  /** When it was given, milliseconds since 1970. */
  at: z.int(),
  /** The user of the machine who gave it. */
  by: z.string(),
  reason: z.string(),
});

/** An erasure order, as its tombstones name it. */
export type ErasureOrder = Readonly<z.output<typeof orderSchema>>;

const tombstoneSchema = orderSchema.extend({
  /** The type of the erased document. */
  type: z.string(),
  /** The hashes of each of its versions, oldest first. */
  hashes: z.array(z.record(z.string(), z.string())),
});

/** The trace of a document that was erased on order (divergence 0030). It holds no content. */
export type Tombstone = Readonly<z.output<typeof tombstoneSchema>>;

const unprovedSchema = z.strictObject({
  orders: z.array(
    orderSchema.extend({
      /** The first step whose contexts may show erased content. */
      from: z.int(),
    }),
  ),
});

/** An order that removed content from the contexts of a remaining session. */
export type UnprovedFrom = ErasureOrder & { readonly from: number };

/** Returns the id of the tombstone of an erased document. */
const tombstoneId = (id: string): PartId => partId('erased', id);

/** Returns the id of the part with the erasures that removed content from a session's contexts. */
const unprovedId = (session: SessionId): PartId => partId('unproved', session);

/** Returns the stored form of a tombstone. */
export const toTombstone = (id: string, tombstone: Tombstone): StoredDocument => ({
  'xt/id': tombstoneId(id),
  type: 'erased',
  body: tombstone,
});

/** Returns the part with the erasures that removed content from a session's contexts. */
export const toUnproved = (session: SessionId, orders: readonly UnprovedFrom[]): StoredDocument => ({
  'xt/id': unprovedId(session),
  type: 'unproved',
  body: { orders },
});

function parsed<T>(part: StoredDocument, schema: z.ZodType<T>): T {
  const found = schema.safeParse(part.body);
  if (found.success) return found.data;
  throw new StoreError('corrupt-part', `${part['xt/id']} is not a valid part of an erasure`);
}

/** Reads the newest documents under some ids. */
interface NewestDocuments {
  newest(ids: readonly string[]): Promise<ReadonlyMap<string, StoredDocument>>;
}

/**
 * Returns the tombstones of some documents by their ids. Documents that were not erased are absent.
 * `documents` must read the newest state, because an earlier basis lacks the tombstones.
 */
export async function readTombstones(
  documents: NewestDocuments,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Tombstone>> {
  const found = ids.length === 0 ? new Map<string, StoredDocument>() : await documents.newest(ids.map(tombstoneId));
  return new Map(
    ids.flatMap((id) => {
      const part = found.get(tombstoneId(id));
      return part?.type === 'erased' ? [[id, parsed(part, tombstoneSchema)] as const] : [];
    }),
  );
}

/** Returns the orders that have removed content from a session's contexts so far, oldest first. */
export async function readUnproved(documents: NewestDocuments, session: SessionId): Promise<readonly UnprovedFrom[]> {
  const part = (await documents.newest([unprovedId(session)])).get(unprovedId(session));
  return part?.type === 'unproved' ? parsed(part, unprovedSchema).orders : [];
}

/** Describes an erasure: by whom, when and why. */
export const erasedText = ({ order, at, by, reason }: ErasureOrder): string =>
  `erased on order ${order} of ${by}, ${new Date(at).toISOString()}: ${reason}`;

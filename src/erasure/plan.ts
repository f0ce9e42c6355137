import * as z from 'zod';
import { canonicalJson, type Json } from '../objects/canonical-json.js';
import { hashText } from '../objects/hashes.js';
import { type SessionId, sessionId } from '../objects/ids.js';
import { ErasureError } from './erasure-error.js';
import type { KnownDocument } from './inventory.js';
import { type Selection, selectionName } from './selection.js';

/** A document that leaves a tombstone: an object, or a step, which becomes a gap in its session. */
export interface Buried {
  readonly id: string;
  readonly type: string;
  readonly hashes: readonly Readonly<Record<string, string>>[];
}

/** A session that stays, but can no longer prove the contexts at and after a step. */
export interface Unproved {
  readonly session: SessionId;
  readonly from: number;
  readonly turn: number;
  /** The number of the session's context records at and after that step. */
  readonly contexts: number;
}

/** The extent of an order, computed from the database at one transaction. */
export interface ErasurePlan {
  readonly selection: Selection;
  readonly txId: number;
  /** Ids of all documents that are evicted, sorted. */
  readonly evict: readonly string[];
  /** Bytes of all versions of the evicted documents, as JSON. */
  readonly bytes: number;
  readonly buried: readonly Buried[];
  /** Sessions that are erased completely. */
  readonly sessions: readonly SessionId[];
  readonly unproved: readonly Unproved[];
  /** Ids of evicted documents that are stored again with a mark in place of the text. */
  readonly marked: readonly string[];
  /** Files and texts that stay, each with a document of a remaining session that needs it. */
  readonly kept: readonly { readonly document: KnownDocument; readonly by: KnownDocument }[];
  /** The texts to search for in copies. Empty if whole sessions are erased. */
  readonly texts: readonly string[];
}

const planFileSchema = z.strictObject({
  selection: z.string(),
  txId: z.int(),
  evict: z.array(z.string()),
  unproved: z.array(z.strictObject({ session: z.string().transform(sessionId), from: z.int() })),
  digest: z.string(),
});

/**
 * The part of a plan that its file keeps from `--plan` until `--apply`. It contains no recorded
 * content.
 */
export type PlannedExtent = Readonly<z.output<typeof planFileSchema>>;

const digestOf = (extent: Omit<PlannedExtent, 'digest'>): string => hashText(canonicalJson(extent as unknown as Json));

/** Returns the extent of a plan. */
export function extentOf({ selection, txId, evict, unproved }: ErasurePlan): PlannedExtent {
  const extent = {
    selection: selectionName(selection),
    txId,
    evict: [...evict],
    unproved: unproved.map(({ session, from }) => ({ session, from })),
  };
  return { ...extent, digest: digestOf(extent) };
}

/**
 * Parses the extent of a plan from the text of a plan file.
 * @throws {ErasureError} `forged-plan`
 */
export function readExtent(text: string, path: string): PlannedExtent {
  let extent: PlannedExtent | undefined;
  try {
    extent = planFileSchema.parse(JSON.parse(text));
  } catch {
    extent = undefined;
  }
  const { digest, ...rest } = extent ?? {};
  if (extent === undefined || digest !== digestOf(rest as Omit<PlannedExtent, 'digest'>))
    throw new ErasureError(
      'forged-plan',
      `${path} was changed after palimpsest erase --plan wrote it, so nothing was erased. Run --plan again`,
    );
  return extent;
}

/**
 * Checks that a plan does not exceed the extent that `--plan` showed to the user.
 * @throws {ErasureError} `beyond-plan`, naming an example
 */
export function requireWithin(plan: ErasurePlan, extent: PlannedExtent): void {
  const planned = new Set(extent.evict);
  const more = plan.evict.filter((id) => !planned.has(id));
  const from = new Map<string, number>(extent.unproved.map((one) => [one.session, one.from]));
  const touched = plan.unproved.filter(
    ({ session, from: first }) => first < (from.get(session) ?? Number.POSITIVE_INFINITY),
  );
  if (more.length === 0 && touched.length === 0) return;
  const what = more.length > 0 ? `${more.length} more documents, such as ${more[0]}` : `session ${touched[0]?.session}`;
  throw new ErasureError(
    'beyond-plan',
    `data was recorded after the plan of transaction ${extent.txId}, so the order would now also reach ${what}. ` +
      'Nothing was erased. Run --plan again, then apply the new plan',
  );
}

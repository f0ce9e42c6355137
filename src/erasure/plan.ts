import * as z from 'zod';
import { canonicalJson, type Json } from '../objects/canonical-json.js';
import { quoted } from '../objects/errors.js';
import { hashText } from '../objects/hashes.js';
import { type SessionId, sessionId } from '../objects/ids.js';
import { isObjectType } from '../objects/object-type.js';
import type { ObjectStore } from '../store/object-store.js';
import { similarNames } from '../values/similar-names.js';
import type { LoggedDocument } from '../xtdb/tx-log.js';
import { ErasureError } from './erasure-error.js';
import { Inventory, type KnownDocument } from './inventory.js';
import { documentsOfSessions, type ErasedDocuments } from './plan-sessions.js';
import { planTexts } from './plan-texts.js';
import { expiredSessions, type RetentionRule } from './retention.js';
import { type Selection, selectionName } from './selection.js';

/** A document with a tombstone: an object, or a step that stays as a gap. */
export interface Buried {
  readonly id: string;
  readonly type: string;
  readonly hashes: readonly Readonly<Record<string, string>>[];
}

/** A session that stays and loses the proof of its contexts from a step on. */
export interface Unproved {
  readonly session: SessionId;
  readonly from: number;
  readonly turn: number;
  /** The number of its context records from that step on. */
  readonly contexts: number;
}

/** What an order will erase, computed from the database at one transaction. Changes nothing. */
export interface ErasurePlan {
  readonly selection: Selection;
  readonly txId: number;
  /** Ids of all documents that are evicted, sorted. */
  readonly evict: readonly string[];
  readonly buried: readonly Buried[];
  /** Sessions erased whole. */
  readonly sessions: readonly SessionId[];
  readonly unproved: readonly Unproved[];
  /** Ids of evicted documents that come back with a mark in place of the text. */
  readonly marked: readonly string[];
  /** What stays because other sessions need it. */
  readonly kept: ErasedDocuments['kept'];
  /** The texts to look for in copies. Empty for whole sessions. */
  readonly texts: readonly string[];
}

/** The input of a plan. */
export interface PlanInput {
  readonly log: AsyncIterable<LoggedDocument>;
  readonly store: ObjectStore;
  readonly selection: Selection;
  readonly rules: readonly RetentionRule[];
  /** Allows that sessions which the order does not name lose content. */
  readonly shared: boolean;
}

function sessionsOf(
  inventory: Inventory,
  selection: Selection,
  rules: readonly RetentionRule[],
): ReadonlySet<SessionId> {
  const all = [...inventory.sessions.values()].filter(({ id }) => inventory.documents.has(`session:${id}`));
  if (selection.kind === 'session') {
    const found = all.find(({ id }) => id === selection.session);
    if (found !== undefined) return new Set([found.id]);
    const like = similarNames(
      selection.session,
      all.map(({ id }) => id),
    );
    const hint = like.length === 0 ? 'palimpsest sessions lists all' : `did you mean ${like.join(' or ')}?`;
    throw new ErasureError('unknown-session', `there is no session ${quoted(selection.session)}: ${hint}`);
  }
  if (selection.kind === 'before')
    return new Set(all.filter(({ lastAt }) => lastAt < selection.at).map(({ id }) => id));
  return expiredSessions(all, rules, Date.now());
}

const buriedOf = ({ id, type, hashes }: KnownDocument): Buried => ({ id, type, hashes });

function planSessions(inventory: Inventory, selection: Selection, rules: readonly RetentionRule[]): ErasurePlan {
  const sessions = sessionsOf(inventory, selection, rules);
  const { erased, kept } = documentsOfSessions(inventory, sessions);
  return {
    selection,
    txId: inventory.txId,
    evict: [...erased].map(({ id }) => id).sort(),
    buried: [...erased].filter(({ type }) => isObjectType(type)).map(buriedOf),
    sessions: [...sessions].sort(),
    unproved: [],
    marked: [],
    kept,
    texts: [],
  };
}

/**
 * Computes what an order erases. Reads the whole transaction log.
 *
 * @throws {ErasureError} `unknown-session`, `unknown-object`, `not-found`, `matches-all`,
 *   `has-forks`, `shared`, `wrong-kind`
 */
export async function makePlan({ log, store, selection, rules, shared }: PlanInput): Promise<ErasurePlan> {
  if (selection.kind === 'text' || selection.kind === 'object') {
    const found = await planTexts({ log, store, selection, shared });
    return { selection, sessions: [], ...found };
  }
  return planSessions(await Inventory.read(log), selection, rules);
}

const planFileSchema = z.strictObject({
  selection: z.string(),
  txId: z.int(),
  evict: z.array(z.string()),
  unproved: z.array(z.strictObject({ session: z.string().transform(sessionId), from: z.int() })),
  digest: z.string(),
});

/** The extent of a plan, as kept between `--plan` and `--apply`. It holds no content. */
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
 * Reads the extent of a plan that was made for a selection.
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
      `${path} is not as palimpsest erase --plan wrote it, so nothing is erased: make the plan again`,
    );
  return extent;
}

/**
 * Checks that a plan stays within the extent that was shown before.
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
    `since the plan of transaction ${extent.txId} the order would reach ${what}: nothing was erased. ` +
      'Look at a new plan with --plan, then apply that one',
  );
}

import { quoted } from '../objects/errors.js';
import type { SessionId } from '../objects/ids.js';
import { isObjectType } from '../objects/object-type.js';
import type { ObjectStore } from '../store/object-store.js';
import { similarNames } from '../values/similar-names.js';
import type { TransactionLog } from '../xtdb/tx-log.js';
import { ErasureError } from './erasure-error.js';
import { Inventory, type KnownDocument, refuseArriving } from './inventory.js';
import type { Buried, ErasurePlan } from './plan.js';
import { planTexts } from './plan-texts.js';
import { expiredSessions, type RetentionRule } from './retention.js';
import type { Selection } from './selection.js';

/** @throws {ErasureError} `has-forks` – a session that stays shares steps with one of `sessions` */
function refuseForks(inventory: Inventory, sessions: ReadonlySet<SessionId>): void {
  for (const { id, parent } of inventory.sessions.values()) {
    if (parent === undefined || sessions.has(id) || !sessions.has(parent.session)) continue;
    throw new ErasureError(
      'has-forks',
      `session ${id} was forked from ${parent.session} and needs its steps up to ${parent.seq}: ` +
        `erase ${id} first, or keep ${parent.session}`,
    );
  }
}

/** Returns the files and texts that some documents name, directly or through other documents. */
function reached(inventory: Inventory, from: Iterable<KnownDocument>): ReadonlySet<KnownDocument> {
  const found = new Set<KnownDocument>();
  const waiting = [...from];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for (const digest of inventory.digestsOf(next.names)) {
      for (const document of inventory.identifiedBy(digest)) {
        if (found.has(document) || document.session !== undefined) continue;
        found.add(document);
        waiting.push(document);
      }
    }
  }
  return found;
}

/**
 * Returns the documents to erase with some sessions: the sessions' own documents, and each file and
 * text that no document of another session names.
 *
 * @throws {ErasureError} `has-forks`
 */
function documentsOfSessions(
  inventory: Inventory,
  sessions: ReadonlySet<SessionId>,
): Pick<ErasurePlan, 'kept'> & { readonly erased: ReadonlySet<KnownDocument> } {
  refuseForks(inventory, sessions);
  const own = new Set<KnownDocument>();
  for (const document of inventory.documents.values())
    if (document.session !== undefined && sessions.has(document.session)) own.add(document);
  const candidates = new Set(reached(inventory, own));
  const needs = new Map<KnownDocument, KnownDocument>();
  // Everything that a remaining document names also stays.
  let others = [...inventory.documents.values()].filter((one) => !own.has(one) && !candidates.has(one));
  const byNumber = new Map<number, KnownDocument[]>();
  for (const candidate of candidates) {
    for (const digest of digestsIn(candidate.id)) {
      const number = inventory.numberOf(digest);
      if (number !== undefined) byNumber.set(number, [...(byNumber.get(number) ?? []), candidate]);
    }
  }
  while (others.length > 0) {
    const kept: KnownDocument[] = [];
    for (const other of others) {
      for (const number of other.names) {
        for (const candidate of byNumber.get(number) ?? []) {
          if (!candidates.delete(candidate)) continue;
          needs.set(candidate, other);
          kept.push(candidate);
        }
      }
    }
    others = kept;
  }
  const kept = [...needs].map(([document, by]) => ({ document, by }));
  return { erased: new Set([...own, ...candidates]), kept };
}

const bytesOf = (documents: Iterable<KnownDocument>): number =>
  [...documents].reduce((sum, { bytes }) => sum + bytes, 0);

const digestsIn = (id: string): readonly string[] => id.match(/[0-9a-f]{64}/g) ?? [];

/** The input of a plan. */
export interface PlanInput {
  readonly log: TransactionLog;
  readonly store: ObjectStore;
  readonly selection: Selection;
  readonly rules: readonly RetentionRule[];
  /** Whether several sessions may lose content. */
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

/**
 * Plans the erasure of sessions.
 * @throws {ErasureError} `unknown-session`, `has-forks`, `importing`
 */
export function planSessions(
  inventory: Inventory,
  selection: Exclude<Selection, { readonly kind: 'text' | 'object' }>,
  rules: readonly RetentionRule[],
): ErasurePlan {
  const sessions = sessionsOf(inventory, selection, rules);
  refuseArriving(inventory, sessions);
  const { erased, kept } = documentsOfSessions(inventory, sessions);
  return {
    selection,
    txId: inventory.txId,
    evict: [...erased].map(({ id }) => id).sort(),
    bytes: bytesOf(erased),
    buried: [...erased].filter(({ type }) => isObjectType(type)).map(buriedOf),
    sessions: [...sessions].sort(),
    unproved: [],
    marked: [],
    kept,
    texts: [],
  };
}

/**
 * Plans an erasure. Reads the whole transaction log.
 *
 * @throws {ErasureError} `unknown-session`, `unknown-object`, `not-found`, `matches-all`,
 *   `has-forks`, `shared`, `wrong-kind`, `importing`
 */
export async function makePlan({ log, store, selection, rules, shared }: PlanInput): Promise<ErasurePlan> {
  if (selection.kind === 'text' || selection.kind === 'object') {
    const found = await planTexts({ log, store, selection, shared });
    return { selection, sessions: [], ...found };
  }
  return planSessions(await Inventory.read(log), selection, rules);
}

import type { SessionId } from '../objects/ids.js';
import { ErasureError } from './erasure-error.js';
import type { Inventory, KnownDocument } from './inventory.js';

/** The documents that go, and the ones that stay because others need them. */
export interface ErasedDocuments {
  readonly erased: ReadonlySet<KnownDocument>;
  /** Files and texts of the selection that stay, each with an example of a document that needs it. */
  readonly kept: readonly { readonly document: KnownDocument; readonly by: KnownDocument }[];
}

/** @throws {ErasureError} `has-forks` – a session that stays shares steps with one of these */
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

/** The files and texts that some documents name, with everything that these name in turn. */
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
 * Returns the documents that go with some sessions: their own, and each file and text that no
 * document of another session names.
 *
 * @throws {ErasureError} `has-forks`
 */
export function documentsOfSessions(inventory: Inventory, sessions: ReadonlySet<SessionId>): ErasedDocuments {
  refuseForks(inventory, sessions);
  const own = new Set<KnownDocument>();
  for (const document of inventory.documents.values())
    if (document.session !== undefined && sessions.has(document.session)) own.add(document);
  const candidates = new Set(reached(inventory, own));
  const needs = new Map<KnownDocument, KnownDocument>();
  // What a kept document names is kept, and so is what that names.
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

const digestsIn = (id: string): readonly string[] => id.match(/[0-9a-f]{64}/g) ?? [];

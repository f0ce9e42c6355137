import type { SessionId } from '../objects/ids.js';
import type { Inventory, KnownDocument } from './inventory.js';
import { DAY_MS } from './retention.js';

/** The size of the content that only one session needs. */
export interface SessionSpace {
  readonly id: SessionId;
  /** Time of the session's last step, in milliseconds since 1970. */
  readonly lastAt: number;
  readonly bytes: number;
}

/** The number and size of the documents of one type. */
export interface KindSpace {
  readonly type: string;
  readonly documents: number;
  readonly bytes: number;
}

/**
 * A group of sessions by age. Their last step is less than `days` old, and at least as old as the
 * limit of the group before.
 */
export interface AgeSpace {
  /** Undefined for the group of the oldest sessions. */
  readonly days: number | undefined;
  readonly sessions: number;
  readonly bytes: number;
}

/** The content of a database. Sizes are bytes of all versions of the documents as JSON. */
export interface ContentSpace {
  readonly bytes: number;
  /** Content that several sessions need, or that no session needs. */
  readonly shared: number;
  /** Largest first. */
  readonly sessions: readonly SessionSpace[];
  /** Largest first. */
  readonly kinds: readonly KindSpace[];
  /** Youngest first. */
  readonly ages: readonly AgeSpace[];
}

const AGES = [1, 7, 30, 90, 365, undefined] as const;

/** Replaces a session's id for content that several sessions need, or that no session needs. */
const SHARED = Symbol('shared');

/**
 * Returns for each document the only session that needs it, or `SHARED`. Erasing a session erases
 * the documents that no other session needs.
 */
function ownersOf(inventory: Inventory): ReadonlyMap<KnownDocument, SessionId | typeof SHARED> {
  const owners = new Map<KnownDocument, SessionId | typeof SHARED>();
  const claim = (from: readonly KnownDocument[], owner: SessionId | typeof SHARED): void => {
    const waiting = [...from];
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop())
      for (const digest of inventory.digestsOf(next.names))
        for (const named of inventory.identifiedBy(digest)) {
          const before = owners.get(named);
          if (named.session !== undefined || before === owner || before === SHARED) continue;
          owners.set(named, before === undefined ? owner : SHARED);
          waiting.push(named);
        }
  };
  const own = new Map<SessionId, KnownDocument[]>([...inventory.sessions.keys()].map((id) => [id, []]));
  for (const document of inventory.documents.values()) {
    if (document.session === undefined) continue;
    own.get(document.session)?.push(document);
    owners.set(document, document.session);
  }
  for (const [session, documents] of own) claim(documents, session);
  const unowned = [...inventory.documents.values()].filter((one) => !owners.has(one));
  for (const document of unowned) owners.set(document, SHARED);
  claim(unowned, SHARED);
  return owners;
}

/** Returns the sum of the items' `bytes`. */
export const sumOf = (some: readonly { readonly bytes: number }[]): number =>
  some.reduce((sum, one) => sum + one.bytes, 0);

/** Sums the content of a database by session, by kind and by age. */
export function contentSpace(inventory: Inventory, now: number): ContentSpace {
  const bySession = new Map<SessionId, number>();
  const kinds = new Map<string, KindSpace>();
  let [bytes, shared] = [0, 0];
  for (const [document, owner] of ownersOf(inventory)) {
    bytes += document.bytes;
    if (owner === SHARED) shared += document.bytes;
    else bySession.set(owner, (bySession.get(owner) ?? 0) + document.bytes);
    const { type } = document;
    const kind = kinds.get(type) ?? { type, documents: 0, bytes: 0 };
    kinds.set(type, { type, documents: kind.documents + 1, bytes: kind.bytes + document.bytes });
  }
  const sessions = [...bySession].map(([id, size]) => ({
    id,
    lastAt: inventory.sessions.get(id)?.lastAt ?? 0,
    bytes: size,
  }));
  const ageOf = (lastAt: number): AgeSpace['days'] =>
    AGES.find((days) => days === undefined || now - lastAt < days * DAY_MS);
  const largest = (a: { readonly bytes: number }, b: { readonly bytes: number }): number => b.bytes - a.bytes;
  return {
    bytes,
    shared,
    sessions: sessions.sort(largest),
    kinds: [...kinds.values()].sort(largest),
    ages: AGES.flatMap((days) => {
      const found = sessions.filter(({ lastAt }) => ageOf(lastAt) === days);
      return found.length === 0 ? [] : [{ days, sessions: found.length, bytes: sumOf(found) }];
    }),
  };
}

import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { readTombstones, readUnproved } from '../../store/tombstones.js';
import { orderAt } from '../rebuild/erased.js';
import type { SessionVerification } from './verify-session.js';

/** A verification before its findings are explained. */
type Findings = Omit<SessionVerification, 'ok' | 'erased'>;

/**
 * Takes the findings of a verification out that an erasure order explains: contexts and answers
 * from the first step on that showed erased content, and parts with a tombstone. Everything else
 * stays damage.
 */
export async function explainErased(
  present: StoreSnapshot,
  findings: Findings,
): Promise<Omit<SessionVerification, 'ok'>> {
  const { session, contexts, answers, parts } = findings;
  const owners = [...new Set([session, ...contexts.unequal.map((one) => one.session)])];
  const orders = new Map(
    await Promise.all(owners.map(async (one) => [one, await readUnproved(present.documents, one)] as const)),
  );
  const own = orders.get(session) ?? [];
  const ids = parts.damages.flatMap(({ part, of }) => [part, of]);
  const tombstones = await readTombstones(present.documents, ids);
  if (own.length === 0 && tombstones.size === 0) return findings;
  const unequal = contexts.unequal.filter((one) => orderAt(orders.get(one.session) ?? [], one.step) === undefined);
  const wrong = answers.unequal.filter(({ step }) => orderAt(own, step) === undefined);
  const damages = parts.damages.filter(({ part, of }) => !tombstones.has(part) && !tombstones.has(of));
  return {
    session,
    contexts: { ...contexts, unequal },
    answers: { ...answers, unequal: wrong },
    parts: { ...parts, damages },
    erased: {
      orders: own,
      contexts: contexts.unequal.length - unequal.length,
      parts: parts.damages.length - damages.length + answers.unequal.length - wrong.length,
    },
  };
}

import { AssemblyError } from '../../assembly/layout.js';
import { quoted } from '../../objects/errors.js';
import type { SessionId } from '../../objects/ids.js';
import { isDamage } from '../../store/errors.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { erasedText, readTombstones, readUnproved, type UnprovedFrom } from '../../store/tombstones.js';
import { HistoryError } from './history-error.js';

/**
 * Throws if one of some ids was erased on order. Takes a snapshot of the newest state, because
 * earlier bases lack the tombstones.
 *
 * @throws {HistoryError} `erased`, with who, when and why
 */
export async function refuseErased({ documents }: StoreSnapshot, ids: readonly string[]): Promise<void> {
  const named = ids.filter((id) => id !== '' && id.isWellFormed());
  for (const [id, tombstone] of await readTombstones(documents, named))
    throw new HistoryError('erased', `${quoted(id)} was ${erasedText(tombstone)}`);
}

/** Returns the order that erased content of a session's contexts at a step, if there is one. */
export const orderAt = (orders: readonly UnprovedFrom[], step: number): UnprovedFrom | undefined =>
  orders.find(({ from }) => from <= step);

/** Codes of questions that fail because a step or object is absent at their basis. */
const ABSENT: ReadonlySet<string> = new Set(['not-yet', 'other-steps', 'no-content', 'unknown-object']);

/**
 * Answers a question about a session. If it fails because data was erased on order, the error says
 * so.
 *
 * @throws {HistoryError} `erased`; otherwise the errors of `ask`
 */
export async function orErased<T>(present: StoreSnapshot, session: SessionId, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    const isAbsent = error instanceof AssemblyError || (error instanceof HistoryError && ABSENT.has(error.code));
    if (!isDamage(error) && !isAbsent) throw error;
    const [order] = await readUnproved(present.documents, session);
    if (order === undefined) throw error;
    throw new HistoryError(
      'erased',
      `session ${session} cannot be shown from step ${order.from} on: part of its content was ${erasedText(order)}`,
      { cause: error },
    );
  }
}

import { EdnError } from '../edn/errors.js';
import { encodeTransit } from '../edn/transit.js';
import { checkDate, checkString, EdnMap, type EdnValue, kw, kwMap } from '../edn/values.js';
import { fromDocument, type StoredDocument } from './documents.js';
import { XtdbError } from './errors.js';

/**
 * One operation of a transaction. Operations apply in order, all or none.
 *
 * - `put` records a version from `validTime` (default: the transaction's time) until the next
 *   recorded version
 * - `match` lets the transaction commit only if the document at `validTime` is exactly this one;
 *   null: if there is none
 * - `evict` removes every version of an entity at all times, with its documents
 */
export type TxOp =
  | { readonly op: 'put'; readonly doc: StoredDocument; readonly validTime?: Date }
  | { readonly op: 'match'; readonly id: string; readonly doc: StoredDocument | null; readonly validTime?: Date }
  | { readonly op: 'evict'; readonly id: string };

/**
 * A valid time after every version. The document at this time is the newest one, even if clocks
 * differ slightly.
 */
export const END_OF_TIME = new Date('9999-12-31T23:59:59.999Z');

/** Confirms that the node accepted a submission. It is not a commit: query the outcome. */
export interface TxReceipt {
  readonly txId: number;
  readonly txTime: Date;
}

/** The outcome of a transaction: all its operations, or none after a failed `match`. */
export type TxOutcome = 'committed' | 'aborted';

/**
 * Returns the transit text of a submission.
 *
 * @throws {XtdbError} `bad-request` for no operations, an unknown attribute, a value of the wrong
 *   type, an empty id, or an invalid valid time
 */
export function encodeTransaction(ops: readonly TxOp[]): string {
  if (ops.length === 0) throw new XtdbError('bad-request', 'A transaction needs at least one operation.');
  try {
    return encodeTransit(kwMap({ 'tx-ops': ops.map(encodeOp) }));
  } catch (cause) {
    if (!(cause instanceof EdnError)) throw cause;
    throw new XtdbError('bad-request', `The transaction cannot be written: ${cause.message}`, { cause });
  }
}

const PUT = kw('xtdb.api/put');
const MATCH = kw('xtdb.api/match');
const EVICT = kw('xtdb.api/evict');

function encodeOp(op: TxOp): readonly EdnValue[] {
  if (op.op === 'evict') return [EVICT, entityId(op.id)];
  const from = op.validTime === undefined ? [] : [checkDate(op.validTime)];
  if (op.op === 'put') return [PUT, fromDocument(op.doc), ...from];
  return [MATCH, entityId(op.id), op.doc === null ? null : fromDocument(op.doc), ...from];
}

/**
 * Returns an entity id in its wire form.
 * @throws {XtdbError} `bad-request` for an empty id or one with a lone surrogate
 */
export function entityId(id: string): string {
  if (typeof id !== 'string' || id === '')
    throw new XtdbError('bad-request', 'An entity id must be a string that is not empty.');
  try {
    return checkString(id);
  } catch (cause) {
    throw new XtdbError('bad-request', `The entity id ${JSON.stringify(id.slice(0, 80))} cannot be sent unchanged.`, {
      cause,
    });
  }
}

/**
 * Reads the transaction id and time of an answer.
 * @throws {XtdbError} `bad-response`
 */
export function readReceipt(value: EdnValue | undefined): TxReceipt {
  const txId = value instanceof EdnMap ? value.get('xtdb.api/tx-id') : undefined;
  const txTime = value instanceof EdnMap ? value.get('xtdb.api/tx-time') : undefined;
  if (typeof txId !== 'number' || !(txTime instanceof Date))
    throw new XtdbError('bad-response', 'A receipt without transaction id and time.');
  return { txId, txTime };
}

import { EdnError } from '../edn/errors.js';
import { encodeTransit } from '../edn/transit.js';
import { checkDate, checkString, EdnMap, type EdnValue, kw, kwMap } from '../edn/values.js';
import { fromDocument, type StoredDocument } from './documents.js';
import { XtdbError } from './errors.js';

/**
 * One operation of a transaction. Operations apply in order, all or none.
 *
 * - `put` records a version from `validTime` (default: the transaction's time) until the next version recorded
 * - `match` lets the transaction commit only if the document current at `validTime` is exactly this one; null: if there is none
 */
export type TxOp =
  | { readonly op: 'put'; readonly doc: StoredDocument; readonly validTime?: Date }
  | { readonly op: 'match'; readonly id: string; readonly doc: StoredDocument | null; readonly validTime?: Date };

/** Later than every version, so that what is current then is the newest one, also where clocks differ by a little. */
export const END_OF_TIME = new Date('9999-12-31T23:59:59.999Z');

/** That the node took a submission. It is no commit: ask for the outcome. */
export interface TxReceipt {
  readonly txId: number;
  readonly txTime: Date;
}

/** What became of a transaction: all its operations, or (a failed `match`) none. */
export type TxOutcome = 'committed' | 'aborted';

/**
 * The transit text of a submission.
 *
 * @throws {XtdbError} `bad-request` for no operations, an attribute that is not on the list, a value of the wrong type, an empty id, or an invalid
 * valid time
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

function encodeOp(op: TxOp): readonly EdnValue[] {
  const from = op.validTime === undefined ? [] : [checkDate(op.validTime)];
  if (op.op === 'put') return [PUT, fromDocument(op.doc), ...from];
  return [MATCH, entityId(op.id), op.doc === null ? null : fromDocument(op.doc), ...from];
}

/** An entity id as it goes over the wire. @throws {XtdbError} `bad-request` for an empty one or one with a lone surrogate */
export function entityId(id: string): string {
  if (typeof id !== 'string' || id === '') throw new XtdbError('bad-request', 'An entity id is a string that is not empty.');
  try {
    return checkString(id);
  } catch (cause) {
    throw new XtdbError('bad-request', `The entity id ${JSON.stringify(id.slice(0, 80))} cannot be sent unchanged.`, { cause });
  }
}

/** The transaction id and time in an answer. @throws {XtdbError} `bad-response` */
export function readReceipt(value: EdnValue | undefined): TxReceipt {
  const txId = value instanceof EdnMap ? value.get('xtdb.api/tx-id') : undefined;
  const txTime = value instanceof EdnMap ? value.get('xtdb.api/tx-time') : undefined;
  if (typeof txId !== 'number' || !(txTime instanceof Date))
    throw new XtdbError('bad-response', 'A receipt without transaction id and time.');
  return { txId, txTime };
}

import { EdnError } from '../edn/errors.js';
import { encodeTransit } from '../edn/transit.js';
import { checkDate, checkString, EdnMap, type EdnValue, elements, Keyword, kw, kwMap } from '../edn/values.js';
import { fromDocument, type StoredDocument } from './documents.js';
import { XtdbError } from './errors.js';

/**
 * One operation of a transaction. Operations apply in order, all or none.
 *
 * - `put` records a version from `validTime` (default: the transaction's time) until `endValidTime` (default: until the next version recorded)
 * - `delete` ends the entity over the same kind of span
 * - `match` lets the transaction commit only if the document current at `validTime` is exactly this one; null: if there is none
 * - `evict` removes every version at every time; the text may stay in the database's files until the index is rebuilt
 */
export type TxOp =
  | { readonly op: 'put'; readonly doc: StoredDocument; readonly validTime?: Date; readonly endValidTime?: Date }
  | { readonly op: 'delete'; readonly id: string; readonly validTime?: Date; readonly endValidTime?: Date }
  | { readonly op: 'match'; readonly id: string; readonly doc: StoredDocument | null; readonly validTime?: Date }
  | { readonly op: 'evict'; readonly id: string };

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
 * @throws {XtdbError} `bad-request` for no operations, an attribute that is not on the list, a value of the wrong type, an empty id, an invalid or
 * reversed span of valid time, or an id that is evicted and put in one transaction (XTDB would lose the put)
 */
export function encodeTransaction(ops: readonly TxOp[]): string {
  if (ops.length === 0) throw new XtdbError('bad-request', 'A transaction needs at least one operation.');
  refuseEvictBesidePut(ops);
  try {
    return encodeTransit(kwMap({ 'tx-ops': ops.map((op) => encodeOp(op)) }));
  } catch (cause) {
    if (!(cause instanceof EdnError)) throw cause;
    throw new XtdbError('bad-request', `The transaction cannot be written: ${cause.message}`, { cause });
  }
}

const PUT = kw('xtdb.api/put');
const DELETE = kw('xtdb.api/delete');
const MATCH = kw('xtdb.api/match');
const EVICT = kw('xtdb.api/evict');

type Encoders = { readonly [K in TxOp['op']]: (op: Extract<TxOp, { op: K }>) => readonly EdnValue[] };

const ENCODERS: Encoders = {
  put: (op) => [PUT, fromDocument(op.doc), ...span(op.validTime, op.endValidTime)],
  delete: (op) => [DELETE, entityId(op.id), ...span(op.validTime, op.endValidTime)],
  match: (op) => [MATCH, entityId(op.id), op.doc === null ? null : fromDocument(op.doc), ...span(op.validTime, undefined)],
  evict: (op) => [EVICT, entityId(op.id)],
};

function encodeOp<K extends TxOp['op']>(op: Extract<TxOp, { op: K }>): readonly EdnValue[] {
  const encode = Object.hasOwn(ENCODERS, op.op)
    ? (ENCODERS[op.op as K] as (op: Extract<TxOp, { op: K }>) => readonly EdnValue[])
    : undefined;
  if (encode === undefined) throw new XtdbError('bad-request', 'An operation is one of put, delete, match and evict.');
  return encode(op);
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

function span(from: Date | undefined, to: Date | undefined): readonly EdnValue[] {
  if (from === undefined) {
    if (to !== undefined) throw new XtdbError('bad-request', 'A span of valid time needs its beginning.');
    return [];
  }
  checkDate(from);
  if (to === undefined) return [from];
  checkDate(to);
  if (to.getTime() <= from.getTime())
    throw new XtdbError('bad-request', `The span of valid time ends at ${to.toISOString()}, before it begins.`);
  return [from, to];
}

function refuseEvictBesidePut(ops: readonly TxOp[]): void {
  const evicted = new Set(ops.flatMap((op) => (op.op === 'evict' ? [op.id] : [])));
  if (evicted.size === 0) return;
  for (const op of ops) {
    if (op.op === 'put' && evicted.has(op.doc['xt/id'])) {
      throw new XtdbError('bad-request', 'An entity cannot be evicted and put in one transaction, the put would be lost: use two.');
    }
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

/** One transaction of the log. */
export interface TxLogEntry extends TxReceipt {
  /** The operations with their documents; only if they were asked for. Operations of kinds that we do not write are left out. */
  readonly ops: readonly TxLogOp[] | undefined;
}

/** An operation in the log, in the database's own form. */
export interface TxLogOp {
  readonly op: string;
  readonly args: readonly EdnValue[];
}

/** An entry of `/tx-log`. @throws {XtdbError} `bad-response` */
export function readLogEntry(value: EdnValue): TxLogEntry {
  const ops = value instanceof EdnMap ? elements(value.get('xtdb.api/tx-ops')) : undefined;
  return { ...readReceipt(value), ops: ops?.map(readLogOp) };
}

function readLogOp(value: EdnValue): TxLogOp {
  const [op, ...args] = elements(value) ?? [];
  if (!(op instanceof Keyword)) throw new XtdbError('bad-response', 'An operation in the log has no name.');
  return { op: op.name.replace(/^xtdb\.api\//, ''), args };
}

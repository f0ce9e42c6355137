import { sym } from '../edn/values.js';
import type { ObjectId } from '../objects/ids.js';
import { type DatalogQuery, each, predicate, pull, triple } from '../xtdb/datalog.js';
import type { DbSnapshot } from '../xtdb/db-snapshot.js';
import { type StoredDocument, toAttribute, toDocument } from '../xtdb/documents.js';
import { StoreError } from './errors.js';

const e = sym('?e');
const ref = sym('?ref');
const seq = sym('?seq');
const chat = sym('?chat');
const type = sym('?type');
const turns = sym('?turns');
const from = sym('?from');
const to = sym('?to');
const since = sym('?since');

const HEADS: DatalogQuery = {
  find: [e, pull(e), since],
  in: [each(e)],
  where: [triple(e, 'xt/id'), [startValidTime(), since]],
};

const EXISTING: DatalogQuery = { find: [e], in: [each(e)], where: [triple(e, 'xt/id')] };

const STEPS: DatalogQuery = {
  find: [e, pull(e)],
  in: [ref, from],
  where: [triple(e, 'session_ref', ref), triple(e, 'seq', seq), predicate('>=', seq, from)],
};

const STEPS_UP_TO: DatalogQuery = {
  find: [e, pull(e)],
  in: [ref, from, to],
  where: [triple(e, 'session_ref', ref), triple(e, 'seq', seq), predicate('>=', seq, from), predicate('<=', seq, to)],
};

const SNAPSHOTS: DatalogQuery = { find: [e, pull(e)], in: [ref], where: [triple(e, 'snapshot_ref', ref)] };

function startValidTime() {
  const [call] = predicate('get-start-valid-time', e);
  if (call === undefined) throw new Error('BUG: a predicate without its call');
  return call;
}

/** Through the chat that a session names: every step and call names its session or chat too, which would be many times as many rows. */
const SESSIONS: DatalogQuery = {
  find: [e, pull(e, ['xt/id', 'session_id', 'upto', 'parent']), turns, since],
  in: [type],
  where: [triple(e, 'type', type), triple(e, 'chat_ref', chat), triple(chat, 'turn_count', turns), [startValidTime(), since]],
};

/** A head with the beginning of the valid time of the version that is current at the snapshot's basis. */
export interface TimedDocument {
  readonly document: StoredDocument;
  readonly validTime: Date;
}

/** Ids a query; documents of heads are small. */
const HEADS_AT_ONCE = 500;

/** The documents under many ids with the time from which on each holds; ids that the database does not know are absent. */
export async function headsWithTimes(db: DbSnapshot, ids: readonly string[]): Promise<readonly TimedDocument[]> {
  const pages: (readonly string[])[] = [];
  for (let i = 0; i < ids.length; i += HEADS_AT_ONCE) pages.push(ids.slice(i, i + HEADS_AT_ONCE));
  const rows = (await Promise.all(pages.map((page) => db.query(HEADS, [page])))).flat();
  return rows.map(([, document, validTime]) => ({ document: toDocument(document ?? null), validTime: validTimeOf(validTime) }));
}

/** Which of some ids the database knows, without their documents. */
export async function existing(db: DbSnapshot, ids: readonly string[]): Promise<readonly string[]> {
  if (ids.length === 0) return [];
  return (await db.query(EXISTING, [ids])).flatMap(([id]) => (typeof id === 'string' ? [id] : []));
}

/** A session's head with the number of its turns. */
export interface SessionRow extends TimedDocument {
  readonly turns: number;
}

function validTimeOf(value: unknown): Date {
  if (value instanceof Date) return value;
  throw new StoreError('corrupt-part', 'the database answered with a version that has no valid time');
}

/** Every session of the database: id, marks, number of turns. */
export async function sessionRows(db: DbSnapshot): Promise<readonly SessionRow[]> {
  const rows = await db.query(SESSIONS, ['session']);
  return rows.map(([, document, count, validTime]) => ({
    document: toDocument(document ?? null),
    turns: Number(toAttribute('turn_count', count ?? null)),
    validTime: validTimeOf(validTime),
  }));
}

const documents = (rows: readonly (readonly unknown[])[]): readonly StoredDocument[] =>
  rows.map(([, document]) => toDocument(document as never));

/** The step parts of a session from one sequence number on, up to another one where it is given, in no order. */
export async function stepParts(db: DbSnapshot, session: ObjectId, first: number, last?: number): Promise<readonly StoredDocument[]> {
  return documents(await (last === undefined ? db.query(STEPS, [session, first]) : db.query(STEPS_UP_TO, [session, first, last])));
}

/** The snapshot parts of a session, in no order. */
export async function snapshotParts(db: DbSnapshot, session: ObjectId): Promise<readonly StoredDocument[]> {
  return documents(await db.query(SNAPSHOTS, [session]));
}

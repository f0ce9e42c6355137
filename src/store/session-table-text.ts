import { type SessionId, sessionId } from '../objects/ids.js';
import { type FilesystemSource, parseSource } from '../objects/source.js';
import type { TxReceipt } from '../xtdb/transactions.js';
import type { StoredSession } from './snapshot-rows.js';

/** Every session after a transaction of the log, with running imports. */
export interface KnownSessions {
  /** The last transaction that the table covers. */
  readonly mark: TxReceipt;
  readonly sessions: ReadonlyMap<SessionId, StoredSession>;
}

const VERSION = 1;

/** A session as one list: parents and running steps are pairs, or 0. */
type Row = readonly [
  id: string,
  turns: number,
  upto: number,
  validTime: number,
  parent: readonly [session: string, seq: number] | 0,
  /** The index of its roots in the list of all roots. -1 without roots. */
  roots: number,
  /** -1 if it was not read. */
  running: readonly [seq: number, at: number] | 0 | -1,
];

/** Returns the text of a table. Most sessions share their roots, so each list is written once. */
export function tableText({ mark, sessions }: KnownSessions): string {
  const lists = new Map<string, number>();
  const numberOf = (roots: StoredSession['roots']): number => {
    if (roots === undefined) return -1;
    const text = JSON.stringify(roots);
    if (!lists.has(text)) lists.set(text, lists.size);
    return lists.get(text) ?? -1;
  };
  const rows = Array.from(sessions.values(), ({ id, turns, upto, validTime, parent, roots, running }): Row => {
    const forked = parent === undefined ? 0 : ([parent.session, parent.seq] as const);
    const ends = running === undefined ? -1 : running === null ? 0 : ([running.seq, running.at] as const);
    return [id, turns, upto, validTime.getTime(), forked, numberOf(roots), ends];
  });
  const roots = [...lists.keys()].map((text) => JSON.parse(text) as unknown);
  return JSON.stringify({ version: VERSION, mark: [mark.txId, mark.txTime.getTime()], roots, rows });
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value);
const pairOf = (value: unknown): readonly unknown[] | undefined =>
  Array.isArray(value) && value.length === 2 && isCount(value[1]) ? value : undefined;

class DamagedTable extends Error {}

function required<T>(value: T | undefined): T {
  if (value === undefined) throw new DamagedTable();
  return value;
}

function sessionOf(row: unknown, lists: readonly (readonly FilesystemSource[])[]): StoredSession {
  const [id, turns, upto, at, parent, roots, running] = Array.isArray(row) ? (row as readonly unknown[]) : [];
  if (typeof id !== 'string' || ![turns, upto, at, roots].every(isCount)) throw new DamagedTable();
  const forked = parent === 0 ? undefined : required(pairOf(parent));
  const ends = running === 0 || running === -1 ? undefined : required(pairOf(running));
  return {
    id: sessionId(id),
    turns: Number(turns),
    upto: Number(upto),
    validTime: new Date(Number(at)),
    parent: forked === undefined ? undefined : { session: sessionId(String(forked[0])), seq: Number(forked[1]) },
    roots: roots === -1 ? undefined : required(lists[Number(roots)]),
    ...(running === -1 ? {} : { running: ends === undefined ? null : { seq: Number(ends[0]), at: Number(ends[1]) } }),
  };
}

/** Parses the text of a table. Undefined if it is damaged or of another version. */
export function parseTable(text: string): KnownSessions | undefined {
  try {
    const { version, mark, roots, rows } = JSON.parse(text) as Readonly<Record<string, unknown>>;
    const [txId, txTime] = required(pairOf(mark));
    if (version !== VERSION || !isCount(txId) || !Array.isArray(roots) || !Array.isArray(rows)) return undefined;
    const lists = roots.map((list: readonly unknown[]) => list.map((one) => required(parseSource(one) ?? undefined)));
    const sessions = new Map<SessionId, StoredSession>();
    for (const row of rows) {
      const session = sessionOf(row, lists);
      sessions.set(session.id, session);
    }
    return { mark: { txId, txTime: new Date(Number(txTime)) }, sessions };
  } catch {
    // Anything unexpected in it means that it is damaged.
    return undefined;
  }
}

import { HistoryError } from '../history/rebuild/history-error.js';
import type { Timeline } from '../history/rebuild/timeline.js';
import type { ShownAhead } from '../objects/assembly-proof.js';
import { type SessionId, sessionObjectId } from '../objects/ids.js';
import type { Step } from '../objects/step.js';
import { StoreError } from '../store/errors.js';
import { importId } from '../store/import-parts.js';
import type { DocumentPlace, SessionDocuments } from '../store/session-documents.js';

/** The positions of the documents that one transaction wrote for a session. */
export interface CollectedTransaction {
  /** The number and time of the transaction in the database that first recorded it. */
  readonly tx: number;
  readonly time: Date;
  /** The number of the transaction in this database. */
  readonly here: number;
  readonly places: readonly DocumentPlace[];
}

/** The positions of all documents of a session. */
export interface CollectedSession {
  readonly session: SessionId;
  readonly turn: number;
  /** The last step. */
  readonly step: number;
  /** The sessions that own the steps, oldest first. */
  readonly sessions: readonly SessionId[];
  /** Imported transactions, then this database's own, each group in ascending order. */
  readonly transactions: readonly CollectedTransaction[];
  /** Number of imported transactions. */
  readonly imported: number;
}

/** The original transaction of each version of an import, by object and valid time. */
interface Origins {
  readonly of: ReadonlyMap<string, { readonly number: number; readonly tx: number; readonly time: number }>;
  /** For each imported transaction, in order, the transaction that wrote it into this database. */
  readonly here: readonly number[];
}

const keyOf = (id: string, validTime: number): string => `${id}\0${validTime}`;

async function originsOf(documents: SessionDocuments, session: SessionId): Promise<Origins> {
  const of = new Map<string, { number: number; tx: number; time: number }>();
  const ids: string[] = [];
  for await (const { number, tx, time, puts } of documents.importedTransactions(session)) {
    ids.push(importId(session, number));
    for (const [id, validTime] of puts) of.set(keyOf(id, validTime), { number, tx, time });
  }
  return { of, here: (await documents.places(ids)).map(({ txId }) => txId) };
}

/** Returns the ids of all objects in steps: indexed objects, calls and objects in answers. */
export function objectsOf(steps: readonly Step[]): ReadonlySet<string> {
  const ids = new Set<string>();
  for (const { changes, call } of steps) {
    for (const id of changes.index ?? []) ids.add(id);
    if (call === undefined) continue;
    ids.add(call.id);
    for (const piece of call.answer?.pieces ?? [])
      if (typeof piece !== 'string' && piece.id !== undefined) ids.add(piece.id);
  }
  return ids;
}

interface OpenTransaction extends Omit<CollectedTransaction, 'places'> {
  readonly isImported: boolean;
  readonly order: number;
  readonly places: DocumentPlace[];
}

function transactionsOf(
  places: readonly DocumentPlace[],
  { of, here }: Origins,
): Pick<CollectedSession, 'transactions' | 'imported'> {
  const open = new Map<string, OpenTransaction>();
  for (const place of places) {
    const origin = of.get(keyOf(place.id, place.validTime.getTime()));
    const key = origin === undefined ? `own ${place.txId}` : `imported ${origin.number}`;
    const known = open.get(key);
    if (known !== undefined) known.places.push(place);
    else if (origin === undefined)
      open.set(key, {
        isImported: false,
        order: place.txId,
        tx: place.txId,
        time: place.txTime,
        here: place.txId,
        places: [place],
      });
    else {
      const { number, tx, time } = origin;
      open.set(key, {
        isImported: true,
        order: number,
        tx,
        time: new Date(time),
        here: here[number - 1] ?? 0,
        places: [place],
      });
    }
  }
  const rank = ({ isImported }: OpenTransaction): number => (isImported ? 0 : 1);
  const transactions = [...open.values()].sort((a, b) => rank(a) - rank(b) || a.order - b.order);
  return { transactions, imported: transactions.filter(({ isImported }) => isImported).length };
}

/**
 * Finds versions that a context showed before the database had them (decision 0010). Returns the
 * first position of each such version that is not yet among the session's documents.
 */
async function shownPlaces(
  present: Timeline['present'],
  {
    session,
    last,
    places,
    isHeld,
  }: {
    readonly session: SessionId;
    readonly last: number;
    readonly places: readonly DocumentPlace[];
    readonly isHeld: (place: DocumentPlace) => boolean;
  },
): Promise<readonly DocumentPlace[]> {
  const later = new Set(places.flatMap((place) => (isHeld(place) ? [] : [place.id])));
  if (later.size === 0) return [];
  const proofs = await present.assemblies(session, { last, onDamaged: () => undefined });
  const shown = new Map<string, ShownAhead>();
  for (const one of proofs.flatMap(({ ahead = [] }) => ahead))
    if (later.has(one.id)) shown.set(`${one.id} ${one.object_hash} ${one.gone ?? false}`, one);
  const found: DocumentPlace[] = [];
  for (const { id, object_hash, gone } of shown.values()) {
    const own = places.filter((place) => place.id === id).sort((a, b) => a.txId - b.txId);
    const documents = await present.documents.at(own);
    const same = own.filter((_, i) => documents[i]?.object_hash === object_hash && documents[i]?.gone === gone);
    const [first] = same.some(isHeld) ? [] : same;
    if (first !== undefined) found.push(first);
  }
  return found;
}

/**
 * Finds all documents of a session up to a step (default: the last). Includes every version of its
 * heads, steps, calls and files, its context records, and the steps that it shares with its
 * ancestors.
 *
 * Leaves out file versions that were written after the session's last transaction, unless a context
 * of the session showed them. Reads no documents, only positions.
 *
 * @throws {HistoryError} `not-yet` if the step belongs to the session's parent
 * @throws {StoreError} `missing-part`
 * @throws {XtdbError}
 */
export async function collectSession(
  { present, ...timeline }: Pick<Timeline, 'present'> & { readonly steps: readonly Step[] },
  session: SessionId,
): Promise<CollectedSession> {
  const { documents } = present;
  const { steps } = timeline;
  const last = steps.length;
  const lineage = await present.lineage(session);
  const segments = (lineage?.segments ?? []).flatMap((segment) => {
    const upto = Math.min(segment.last, last);
    return segment.first <= upto || segment.session === session ? [{ ...segment, last: upto }] : [];
  });
  const own = segments.find((segment) => segment.session === session) ?? { session, first: 1, last };
  if (own.first > last + 1)
    throw new HistoryError(
      'not-yet',
      `session ${session} begins after step ${own.first - 1}, and the steps up to ${last} belong to the session that ` +
        'it was forked from; export that session',
    );
  const sessions = [...new Set([...segments.map((segment) => segment.session), session])];
  const heads = await present.heads(sessions.map(sessionObjectId));
  const unshared = [...heads.values()]
    .map(({ marks }) => marks.parent?.session)
    .find((parent) => parent !== undefined && !sessions.includes(parent));
  if (unshared !== undefined)
    throw new HistoryError(
      'wrong-kind',
      `session ${session} was forked from ${unshared} before its own first step. Export it together with the ` +
        `session that both share, ${sessions[0]}`,
    );
  const held: DocumentPlace[] = [];
  let lastOwn = 0;
  for (const segment of segments.some((one) => one.session === session) ? segments : [...segments, own]) {
    const next = Number.isFinite(segment.last) ? await present.step(segment.session, segment.last + 1) : undefined;
    const found = [
      ...(await documents.headPlaces(segment.session, { last: segment.last, before: next?.at })),
      ...(await documents.stepPlaces(segment.session, segment)),
      ...(await documents.partPlaces(segment)),
    ];
    for (const place of found) held.push(place);
    lastOwn = found.reduce((most, { txId }) => Math.max(most, txId), lastOwn);
  }
  const origins = await originsOf(documents, session);
  const imported = Math.max(0, ...origins.here.slice(-1));
  const objects = await documents.places([...objectsOf(steps)]);
  const there = new Set(objects.map(({ id }) => id));
  const lost = [...objectsOf(steps)].find((id) => !there.has(id));
  if (lost !== undefined)
    throw new StoreError(
      'missing-part',
      `session ${session} has ${JSON.stringify(lost)}, which the database does not hold`,
    );
  // File versions that the database already had at the import do not belong to the session.
  const isHeld = ({ id, validTime, txId }: DocumentPlace): boolean =>
    origins.of.has(keyOf(id, validTime.getTime())) || (txId > imported && txId <= lastOwn);
  for (const place of objects) if (isHeld(place)) held.push(place);
  for (const place of await shownPlaces(present, { session, last, places: objects, isHeld })) held.push(place);
  return {
    session,
    turn: steps.at(-1)?.turn ?? 0,
    step: last,
    sessions,
    ...transactionsOf(held, origins),
  };
}

/**
 * Returns how many transactions of the bundle a basis of this database includes. The count is also
 * the bundle's number of the last of them. At or before the last imported transaction, only
 * imported transactions count, because imported contexts showed no data of this database.
 */
export function numberOf(
  { transactions, imported }: Pick<CollectedSession, 'transactions' | 'imported'>,
  txId: number,
): number {
  const upTo = (some: readonly CollectedTransaction[]): number => some.filter(({ here }) => here <= txId).length;
  const [before, own] = [transactions.slice(0, imported), transactions.slice(imported)];
  return txId <= (before.at(-1)?.here ?? -1) ? upTo(before) : imported + upTo(own);
}

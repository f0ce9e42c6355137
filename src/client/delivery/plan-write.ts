import type { LargeTextReading } from '../../filesystem/access/read-source.js';
import { canonicalJson } from '../../objects/canonical-json.js';
import { hashText } from '../../objects/hashes.js';
import { type ObjectId, sessionObjectId } from '../../objects/ids.js';
import { CHUNK_UNITS, chunkText } from '../../objects/large-text.js';
import { SessionError } from '../../session/errors.js';
import type { ObjectStore, StoredPut } from '../../store/object-store.js';
import { formerId } from '../../store/part-id.js';
import type { Head } from '../../store/snapshot-rows.js';
import { stepId, toStepParts } from '../../store/step-part.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { chunkListPart, chunkPart, textParts } from '../../store/texts.js';
import type { Plan } from '../../store/write-path.js';
import { defined } from '../../values/defined.js';
import type { StoredDocument } from '../../xtdb/documents.js';
import type { TxOp } from '../../xtdb/transactions.js';
import {
  type CurrentFile,
  decideFile,
  type FileDecision,
  type FileObservation,
  type FindAuthor,
  type IndexOutcome,
} from '../decide-file.js';
import { fileObjectId } from '../file-access.js';
import type { MarkedVersion, WrittenFile } from '../optimistic/known-versions.js';
import { NOTHING_WRITTEN, type SessionWrite, type WriteResult } from './session-write.js';
import { currentFile, type OwnFiles } from './writers.js';

/** The lane of chunks. It belongs to no session, because a session's write waits for its chunks. */
const LARGE_TEXT_LANE = '.large-text';
/** Chunks per transaction: 4 Mi UTF-16 units, far below the limit of a request body. */
const CHUNKS_AT_ONCE = 8;

/** A text in chunks, with the hash of the whole text. */
interface LargeText extends Pick<LargeTextReading, 'chunks' | 'length'> {
  readonly hash: string;
}

/**
 * Writes the chunks of a large text ahead of the version that names them, in transactions of
 * bounded size. Returns the operation that lists them (decision G5). Chunks are content-addressed,
 * so chunks of a failed attempt are harmless, and a retry finds them. Texts above 64 MiB yield no
 * operation.
 */
export async function writeLargeText(
  store: ObjectStore,
  { chunks, hash, length }: LargeText,
): Promise<readonly TxOp[]> {
  if (chunks === undefined) return [];
  const ids: string[] = [];
  let batch: StoredDocument[] = [];
  const send = async (): Promise<void> => {
    const ops = store.textOps(batch);
    batch = [];
    if (ops.length === 0) return;
    await store.writes.write(LARGE_TEXT_LANE, async () => ({ ops, result: undefined }));
    store.markStored(ops);
  };
  for (const chunk of chunks()) {
    const hash = hashText(chunk);
    ids.push(hash);
    batch.push(chunkPart(chunk, hash));
    if (batch.length === CHUNKS_AT_ONCE) await send();
  }
  await send();
  return store.textOps([chunkListPart(hash, ids, length)]);
}

/**
 * Returns one observation per file. A read beats a mention, and a later read beats an earlier one.
 */
function distinct(files: readonly FileObservation[]): ReadonlyMap<ObjectId, FileObservation> {
  const byId = new Map<ObjectId, FileObservation>();
  for (const file of files) {
    const id = fileObjectId(file.source);
    if (file.kind === 'read' || !byId.has(id)) byId.set(id, file);
  }
  return byId;
}

interface DecidedFile extends FileDecision {
  readonly file: FileObservation;
  /**
   * The head that must still be current; null if the file must be absent. Undefined for no guard.
   */
  readonly expect: StoredDocument | null | undefined;
}

/** Returns the operations that write a decided file. Chunks of a large text are written ahead. */
export async function fileOps(
  store: ObjectStore,
  { file, write, onlyIfAbsent = false, expect }: DecidedFile,
): Promise<readonly TxOp[]> {
  if (write === undefined) return [];
  const guard = onlyIfAbsent ? null : expect;
  const large =
    file.kind === 'read' && file.reading.kind === 'large-text'
      ? await writeLargeText(store, { ...file.reading, hash: file.reading.fileHash })
      : [];
  return [...large, ...store.putOps({ ...write, ...defined({ expect: guard }) })];
}

async function callOps(store: ObjectStore, { call, at }: SessionWrite): Promise<readonly TxOp[]> {
  if (call === undefined) return [];
  const texts: TxOp[] = [];
  for (const one of [call.wholeText, call.argsText]) {
    if (one === undefined) continue;
    const { text, hash } = one;
    const isSmall = text.length <= CHUNKS_AT_ONCE * CHUNK_UNITS;
    const ops = isSmall
      ? store.textOps(textParts(text, hash))
      : await writeLargeText(store, { chunks: () => chunkText(text), hash, length: text.length });
    texts.push(...ops);
  }
  return [
    ...texts,
    ...store.putOps({ version: call.version, marks: call.marks, validTime: new Date(at), expect: null }),
  ];
}

function stepOps(store: ObjectStore, { step, lost = [], snapshot, at }: SessionWrite): readonly TxOp[] {
  if (step === undefined) return [];
  const validTime = new Date(at);
  store.noteTime(at);
  const steps = [...lost, step].flatMap((one): readonly TxOp[] => {
    const { part, texts } = toStepParts(one);
    return [...store.textOps(texts), store.guardOp(part['xt/id'], null), { op: 'put', doc: part, validTime }];
  });
  return [...steps, ...(snapshot === undefined ? [] : [{ op: 'put', doc: snapshot, validTime } as const])];
}

/** Deduplicates texts: the call and the file of a whole read hold the same text. */
export function withoutRepeatedTexts(ops: readonly TxOp[]): readonly TxOp[] {
  const sent = new Set<string>();
  return ops.filter((op) => {
    if (op.op !== 'put' || (op.doc.type !== 'chunk' && op.doc.type !== 'chunks')) return true;
    const repeated = sent.has(op.doc['xt/id']);
    sent.add(op.doc['xt/id']);
    return !repeated;
  });
}

const same = (a: unknown, b: unknown): boolean => canonicalJson(a) === canonicalJson(b);

/** Returns whether the history has every head at its valid time. Later versions may exist. */
async function areWritten(store: ObjectStore, heads: readonly StoredPut[]): Promise<boolean> {
  for (const { head, validTime } of heads) {
    const id = head['xt/id'];
    const snapshot = await store.asOf(validTime === undefined ? {} : { validTime });
    const there = (await snapshot.heads([id])).get(id);
    if (!same(there?.document ?? null, head)) return false;
    if (validTime !== undefined && there?.validTime.getTime() !== validTime.getTime()) return false;
  }
  return true;
}

async function isApplied(store: ObjectStore, snapshot: StoreSnapshot, { step, heads }: SessionWrite): Promise<boolean> {
  if (step === undefined) return areWritten(store, heads);
  const there = await snapshot.step(step.session, step.seq);
  return there !== undefined && same(there, step);
}

/**
 * Returns whether the database already has a write whose transaction aborted or whose response was
 * lost.
 * @throws {SessionError} `taken-over` – another writer owns the session, has written this step, or
 *   has used the call's id
 */
export async function alreadyApplied(
  store: ObjectStore,
  snapshot: StoreSnapshot,
  write: SessionWrite,
): Promise<boolean> {
  // A write of files alone needs no look-up: `decideFile` recognises a stored version by its hash.
  if (write.lease === undefined) return false;
  if (await isApplied(store, snapshot, write)) return true;
  const id = sessionObjectId(write.session);
  const head: StoredDocument | null = (await snapshot.heads([id])).get(id)?.document ?? null;
  const isTaken = write.step !== undefined && (await snapshot.step(write.session, write.step.seq)) !== undefined;
  if (isTaken || !same(head, write.lease)) {
    const what = write.lease === null ? 'exists already' : 'was continued by another writer';
    throw new SessionError('taken-over', `session ${write.session} ${what}; open it again to continue it`);
  }
  const call = write.call?.id;
  if (call !== undefined && (await snapshot.existing([call])).length > 0) {
    throw new SessionError(
      'taken-over',
      `another chat recorded a call ${JSON.stringify(call)} at the same moment as session ` +
        `${write.session}; open it again to continue it`,
    );
  }
  return false;
}

/** The inputs of a plan besides the write. */
export interface PlanOptions {
  /** Whether an earlier process may have applied the write. */
  readonly seen: boolean;
  /**
   * The file states that a sole writer knows. The database is asked only for other files, or for
   * all if the write is retried.
   */
  readonly own?: OwnFiles | undefined;
  /** Default: versions get no author. */
  readonly findAuthor?: FindAuthor | undefined;
}

/** The state against which the files of a write are decided. */
interface Against {
  readonly snapshot: StoreSnapshot | undefined;
  readonly heads: ReadonlyMap<string, Head>;
  /**
   * Returns the state of a file whose head was not read. It comes from a sole writer or from an
   * earlier write of the same transaction.
   */
  readonly known: (id: ObjectId) => CurrentFile | undefined;
  /** Whether this client is the only writer of the files. */
  readonly isSole: boolean;
  readonly findAuthor?: FindAuthor | undefined;
}

/** Adds the author to a decision whose new version changes a file that was read before. */
async function withAuthor(
  decision: FileDecision,
  {
    file,
    current,
    findAuthor,
  }: Pick<Against, 'findAuthor'> & { file: FileObservation; current?: CurrentFile | undefined },
): Promise<FileDecision> {
  const { write, outcome } = decision;
  const wasRead = current !== undefined && (current.fileHash !== null || current.gone);
  if (file.kind !== 'read' || write === undefined || outcome !== 'updated' || !wasRead) return decision;
  const author = (await findAuthor?.(file.source, file.reading)) ?? file.author;
  return author === undefined ? decision : { ...decision, write: { ...write, marks: { ...write.marks, author } } };
}

/** Decides every file of a write and returns the operations, without the lease guard. */
export async function decide(
  store: ObjectStore,
  write: SessionWrite,
  { snapshot, heads, known, isSole, findAuthor }: Against,
): Promise<WriteResult> {
  const ops: TxOp[] = [];
  const outcomes = new Map<ObjectId, IndexOutcome>();
  const written: WrittenFile[] = [];
  const observed: Head[] = [];
  for (const [id, file] of distinct(write.files)) {
    const head = heads.get(id);
    const current = head === undefined ? known(id) : currentFile(head);
    const decision = await withAuthor(decideFile(file, current, write.at), { file, current, findAuthor });
    outcomes.set(id, decision.outcome);
    if (head !== undefined && decision.outcome === 'unchanged') observed.push(head);
    // Another client may write the file at the same moment. The guard makes the later writer decide
    // again. So a change that both clients saw is written once, and different contents get
    // successive valid times (decision F7). A sole writer needs no guard.
    ops.push(...(await fileOps(store, { ...decision, file, expect: isSole ? undefined : (head?.document ?? null) })));
    if (decision.write !== undefined) written.push({ ...decision.write, onlyIfAbsent: decision.onlyIfAbsent === true });
  }
  ops.push(
    ...(await callOps(store, write)),
    ...stepOps(store, write),
    ...write.heads.flatMap((head) => store.storedOps(head)),
  );
  const call: readonly MarkedVersion[] =
    write.call === undefined ? [] : [{ version: write.call.version, marks: write.call.marks }];
  const observedAt = snapshot?.basis.txId;
  return { outcomes, written: [...written, ...call], files: written, observed, observedAt, ops };
}

/** Returns the guard of a write's lease. */
export const leaseOps = (store: ObjectStore, { session, lease }: SessionWrite): readonly TxOp[] =>
  lease === undefined ? [] : [store.guardOp(sessionObjectId(session), lease)];

/**
 * Returns whether a write's transaction can commit only once. This holds for a new step and for a
 * new session. Such a write is submitted without a look-up first, because a look-up costs as many
 * requests as a few steps.
 */
const isGuarded = ({ step, lost, lease }: SessionWrite): boolean =>
  lease === null || (step !== undefined && lost === undefined);

/** Returns a guard that fails if a program before data format 2 has written the step. */
function formerGuards(store: ObjectStore, { step }: SessionWrite): readonly TxOp[] {
  return step === undefined ? [] : [store.guardOp(formerId(stepId(step.session, step.seq)), null)];
}

/**
 * Returns whether a write has no step and does not move the session's head, such as a new prompt.
 * Two processes that deliver copies of one journal could commit it twice under one lease.
 */
const isBare = ({ session, step, lease, heads }: SessionWrite): boolean =>
  step === undefined && lease != null && heads.every(({ head }) => head['xt/id'] !== sessionObjectId(session));

/** Returns guards that fail if another process puts a version at the valid time of a head. */
async function datedGuards(store: ObjectStore, heads: readonly StoredPut[]): Promise<readonly TxOp[]> {
  const guards: TxOp[] = [];
  for (const { head, validTime } of heads) {
    if (validTime === undefined) continue;
    const id = head['xt/id'];
    const there = (await (await store.asOf({ validTime })).heads([id])).get(id);
    guards.push({ op: 'match', id, doc: there?.document ?? null, validTime });
  }
  return guards;
}

/** A write with its plan. */
export interface WritePlan {
  readonly write: SessionWrite;
  readonly plan: Plan<WriteResult>;
  /**
   * Stores the write's result in a transaction shared with other writes. A later attempt that finds
   * the write stored returns that result.
   */
  readonly tried: (result: WriteResult) => void;
}

/**
 * Plans a write's transaction. It decides every file against the current database, puts the tool
 * call if absent, and appends the step. The session's lease guards all of it. After an abort or a
 * lost response, the repeated plan finds what is already stored.
 */
export function planWrite(store: ObjectStore, write: SessionWrite, { seen, own, findAuthor }: PlanOptions): WritePlan {
  const ids = [...distinct(write.files).keys()];
  const isSole = write.lease !== undefined && own !== undefined;
  let last = NOTHING_WRITTEN;
  const isTried = seen && isGuarded(write);
  const plan: Plan<WriteResult> = async (attempt) => {
    const again = attempt > 1 || (seen && !isTried) || isBare(write);
    const asked = again || own === undefined ? ids : ids.filter((id) => own.get(id) === undefined);
    // Read the guards before the look-up, so that a version written between the two fails the
    // guards.
    const dated = isBare(write) ? await datedGuards(store, write.heads) : [];
    const snapshot = again || asked.length > 0 ? await store.latest() : undefined;
    if (again && snapshot !== undefined && (await alreadyApplied(store, snapshot, write)))
      // If an earlier process applied the step, the first attempt here was refused and wrote
      // nothing.
      return { ops: [], result: seen ? NOTHING_WRITTEN : last };
    const heads = (await snapshot?.heads(asked)) ?? new Map<string, Head>();
    const known = (id: ObjectId): CurrentFile | undefined => (again ? undefined : own?.get(id));
    const decided = await decide(store, write, { snapshot, heads, known, isSole, findAuthor });
    const guards = isTried && !again ? formerGuards(store, write) : dated;
    last = { ...decided, ops: withoutRepeatedTexts([...leaseOps(store, write), ...guards, ...decided.ops]) };
    return { ops: last.ops, result: last };
  };
  return {
    write,
    plan,
    tried: (result) => {
      last = result;
    },
  };
}

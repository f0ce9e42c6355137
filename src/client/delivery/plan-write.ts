import type { LargeTextReading } from '../../filesystem/access/read-source.js';
import { type CurrentFile, decideFile, type FileDecision, type FileObservation, type IndexOutcome } from '../../indexing/decide-file.js';
import type { AssemblyProof } from '../../objects/assembly-proof.js';
import { canonicalJson } from '../../objects/canonical-json.js';
import { hashText } from '../../objects/hashes.js';
import { type ObjectId, sessionObjectId } from '../../objects/ids.js';
import { CHUNK_UNITS, chunkText } from '../../objects/large-text.js';
import { SessionError } from '../../session/errors.js';
import { assemblyId, toAssemblyPart } from '../../store/assemblies.js';
import type { ObjectStore, StoredPut } from '../../store/object-store.js';
import { formerId } from '../../store/part-id.js';
import { stepId, toStepParts } from '../../store/step-part.js';
import type { Head, HistoryHead, StoreSnapshot } from '../../store/store-snapshot.js';
import { chunkListPart, chunkPart, textParts } from '../../store/texts.js';
import type { Plan } from '../../store/write-path.js';
import { defined } from '../../values/defined.js';
import type { StoredDocument } from '../../xtdb/documents.js';
import type { TxOp } from '../../xtdb/transactions.js';
import { fileObjectId } from '../file-access.js';
import type { MarkedVersion, WrittenFile } from '../optimistic/known-versions.js';
import { NOTHING_WRITTEN, type SessionWrite, type WriteResult } from './session-write.js';
import { currentFile, type OwnFiles } from './writers.js';

/** Where chunks wait for each other; no session can have its name, for a session's write waits for its chunks. */
const LARGE_TEXT_LANE = '.large-text';
/** Chunks of one transaction: 4 MiB of UTF-16 units, far below the limit of a request's body. */
const CHUNKS_AT_ONCE = 8;

/** A text that comes in chunks, under the hash of the whole. */
interface LargeText extends Pick<LargeTextReading, 'chunks' | 'length'> {
  readonly hash: string;
}

/**
 * Writes the chunks of a large text ahead of the version that names them, in transactions of bounded size, and gives the operation that lists
 * them (decision G5). Chunks are content-addressed: those of an attempt that failed later harm nothing and are found again. Nothing above 64 MiB.
 */
async function writeLargeText(store: ObjectStore, { chunks, hash, length }: LargeText): Promise<readonly TxOp[]> {
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

/** One observation per file: what was read wins over what was mentioned, the later reading over the earlier. */
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
  /** The head that must still be there; undefined for no guard. */
  readonly expect: StoredDocument | null | undefined;
}

async function fileOps(store: ObjectStore, { file, write, onlyIfAbsent = false, expect }: DecidedFile): Promise<readonly TxOp[]> {
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
  return [...texts, ...store.putOps({ version: call.version, marks: call.marks, validTime: new Date(at), expect: null })];
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

/** A whole read's call and its file hold the same text: it is sent once. */
function withoutRepeatedTexts(ops: readonly TxOp[]): readonly TxOp[] {
  const sent = new Set<string>();
  return ops.filter((op) => {
    if (op.op !== 'put' || (op.doc.type !== 'chunk' && op.doc.type !== 'chunks')) return true;
    const repeated = sent.has(op.doc['xt/id']);
    sent.add(op.doc['xt/id']);
    return !repeated;
  });
}

const same = (a: unknown, b: unknown): boolean => canonicalJson(a) === canonicalJson(b);

/** Whether every head is in the history with its own valid time; later versions may stand over it by now. */
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
 * After an aborted or lost attempt: whether the write is there already.
 * @throws {SessionError} `taken-over` – another writer holds the session, has written the step of this number, or has the call's id
 */
export async function alreadyApplied(store: ObjectStore, snapshot: StoreSnapshot, write: SessionWrite): Promise<boolean> {
  // Files alone are decided by their hashes: what is written already comes out as unchanged.
  if (write.lease === undefined) return false;
  if (await isApplied(store, snapshot, write)) return true;
  const id = sessionObjectId(write.session);
  const head: StoredDocument | null = (await snapshot.heads([id])).get(id)?.document ?? null;
  const isTaken = write.step !== undefined && (await snapshot.step(write.session, write.step.seq)) !== undefined;
  if (isTaken || !same(head, write.lease)) {
    const what = write.lease === null ? 'exists already' : 'was continued by another writer';
    throw new SessionError('taken-over', `session ${write.session} ${what}; open it again to go on from where it stands`);
  }
  const call = write.call?.id;
  if (call !== undefined && (await snapshot.existing([call])).length > 0) {
    throw new SessionError(
      'taken-over',
      `another chat recorded a call ${JSON.stringify(call)} in the same moment as session ${write.session}; open it again to go on from where it stands`,
    );
  }
  return false;
}

/** What planning depends on in addition to the write. */
export interface PlanOptions {
  /** Whether an earlier process may have applied the write. */
  readonly seen: boolean;
  /** What a sole writer knows of its files: the database is asked only for the others, unless the write is tried again. */
  readonly own?: OwnFiles | undefined;
}

/** What the files of a write are decided against. */
interface Against {
  readonly snapshot: StoreSnapshot | undefined;
  readonly heads: ReadonlyMap<string, Head>;
  /** What is known of a file without its head: what a sole writer left of it, or a write before this one in the same transaction. */
  readonly known: (id: ObjectId) => CurrentFile | undefined;
  /** Whether nobody else writes the files. */
  readonly isSole: boolean;
}

/** Decides every file of a write and gives its operations, the guard of its lease aside. */
async function decide(store: ObjectStore, write: SessionWrite, { snapshot, heads, known, isSole }: Against): Promise<WriteResult> {
  const ops: TxOp[] = [];
  const outcomes = new Map<ObjectId, IndexOutcome>();
  const written: WrittenFile[] = [];
  const observed: Head[] = [];
  for (const [id, file] of distinct(write.files)) {
    const head = heads.get(id);
    const decision = decideFile(file, head === undefined ? known(id) : currentFile(head), write.at);
    outcomes.set(id, decision.outcome);
    if (head !== undefined && decision.outcome === 'unchanged') observed.push(head);
    // Another client may bring the file in the same moment: the later one decides anew, so that a change that both saw is written once, and different contents are
    // dated one after the other (decision F7). A sole writer has no such neighbour.
    ops.push(...(await fileOps(store, { ...decision, file, expect: isSole ? undefined : (head?.document ?? null) })));
    if (decision.write !== undefined) written.push({ ...decision.write, onlyIfAbsent: decision.onlyIfAbsent === true });
  }
  ops.push(...(await callOps(store, write)), ...stepOps(store, write), ...write.heads.flatMap((head) => store.storedOps(head)));
  const call: readonly MarkedVersion[] = write.call === undefined ? [] : [{ version: write.call.version, marks: write.call.marks }];
  const observedAt = snapshot?.basis.txId;
  return { outcomes, written: [...written, ...call], files: written, observed, observedAt, ops };
}

const leaseOps = (store: ObjectStore, { session, lease }: SessionWrite): readonly TxOp[] =>
  lease === undefined ? [] : [store.guardOp(sessionObjectId(session), lease)];

/**
 * Whether a transaction of a write can never be committed twice: that of a step, which is put where none is, and that of a session that begins. Then it is tried before it
 * is looked up, since a look-up takes as many requests as a few steps do.
 */
const isGuarded = ({ step, lost, lease }: SessionWrite): boolean => lease === null || (step !== undefined && lost === undefined);

/** That no version before data format 2 has written the step of a write. */
function formerGuards(store: ObjectStore, { step }: SessionWrite): readonly TxOp[] {
  return step === undefined ? [] : [store.guardOp(formerId(stepId(step.session, step.seq)), null)];
}

/** A write with its plan. */
export interface WritePlan {
  readonly write: SessionWrite;
  readonly plan: Plan<WriteResult>;
  /** Says what a transaction that the write shared with others decided: a later attempt may find it written. */
  readonly tried: (result: WriteResult) => void;
}

/**
 * The plan of a write's transaction: every file decided against the database as it is now, the tool call put if it is not there, the step appended,
 * all guarded by the session's lease. Made again after an abort or a lost answer it finds what is already written.
 */
export function planWrite(store: ObjectStore, write: SessionWrite, { seen, own }: PlanOptions): WritePlan {
  const ids = [...distinct(write.files).keys()];
  const isSole = write.lease !== undefined && own !== undefined;
  let last = NOTHING_WRITTEN;
  const isTried = seen && isGuarded(write);
  const plan: Plan<WriteResult> = async (attempt) => {
    const again = attempt > 1 || (seen && !isTried);
    const asked = again || own === undefined ? ids : ids.filter((id) => own.get(id) === undefined);
    const snapshot = again || asked.length > 0 ? await store.latest() : undefined;
    if (again && snapshot !== undefined && (await alreadyApplied(store, snapshot, write)))
      // Of a step that an earlier process applied, what was tried here was refused: nothing of it was written.
      return { ops: [], result: seen ? NOTHING_WRITTEN : last };
    const heads = (await snapshot?.heads(asked)) ?? new Map<string, Head>();
    const known = (id: ObjectId): CurrentFile | undefined => (again ? undefined : own?.get(id));
    const decided = await decide(store, write, { snapshot, heads, known, isSole });
    const guards = isTried && !again ? formerGuards(store, write) : [];
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

/** What several writes of a session decided together: the operations, and the results of those of them that are in the transaction, from the first one on. */
interface PlannedTogether {
  readonly ops: readonly TxOp[];
  readonly results: readonly WriteResult[];
}

/** Whether a write may go to the database in one transaction with others: a step inside a turn, without texts that are written ahead of it. */
export function mayShare({ step, lost, heads, lease, files }: SessionWrite): boolean {
  const isAhead = files.some((file) => file.kind === 'read' && file.reading.kind === 'large-text');
  return step !== undefined && lost === undefined && heads.length === 0 && lease !== undefined && lease !== null && !isAhead;
}

/** Whether a write brings a new version of a file that was there before it. */
const changesKnown = ({ outcomes }: WriteResult): boolean => [...outcomes.values()].includes('updated');

/**
 * Plans writes of one session, which follow each other under one lease, as one transaction: each is decided against what those before it leave. It ends
 * before a write that changes a known file, so that at the transaction of any of its steps every file stands as the step found or left it.
 */
export async function planTogether(store: ObjectStore, writes: readonly SessionWrite[]): Promise<PlannedTogether> {
  const [first] = writes;
  if (first === undefined) return { ops: [], results: [] };
  const ids = new Set(writes.flatMap(({ files }) => files.map(({ source }) => fileObjectId(source))));
  const snapshot = ids.size > 0 ? await store.latest() : undefined;
  const heads = new Map(await snapshot?.heads([...ids]));
  const left = new Map<ObjectId, CurrentFile>();
  const results: WriteResult[] = [];
  for (const write of writes) {
    const decided = await decide(store, write, { snapshot, heads, known: (id) => left.get(id), isSole: false });
    if (results.length > 0 && changesKnown(decided)) break;
    results.push(decided);
    for (const { version, marks, validTime } of decided.files) {
      heads.delete(version['xt/id']);
      left.set(version['xt/id'], { fileHash: version.file_hash, gone: marks.gone === true, validTime });
    }
  }
  return { ops: withoutRepeatedTexts([...leaseOps(store, first), ...results.flatMap(({ ops }) => ops)]), results };
}

/**
 * Whether a write needs no other one before it: the record of a context that was read from the database, whose basis holds every step that it includes,
 * whoever has the session by now.
 */
export function standsAlone({ assembly }: SessionWrite): boolean {
  return assembly !== undefined && assembly.basis !== null && assembly.ahead === undefined;
}

/** The lane of a write: that of its session, whose turns wait for it, or one of its own for what nothing waits for. No session can have its name. */
export function laneOf(write: SessionWrite): string {
  return standsAlone(write) ? `.assemblies:${write.session}` : write.session;
}

/** Whether the database has the record of a context. */
export async function isAssemblyStored(snapshot: StoreSnapshot, proof: AssemblyProof): Promise<boolean> {
  const { session, step } = proof;
  const id = assemblyId(proof);
  return (await snapshot.assemblies(session, { first: step, last: step })).some((stored) => assemblyId(stored) === id);
}

/** The operations that put the record of a context where none is. */
function assemblyOps(store: ObjectStore, proof: AssemblyProof): readonly TxOp[] {
  const doc = toAssemblyPart(proof);
  const id = assemblyId(proof);
  const guards = [id, formerId(id)].map((one) => store.guardOp(one, null));
  return [...guards, { op: 'put', doc, validTime: new Date(proof.at) }];
}

/**
 * What was assembled without the database is true of the session only as long as nobody else wrote to it.
 * @throws {SessionError} `taken-over`
 */
export async function requireLease(snapshot: StoreSnapshot, { session, lease }: Pick<SessionWrite, 'session' | 'lease'>): Promise<void> {
  const id = sessionObjectId(session);
  const head = (await snapshot.heads([id])).get(id)?.document ?? null;
  if (canonicalJson(head) === canonicalJson(lease ?? null)) return;
  throw new SessionError('taken-over', `session ${session} was continued by another writer; open it again to go on from where it stands`);
}

/**
 * What brings the files of a context that are not in the database as it shows them: under their own dates, and never over a version that holds from later on. Whoever observed them may have
 * ended before it wrote them; others may have written since.
 */
async function decideShown(store: ObjectStore, snapshot: StoreSnapshot, { shown = [] }: SessionWrite): Promise<WriteResult> {
  const heads = await snapshot.heads(shown.map(({ file: { source } }) => fileObjectId(source)));
  const ops: TxOp[] = [];
  const files: WrittenFile[] = [];
  for (const { file, at } of shown) {
    const id = fileObjectId(file.source);
    const head = heads.get(id);
    const decision = decideFile(file, head === undefined ? undefined : { ...currentFile(head), validTime: new Date(0) }, at);
    const { write } = decision;
    if (write === undefined) continue;
    const history = await snapshot.historyOfHeads(id);
    const isShown = ({ document, marks }: Pick<HistoryHead, 'document' | 'marks'>): boolean =>
      document?.object_hash === write.version.object_hash && marks.gone === write.marks.gone;
    if (history.some(isShown)) continue;
    const taken = new Set(history.map(({ validTime }) => validTime.getTime()));
    let validTime = write.validTime.getTime();
    while (taken.has(validTime)) validTime -= 1;
    const dated = { ...write, validTime: new Date(validTime) };
    ops.push(...(await fileOps(store, { ...decision, write: dated, file, expect: head?.document ?? null })));
    if (head === undefined || validTime > head.validTime.getTime()) files.push({ ...dated, onlyIfAbsent: decision.onlyIfAbsent === true });
  }
  return { ...NOTHING_WRITTEN, written: files, files, ops };
}

/** How the record of a context is kept. */
export interface KeepOptions {
  /** Whether an earlier process may have written it. */
  readonly seen: boolean;
  /** Whether its session is no longer this writer's: then it is kept where it belongs by now, whoever writes there. */
  readonly isLost?: boolean;
}

/**
 * The plan of the transaction that keeps the record of a context (decision E7): put if it is not there, with the files that it shows and that are not there. One that does not
 * stand alone is guarded by the session's lease like the steps that it was made of.
 */
export function planAssembly(store: ObjectStore, write: SessionWrite, { seen, isLost = false }: KeepOptions): Plan<WriteResult> {
  const { assembly: proof, lease = null, shown = [] } = write;
  if (proof === undefined) throw new Error('BUG: no assembly to keep');
  const guards = isLost || standsAlone(write) ? [] : [store.guardOp(sessionObjectId(write.session), lease)];
  const ops = [...guards, ...assemblyOps(store, proof)];
  return async (attempt) => {
    const again = seen || attempt > 1;
    const snapshot = again || shown.length > 0 ? await store.latest() : undefined;
    if (again && snapshot !== undefined) {
      if (await isAssemblyStored(snapshot, proof)) return { ops: [], result: NOTHING_WRITTEN };
      if (guards.length > 0) await requireLease(snapshot, write);
    }
    store.noteTime(proof.at);
    if (snapshot === undefined || shown.length === 0) return { ops, result: NOTHING_WRITTEN };
    const result = await decideShown(store, snapshot, write);
    return { ops: [...ops, ...result.ops], result };
  };
}

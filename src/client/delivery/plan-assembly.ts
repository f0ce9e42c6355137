import type { AssemblyProof } from '../../objects/assembly-proof.js';
import { canonicalJson } from '../../objects/canonical-json.js';
import { hashText } from '../../objects/hashes.js';
import { sessionObjectId } from '../../objects/ids.js';
import { SessionError } from '../../session/errors.js';
import { assemblyId, toAssemblyPart } from '../../store/assemblies.js';
import type { ObjectStore } from '../../store/object-store.js';
import { formerId } from '../../store/part-id.js';
import type { HistoryHead } from '../../store/snapshot-rows.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { chunkListPart, chunkPart } from '../../store/texts.js';
import type { Plan } from '../../store/write-path.js';
import type { TxOp } from '../../xtdb/transactions.js';
import { decideFile } from '../decide-file.js';
import { fileObjectId } from '../file-access.js';
import type { WrittenFile } from '../optimistic/known-versions.js';
import { fileOps, writeLargeText } from './plan-write.js';
import { NOTHING_WRITTEN, type SessionWrite, type WriteResult } from './session-write.js';
import { currentFile } from './writers.js';

/**
 * Returns whether a write depends on no other. That holds for the assembly record of a context that
 * was read from the database. Its basis contains every step of the context, whichever client owns
 * the session now.
 */
export function standsAlone({ assembly }: SessionWrite): boolean {
  return assembly !== undefined && assembly.basis !== null && assembly.ahead === undefined;
}

/**
 * Returns the lane of a write: its session's lane, or a separate one if the write stands alone. The
 * separate lane's name is no valid session id.
 */
export function laneOf(write: SessionWrite): string {
  return standsAlone(write) ? `.assemblies:${write.session}` : write.session;
}

/** Returns whether the database has the assembly record of a context. */
export async function isAssemblyStored(snapshot: StoreSnapshot, proof: AssemblyProof): Promise<boolean> {
  const { session, step } = proof;
  const id = assemblyId(proof);
  return (await snapshot.assemblies(session, { first: step, last: step })).some((stored) => assemblyId(stored) === id);
}

/** Returns the operations that put the assembly record of a context if absent. */
function assemblyOps(store: ObjectStore, proof: AssemblyProof): readonly TxOp[] {
  const doc = toAssemblyPart(proof);
  const id = assemblyId(proof);
  const guards = [id, formerId(id)].map((one) => store.guardOp(one, null));
  return [...guards, { op: 'put', doc, validTime: new Date(proof.at) }];
}

/** Maximum UTF-16 units of a body in one transaction, far below the limit of an HTTP request. */
const MOST_BODY_UNITS = 4 * 1_048_576;

/**
 * Returns the operations that store the body of a request. The chunks of a longer body are written
 * ahead.
 */
async function bodyOps(store: ObjectStore, { sha256, chars }: AssemblyProof, body: readonly string[]) {
  if (chars > MOST_BODY_UNITS) return writeLargeText(store, { chunks: () => body, hash: sha256, length: chars });
  const pieces = body.map((text) => ({ text, hash: hashText(text) }));
  const list = chunkListPart(
    sha256,
    pieces.map(({ hash }) => hash),
    chars,
  );
  const distinct = new Map(pieces.map(({ text, hash }) => [hash, chunkPart(text, hash)]));
  return store.textOps([...distinct.values(), list]);
}

/**
 * Checks the lease, because a context assembled without the database is valid only while no other
 * client writes to the session.
 * @throws {SessionError} `taken-over`
 */
export async function requireLease(
  snapshot: StoreSnapshot,
  { session, lease }: Pick<SessionWrite, 'session' | 'lease'>,
): Promise<void> {
  const id = sessionObjectId(session);
  const head = (await snapshot.heads([id])).get(id)?.document ?? null;
  if (canonicalJson(head) === canonicalJson(lease ?? null)) return;
  throw new SessionError(
    'taken-over',
    `session ${session} was continued by another writer; open it again to continue it`,
  );
}

/**
 * Returns the operations that store a context's file versions that the database lacks. The process
 * that observed a version may have ended before writing it. Each version keeps its own valid time,
 * so that it never hides a later version of another client.
 */
async function decideShown(
  store: ObjectStore,
  snapshot: StoreSnapshot,
  { shown = [] }: SessionWrite,
): Promise<WriteResult> {
  const heads = await snapshot.heads(shown.map(({ file: { source } }) => fileObjectId(source)));
  const ops: TxOp[] = [];
  const files: WrittenFile[] = [];
  for (const { file, at } of shown) {
    const id = fileObjectId(file.source);
    const head = heads.get(id);
    const decision = decideFile(
      file,
      head === undefined ? undefined : { ...currentFile(head), validTime: new Date(0) },
      at,
    );
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
    if (head === undefined || validTime > head.validTime.getTime())
      files.push({ ...dated, onlyIfAbsent: decision.onlyIfAbsent === true });
  }
  return { ...NOTHING_WRITTEN, written: files, files, ops };
}

/** How the assembly record of a context is stored. */
export interface KeepOptions {
  /** Whether an earlier process may have written the record. */
  readonly seen: boolean;
  /**
   * Whether this writer has lost the session. Then the record is put without the guard of the
   * lease, although another client writes the session.
   */
  readonly isLost?: boolean;
}

/**
 * Plans the transaction that stores the assembly record of a context (decision E7). It puts the
 * record and the shown versions of files, each only if absent. The session's lease guards the
 * record unless it stands alone.
 */
export function planAssembly(
  store: ObjectStore,
  write: SessionWrite,
  { seen, isLost = false }: KeepOptions,
): Plan<WriteResult> {
  const { assembly: proof, lease = null, shown = [], body } = write;
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
    if (body !== undefined) {
      const texts = await bodyOps(store, proof, body);
      return { ops: [...texts, ...ops], result: { ...NOTHING_WRITTEN, ops: texts } };
    }
    if (snapshot === undefined || shown.length === 0) return { ops, result: NOTHING_WRITTEN };
    const result = await decideShown(store, snapshot, write);
    return { ops: [...ops, ...result.ops], result };
  };
}

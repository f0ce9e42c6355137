import type { AssemblyProof, Delivery } from '../../objects/assembly-proof.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import type { StoreError } from '../../store/errors.js';
import type { LoggedWrites } from '../../store/logged-writes.js';
import type { ObjectStore } from '../../store/object-store.js';
import { ofSession, storeOf } from '../../store/session-line.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { begun } from '../../values/begun.js';
import { eachRecord } from '../rebuild/each-record.js';
import { requireSession } from '../rebuild/find-session.js';
import { HistoryError } from '../rebuild/history-error.js';
import { AssemblyRebuilder } from '../rebuild/rebuild-assembly.js';
import { type AnswersReport, verifyAnswers } from './verify-answers.js';
import { type AssemblyMismatch, type VerifyingReaders, verifyAssembly } from './verify-assembly.js';
import { callsIn, orDamage, ownObjects, type PartDamage, type PartsReport, verifyParts } from './verify-parts.js';

/** How far a verification is. */
export interface VerifyProgress {
  readonly what: 'contexts' | 'answers' | 'parts';
  readonly done: number;
  readonly total: number;
}

/** How a session is verified. */
export interface VerifyOptions {
  /** The newest of everything, where the caller has just read it; else it is read. Nothing that was acknowledged before may wait elsewhere. */
  readonly present?: StoreSnapshot | undefined;
  readonly onProgress?: (progress: VerifyProgress) => void;
  readonly signal?: AbortSignal;
}

/** What was found of the contexts that were handed out. */
export interface ContextsReport {
  readonly total: number;
  /** Made again, byte for byte the same. */
  readonly equal: number;
  /** Of all of them, those in which something was masked before they came into this database: they are compared with what was left. */
  readonly redacted: number;
  /** Of all of them, those of sessions that this one was forked from. */
  readonly inherited: number;
  readonly byDelivery: Readonly<Partial<Record<Delivery, number>>>;
  /** Lists that a harness mixed with messages of its own: the context in them was compared, of the whole list the hash is kept. */
  readonly handedLists: number;
  readonly unequal: readonly AssemblyMismatch[];
}

/** Everything that was checked of a session (decision E7), and nothing else. */
export interface SessionVerification {
  readonly session: SessionId;
  readonly contexts: ContextsReport;
  readonly answers: AnswersReport;
  readonly parts: PartsReport;
  /** Nothing that was checked is wrong. */
  readonly ok: boolean;
}

function countByDelivery(proofs: readonly AssemblyProof[]): ContextsReport['byDelivery'] {
  const counts: Partial<Record<Delivery, number>> = {};
  for (const { delivered } of proofs) counts[delivered] = (counts[delivered] ?? 0) + 1;
  return counts;
}

/** What makes contexts again: `exact` reads whatever they are made of for itself, where `rebuilder`, which knows the steps as they are now, finds anything wrong. */
interface Rebuilders {
  readonly rebuilder: AssemblyRebuilder;
  readonly exact: AssemblyRebuilder;
  readonly present: StoreSnapshot;
  /** When the session's documents were written, where the log of transactions tells. */
  readonly writes: LoggedWrites | undefined;
}

/** Contexts whose objects are read and held at once. */
const READ_TOGETHER = 50;

/** What makes some contexts again first: from one reading, as far as it is known to be what stood at the basis of each, else from what stands there. */
async function likelyOnes(
  { rebuilder, writes }: Rebuilders,
  proofs: readonly AssemblyProof[],
): Promise<NonNullable<VerifyingReaders['likely']>> {
  if (writes === undefined) return (proof) => rebuilder.rebuild(proof);
  const again = await rebuilder.readAtOnce(proofs, writes);
  return async (proof) => (await again(proof)) ?? rebuilder.rebuild(proof);
}

async function verifyContexts(
  rebuilders: Rebuilders,
  { session, proofs }: { readonly session: SessionId; readonly proofs: readonly AssemblyProof[] },
  onProgress: (done: number, total: number) => void,
): Promise<ContextsReport> {
  const { exact, present } = rebuilders;
  const unequal: AssemblyMismatch[] = [];
  let done = 0;
  for (let first = 0; first < proofs.length; first += READ_TOGETHER) {
    const page = proofs.slice(first, first + READ_TOGETHER);
    const likely = await likelyOnes(rebuilders, page);
    const found = await eachRecord(page, async (proof) => {
      // What it throws ends the verification, before another context is made.
      onProgress(done, proofs.length);
      const mismatch = await verifyAssembly({ rebuilder: exact, present, likely }, proof);
      done += 1;
      return mismatch;
    });
    unequal.push(...found.flatMap((mismatch) => mismatch ?? []));
  }
  onProgress(done, proofs.length);
  return {
    total: proofs.length,
    equal: proofs.length - unequal.length,
    redacted: proofs.filter((proof) => proof.redacted === true).length,
    inherited: proofs.filter((proof) => proof.session !== session).length,
    byDelivery: countByDelivery(proofs),
    handedLists: proofs.filter(({ handed }) => handed !== undefined).length,
    unequal,
  };
}

/** The latest moment that some context was read at: what was written once and seen then must still be the same. */
function lastRead(proofs: readonly AssemblyProof[], present: StoreSnapshot): StoreSnapshot {
  const latest = present.basis.txId ?? -1;
  const last = proofs
    .flatMap(({ basis }) => (basis === null || basis.txId > latest ? [] : [basis]))
    .sort((a, b) => a.txId - b.txId)
    .at(-1);
  return (
    (last === undefined ? undefined : present.earlier({ validTime: new Date(last.validTime), txId: last.txId })) ??
    present
  );
}

/** When the session's documents were written; undefined where the log does not tell, and where what it would be asked for is damaged. */
async function writesOf(present: StoreSnapshot, session: SessionId): Promise<LoggedWrites | undefined> {
  const [lineage, head] = await Promise.all([orDamage(present.lineage(session)), present.sessionHead(session)]);
  return lineage === undefined || lineage instanceof Error
    ? undefined
    : present.documents.writes(lineage, head?.marks.upto ?? 0);
}

/** The parts of a session to verify, and everything that its handed-out contexts show. */
function objectsOf(session: SessionId, steps: readonly Step[], proofs: readonly AssemblyProof[]): readonly ObjectId[] {
  const shown = proofs.length === 0 ? [] : steps.flatMap(({ changes }) => changes?.index ?? []);
  return [...new Set([...ownObjects(session), ...callsIn(steps), ...shown])];
}

/**
 * Verifies a session from the database alone (decision E7): makes every context again that was handed out of it, and the answers of tools
 * that can be made from what is stored, and checks the parts that all of it lies in. `name` is a session's id or its unique beginning.
 * @throws {HistoryError} `unknown-session`, `ambiguous`
 * @throws {XtdbError} the database cannot be asked; an abort is thrown as the signal's reason
 */
export async function verifySession(
  store: ObjectStore,
  name: string,
  { present: newest, onProgress, signal }: VerifyOptions = {},
): Promise<SessionVerification> {
  const report =
    (what: VerifyProgress['what']) =>
    (done: number, total: number): void => {
      signal?.throwIfAborted();
      onProgress?.({ what, done, total });
    };
  // The newest of everything, also of what a clock that ran ahead has dated later than now.
  const latest = (newest ?? (await store.latest())).remembering();
  const session = await requireSession(latest, name);
  const own = await ofSession(latest, session);
  const present = own === latest ? latest : own.remembering();
  const from = storeOf(store, present);
  const damaged: PartDamage[] = [];
  const onDamaged = ({ message }: StoreError): void => {
    damaged.push({ part: 'assembly', what: 'damaged', of: message });
  };
  // What does not need the steps is asked for beside them, and is there when it is needed; what the node takes long for, behind them, since all else waits for them.
  const proofsRead = begun(present.assemblies(session, { onDamaged }));
  const steps = await orDamage(present.steps(session, { first: 1 }));
  // Where one of them is missing, a page may hold it all the same.
  const known = steps instanceof Error ? await orDamage(present.steps(session)) : steps;
  signal?.throwIfAborted();
  const [rebuilder, exact] = [new AssemblyRebuilder(from, present), new AssemblyRebuilder(from)];
  if (!(known instanceof Error)) rebuilder.know(known);
  // Each object is read once: answers, contexts and pages are made of what is remembered then.
  const headsRead = steps instanceof Error ? undefined : present.heads(objectsOf(session, steps, await proofsRead));
  const writesRead = begun(writesOf(present, session));
  await headsRead;
  // The outputs of calls, which contexts show too, are read many at a time here.
  const answers = await verifyAnswers({ store, present }, known, report('answers'));
  const [proofs, writes] = await Promise.all([proofsRead, writesRead]);
  const contexts = await verifyContexts({ rebuilder, exact, present, writes }, { session, proofs }, report('contexts'));
  report('parts')(0, 1);
  const before = lastRead(proofs, present);
  const seen = new Map([...exact.texts, ...rebuilder.texts]);
  const found = await verifyParts({ session, present, before, writes, seen, steps });
  const parts = { checked: found.checked + damaged.length, damages: [...damaged, ...found.damages] };
  onProgress?.({ what: 'parts', done: 1, total: 1 });
  const ok =
    answers.unread !== true &&
    contexts.unequal.length === 0 &&
    answers.unequal.length === 0 &&
    parts.damages.length === 0;
  return { session, contexts, answers, parts, ok };
}

/** How long a verification over a protocol may take if nothing else is asked for, milliseconds. */
const DEFAULT_VERIFY_MS = 60_000;
/** The longest that may be asked for, milliseconds. */
const MOST_VERIFY_MS = 600_000;

/** Who waits for a verification, and how long. */
export interface VerifyLimits {
  readonly timeoutMs?: number | undefined;
  /** Aborts when nobody waits any more. */
  readonly signal: AbortSignal;
}

/**
 * Verifies a session within a limit of time; see `verifySession`. What is under way when the limit comes is ended first: a request or a context. Throws
 * HistoryError `verify-timeout`, the reason of the signal, and what `verifySession` throws.
 */
export async function askVerify(
  store: ObjectStore,
  session: string,
  { timeoutMs, signal }: VerifyLimits,
): Promise<SessionVerification> {
  const limitMs = Math.min(timeoutMs ?? DEFAULT_VERIFY_MS, MOST_VERIFY_MS);
  const limit = AbortSignal.timeout(limitMs);
  let reached: VerifyProgress | undefined;
  const onProgress = (progress: VerifyProgress): void => {
    reached = progress;
  };
  try {
    return await verifySession(store, session, { onProgress, signal: AbortSignal.any([signal, limit]) });
  } catch (error) {
    if (!limit.aborted || error !== limit.reason) throw error;
    const far =
      reached === undefined ? 'before anything was compared' : `at ${reached.what} ${reached.done} of ${reached.total}`;
    throw new HistoryError(
      'verify-timeout',
      `the verification was stopped after ${limitMs / 1_000} s, ${far}: give it more time, or run palimpsest verify, which has no limit`,
      { cause: error },
    );
  }
}

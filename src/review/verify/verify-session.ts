import { eachRecord } from '../../history/rebuild/each-record.js';
import { orderAt } from '../../history/rebuild/erased.js';
import { requireSession } from '../../history/rebuild/find-session.js';
import { HistoryError } from '../../history/rebuild/history-error.js';
import { AssemblyRebuilder } from '../../history/rebuild/rebuild-assembly.js';
import type { AssemblyProof, Delivery } from '../../objects/assembly-proof.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import type { StoreError } from '../../store/errors.js';
import type { LoggedWrites } from '../../store/logged-writes.js';
import type { ObjectStore } from '../../store/object-store.js';
import { ofSession, storeOf } from '../../store/session-line.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { readTombstones, readUnproved, type UnprovedFrom } from '../../store/tombstones.js';
import { begun } from '../../values/promises.js';
import { type AnswersReport, verifyAnswers } from './verify-answers.js';
import { type AssemblyMismatch, type VerifyingReaders, verifyAssembly } from './verify-assembly.js';
import { callsIn, orDamage, ownObjects, type PartDamage, type PartsReport, verifyParts } from './verify-parts.js';

/** The progress of a verification. */
export interface VerifyProgress {
  readonly what: 'contexts' | 'answers' | 'parts';
  readonly done: number;
  readonly total: number;
}

/** Options of a verification. */
export interface VerifyOptions {
  /**
   * A snapshot of the newest state, if the caller has read it. It must include every acknowledged
   * write.
   */
  readonly present?: StoreSnapshot | undefined;
  readonly onProgress?: (progress: VerifyProgress) => void;
  readonly signal?: AbortSignal;
}

/** The result for contexts. */
export interface ContextsReport {
  readonly total: number;
  /** Contexts that were rebuilt byte for byte. */
  readonly equal: number;
  /**
   * Contexts with text that was masked before their import. They are compared with the masked text.
   */
  readonly redacted: number;
  /** Contexts of sessions from which this session was forked. */
  readonly inherited: number;
  readonly byDelivery: Readonly<Partial<Record<Delivery, number>>>;
  /**
   * Message lists in which a harness added its own messages. Only the context in them was compared,
   * because only the hash of the whole list is stored.
   */
  readonly handedLists: number;
  readonly unequal: readonly AssemblyMismatch[];
}

/** The result for a session (decision E7). */
export interface SessionVerification {
  readonly session: SessionId;
  readonly contexts: ContextsReport;
  readonly answers: AnswersReport;
  readonly parts: PartsReport;
  /** Orders that erased content of this session, and the numbers of findings that they explain. */
  readonly erased?: { readonly orders: readonly UnprovedFrom[]; readonly contexts: number; readonly parts: number };
  /** Whether every check succeeded. */
  readonly ok: boolean;
}

function countByDelivery(proofs: readonly AssemblyProof[]): ContextsReport['byDelivery'] {
  const counts: Partial<Record<Delivery, number>> = {};
  for (const { delivered } of proofs) counts[delivered] = (counts[delivered] ?? 0) + 1;
  return counts;
}

/**
 * The two readers of a verification. `rebuilder` knows the current steps and is used first. If it
 * finds a difference, `exact` reads everything itself and checks again.
 */
interface Rebuilders {
  readonly rebuilder: AssemblyRebuilder;
  readonly exact: AssemblyRebuilder;
  readonly present: StoreSnapshot;
  /** When the session's documents were written, if the transaction log shows it. */
  readonly writes: LoggedWrites | undefined;
}

/** Number of contexts whose objects are read and held together. */
const READ_TOGETHER = 50;

/**
 * Returns the rebuilt contexts of a first, faster attempt. With `writes`, it reads the objects of
 * all contexts together and uses those that did not change. A context that it cannot rebuild is
 * read at its own basis later.
 */
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
      // An error of `onProgress` ends the verification before the next context.
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

/** Returns a snapshot at the latest basis of a context. */
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

/**
 * Returns when the session's documents were written. Undefined if the log does not show it, or if
 * the session's lineage is damaged.
 */
async function writesOf(present: StoreSnapshot, session: SessionId): Promise<LoggedWrites | undefined> {
  const [lineage, head] = await Promise.all([orDamage(present.lineage(session)), present.sessionHead(session)]);
  return lineage === undefined || lineage instanceof Error
    ? undefined
    : present.documents.writes(lineage, head?.marks.upto ?? 0);
}

/** Returns the objects to verify: the session's own, its calls, and those in its contexts. */
function objectsOf(session: SessionId, steps: readonly Step[], proofs: readonly AssemblyProof[]): readonly ObjectId[] {
  const shown = proofs.length === 0 ? [] : steps.flatMap(({ changes }) => changes?.index ?? []);
  return [...new Set([...ownObjects(session), ...callsIn(steps), ...shown])];
}

/** A verification before its findings are explained. */
type Findings = Omit<SessionVerification, 'ok' | 'erased'>;

/**
 * Removes the findings that an erasure order explains. They concern parts with a tombstone, and
 * contexts and answers at and after the first step with erased content. Other findings remain.
 * `own` are the session's orders.
 */
async function explainErased(
  present: StoreSnapshot,
  own: readonly UnprovedFrom[],
  findings: Findings,
): Promise<Omit<SessionVerification, 'ok'>> {
  const { session, contexts, answers, parts } = findings;
  const others = new Set(contexts.unequal.map((one) => one.session).filter((one) => one !== session));
  const orders = new Map(
    await Promise.all([...others].map(async (one) => [one, await readUnproved(present.documents, one)] as const)),
  ).set(session, own);
  const ids = parts.damages.flatMap(({ part, of }) => [part, of]);
  const tombstones = await readTombstones(present.documents, ids);
  if (own.length === 0 && tombstones.size === 0) return findings;
  const unequal = contexts.unequal.filter((one) => orderAt(orders.get(one.session) ?? [], one.step) === undefined);
  const wrong = answers.unequal.filter(({ step }) => orderAt(own, step) === undefined);
  const damages = parts.damages.filter(({ part, of }) => !tombstones.has(part) && !tombstones.has(of));
  return {
    session,
    contexts: { ...contexts, unequal },
    answers: { ...answers, unequal: wrong },
    parts: { ...parts, damages },
    erased: {
      orders: own,
      contexts: contexts.unequal.length - unequal.length,
      parts: parts.damages.length - damages.length + answers.unequal.length - wrong.length,
    },
  };
}

/**
 * Verifies a session with the database as its only source (decision E7). It rebuilds every context
 * and every tool answer that stored data can reproduce, and checks the stored parts. `name` is a
 * session's id or a unique prefix of one.
 *
 * @throws {HistoryError} `unknown-session`, `ambiguous`
 * @throws {XtdbError} if the database cannot be queried; an abort throws the signal's reason
 *
 * @example
 * ```ts
 * const { ok } = await verifySession(store, 'fix-cart');
 * ```
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
  // A process whose clock is fast may have written valid times in the future. `latest` includes
  // them.
  const latest = (newest ?? (await store.latest())).remembering();
  const session = await requireSession(latest, name);
  const own = await ofSession(latest, session);
  const present = own === latest ? latest : own.remembering();
  const from = storeOf(store, present);
  const damaged: PartDamage[] = [];
  const onDamaged = ({ message }: StoreError): void => {
    damaged.push({ part: 'assembly', what: 'damaged', of: message });
  };
  // Reads that do not need the steps run at the same time. Slow reads start after the steps,
  // because everything else waits for the steps.
  const proofsRead = begun(present.assemblies(session, { onDamaged }));
  const steps = await orDamage(present.steps(session, { first: 1 }));
  // A step page may still have a step that is missing.
  const known = steps instanceof Error ? await orDamage(present.steps(session)) : steps;
  signal?.throwIfAborted();
  const [rebuilder, exact] = [new AssemblyRebuilder(from, present), new AssemblyRebuilder(from)];
  if (!(known instanceof Error)) rebuilder.know(known);
  // Reads each object once. The checks of answers, contexts and pages then use the remembered
  // heads.
  const headsRead = steps instanceof Error ? undefined : present.heads(objectsOf(session, steps, await proofsRead));
  const writesRead = begun(writesOf(present, session));
  await headsRead;
  // Runs before contexts are rebuilt: it reads many outputs of calls at a time, and contexts show
  // the same outputs.
  const answers = await verifyAnswers({ store, present }, known, report('answers'));
  const [proofs, writes] = await Promise.all([proofsRead, writesRead]);
  const contexts = await verifyContexts({ rebuilder, exact, present, writes }, { session, proofs }, report('contexts'));
  report('parts')(0, 1);
  // After an erasure, the parts are compared with the newest state: earlier bases lack the
  // documents that replaced the erased ones.
  const orders = await readUnproved(present.documents, session);
  const before = orders.length > 0 ? present : lastRead(proofs, present);
  const seen = new Map([...exact.texts, ...rebuilder.texts]);
  const found = await verifyParts({ session, present, before, writes, seen, steps });
  const parts = { checked: found.checked + damaged.length, damages: [...damaged, ...found.damages] };
  onProgress?.({ what: 'parts', done: 1, total: 1 });
  const explained = await explainErased(present, orders, { session, contexts, answers, parts });
  const ok =
    answers.unread !== true &&
    explained.contexts.unequal.length === 0 &&
    explained.answers.unequal.length === 0 &&
    explained.parts.damages.length === 0;
  return { ...explained, ok };
}

/** Default time limit of a verification over a protocol, in milliseconds. */
const DEFAULT_VERIFY_MS = 60_000;
/** Maximum time limit that a caller can set, in milliseconds. */
const MOST_VERIFY_MS = 600_000;

/** The caller's limits for a verification. */
export interface VerifyLimits {
  readonly timeoutMs?: number | undefined;
  /** Aborted when the caller stops waiting. */
  readonly signal: AbortSignal;
}

/**
 * Verifies a session with `verifySession`, within a time limit. At the limit, it first finishes the
 * current request or context.
 *
 * @throws {HistoryError} `verify-timeout`; also the reason of the signal and the errors of
 * `verifySession`
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
      `the verification was stopped after ${limitMs / 1_000} s, ${far}: ` +
        'give it more time, or run palimpsest verify, which has no limit',
      { cause: error },
    );
  }
}

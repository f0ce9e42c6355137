import { decideFile, type FileDecision, type FileObservation } from '../indexing/decide-file.js';
import type { IndexOutcome } from '../indexing/outcome.js';
import { canonicalJson } from '../objects/canonical-json.js';
import { sourcedIdentityHash } from '../objects/hashes.js';
import type { ObjectId, Sha256 } from '../objects/ids.js';
import type { ObjectVersion } from '../objects/seal.js';
import type { Step } from '../objects/step.js';
import { SessionError } from '../session/errors.js';
import type { HeadMarks } from '../store/head.js';
import type { ObjectStore, Put } from '../store/object-store.js';
import { toStepParts } from '../store/step-part.js';
import type { Head, StoreSnapshot } from '../store/store-snapshot.js';
import { textParts } from '../store/text-parts.js';
import type { Planned } from '../store/write-path.js';
import type { StoredDocument } from '../xtdb/documents.js';
import type { TxOp } from '../xtdb/transactions.js';
import { writeLargeText } from './large-text-write.js';

/**
 * Everything that one step of work wants written (decision F3): plain data, decided against the database only when it is applied (decision F6).
 */
export interface StepWrite {
  readonly step: Step;
  readonly call?: { readonly version: ObjectVersion<'toolcall'>; readonly wholeText?: { readonly hash: Sha256; readonly text: string } };
  readonly files: readonly FileObservation[];
  /** The versions of chat and session at a turn's ends, and a changed system prompt. */
  readonly heads: readonly Put[];
  readonly snapshot?: StoredDocument;
  /** The session's head as this writer left it: the guard of its lease (decision F5). */
  readonly lease: StoredDocument;
}

/** What became of a step. */
export interface StepResult {
  readonly outcomes: ReadonlyMap<ObjectId, IndexOutcome>;
  /** The versions that the step wrote, with their marks. */
  readonly written: readonly { readonly version: ObjectVersion; readonly marks: HeadMarks }[];
  readonly ops: readonly TxOp[];
}

const idOf = ({ source }: FileObservation): ObjectId => sourcedIdentityHash('file', source) as string as ObjectId;

/** One observation per file: what was read wins over what was mentioned, the later reading over the earlier. */
function distinct(files: readonly FileObservation[]): ReadonlyMap<ObjectId, FileObservation> {
  const byId = new Map<ObjectId, FileObservation>();
  for (const file of files) {
    const id = idOf(file);
    if (file.kind === 'read' || !byId.has(id)) byId.set(id, file);
  }
  return byId;
}

function currentOf(head: Head | undefined) {
  if (head === undefined) return undefined;
  const fileHash = head.document.file_hash as Sha256 | null;
  return { fileHash, gone: head.marks.gone === true, validTime: head.validTime };
}

async function fileOps(store: ObjectStore, file: FileObservation, { write, onlyIfAbsent }: FileDecision): Promise<readonly TxOp[]> {
  if (write === undefined) return [];
  const large = file.kind === 'read' && file.reading.kind === 'large-text' ? await writeLargeText(store, file.reading) : [];
  return [...large, ...store.putOps({ ...write, ...(onlyIfAbsent ? { expect: null } : {}) })];
}

function callOps(store: ObjectStore, { call, step }: StepWrite): readonly TxOp[] {
  if (call === undefined) return [];
  const { version, wholeText } = call;
  const marks = { size: version.content?.length ?? 0, ...(wholeText === undefined ? {} : { whole: wholeText.hash }) };
  const texts = wholeText === undefined ? [] : store.textOps(textParts(wholeText.text, wholeText.hash));
  return [...texts, ...store.putOps({ version, marks, validTime: new Date(step.at), expect: null })];
}

function stepOps(store: ObjectStore, { step, snapshot, heads }: StepWrite): readonly TxOp[] {
  const { part, texts } = toStepParts(step);
  const validTime = new Date(step.at);
  return [
    ...store.textOps(texts),
    { op: 'match', id: part['xt/id'], doc: null },
    { op: 'put', doc: part, validTime },
    ...(snapshot === undefined ? [] : [{ op: 'put', doc: snapshot, validTime } as const]),
    ...heads.flatMap((head) => store.putOps(head)),
  ];
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

/** After an aborted or lost attempt: whether the step is there already; throws when another writer holds the session. */
async function alreadyApplied(snapshot: StoreSnapshot, { step, lease }: StepWrite): Promise<boolean> {
  const there = await snapshot.step(step.session, step.seq);
  if (there !== undefined && canonicalJson(there) === canonicalJson(step)) return true;
  const head = (await snapshot.heads([lease['xt/id']])).get(lease['xt/id']);
  if (there !== undefined || head === undefined || canonicalJson(head.document) !== canonicalJson(lease)) {
    throw new SessionError(
      'taken-over',
      `session ${step.session} was continued by another writer; open it again to go on from where it stands`,
    );
  }
  return false;
}

/**
 * Makes the transaction of a step: decides every file against the database as it is now, puts the tool call if it is not there, appends the step,
 * all guarded by the session's lease. Planning again after an abort or a lost answer finds what is already written.
 */
export function planStep(store: ObjectStore, write: StepWrite, nowMs: number): (attempt: number) => Promise<Planned<StepResult>> {
  const files = distinct(write.files);
  let last: StepResult | undefined;
  return async (attempt) => {
    const snapshot = attempt > 1 || files.size > 0 ? await store.now() : undefined;
    if (attempt > 1 && snapshot !== undefined && last !== undefined && (await alreadyApplied(snapshot, write)))
      return { ops: [], result: last };
    const heads = (await snapshot?.heads([...files.keys()])) ?? new Map<string, Head>();
    const ops: TxOp[] = [{ op: 'match', id: write.lease['xt/id'], doc: write.lease }];
    const outcomes = new Map<ObjectId, IndexOutcome>();
    const written: { version: ObjectVersion; marks: HeadMarks }[] = [];
    for (const [id, file] of files) {
      const decision = decideFile(file, currentOf(heads.get(id)), nowMs);
      outcomes.set(id, decision.outcome);
      ops.push(...(await fileOps(store, file, decision)));
      if (decision.write !== undefined) written.push(decision.write);
    }
    ops.push(...callOps(store, write), ...stepOps(store, write));
    const distinctOps = withoutRepeatedTexts(ops);
    if (write.call !== undefined) written.push({ version: write.call.version, marks: { size: write.call.version.content?.length ?? 0 } });
    last = { outcomes, written, ops: distinctOps };
    return { ops: distinctOps, result: last };
  };
}

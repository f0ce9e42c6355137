import type { AssemblyProof } from '../../objects/assembly-proof.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { ObjectVersion } from '../../objects/seal.js';
import type { ModelUsage, Step } from '../../objects/step.js';
import type { StoredPut } from '../../store/object-store.js';
import type { Facts } from '../../telemetry/facts.js';
import type { Telemetry } from '../../telemetry/telemetry.js';
import { defined } from '../../values/defined.js';
import type { StoredDocument } from '../../xtdb/documents.js';
import type { TxOp } from '../../xtdb/transactions.js';
import { decideFile, type FileObservation, type IndexOutcome } from '../decide-file.js';
import { fileObjectId } from '../file-access.js';
import type { MarkedVersion, WrittenObjects } from '../optimistic/known-versions.js';
import type { MetadataCache } from '../optimistic/metadata-cache.js';
import type { StoredCall } from './stored-call.js';

/** A file observation and the time of its acknowledgement, in milliseconds since 1970. */
export interface ObservedFile {
  readonly file: FileObservation;
  readonly at: number;
}

/**
 * Everything that one step of a session writes (decision F3). It is plain data. It is acknowledged
 * as it is. Its effect on the database is decided only when it is applied (decision F6). Without a
 * `step`, it only writes heads: a session begins, is taken over or pauses, or a prompt changes.
 */
export interface SessionWrite {
  readonly session: SessionId;
  /**
   * The session's head as this writer last wrote it, which guards its lease (decision F5). Null if
   * the session must not exist yet. Absent for file observations without a session, such as a
   * tracker's event or a resume [§5.6].
   */
  readonly lease?: StoredDocument | null;
  readonly step?: Step;
  /** Placeholders for the steps before `step` that a damaged journal lost (decision 0011). */
  readonly lost?: readonly Step[];
  readonly call?: StoredCall;
  readonly files: readonly FileObservation[];
  /** The new versions of chat, session and prompt. */
  readonly heads: readonly StoredPut[];
  readonly snapshot?: StoredDocument;
  /**
   * A handed-out context (decision E7). It is always a separate write that contains only this and
   * `shown`.
   */
  readonly assembly?: AssemblyProof;
  /**
   * The body of a gateway's request, in pieces. Pieces that requests share are stored once. Set
   * only with `assembly`, whose `sha256` is the hash of the whole body.
   */
  readonly body?: readonly string[];
  /**
   * File versions of the context that only its process had observed. They are not new observations:
   * the process also writes them itself.
   */
  readonly shown?: readonly ObservedFile[];
  /** Time of acknowledgement, in milliseconds since 1970. */
  readonly at: number;
  /**
   * The `traceparent` of the write's cause, if any. Only the journal stores it, so that any process
   * that delivers the write continues the trace.
   */
  readonly trace?: string;
}

/** The result of a write that the database has. */
export interface WriteResult extends WrittenObjects {
  /** The indexing outcome of each file [§5.6]. */
  readonly outcomes: ReadonlyMap<ObjectId, IndexOutcome>;
  readonly ops: readonly TxOp[];
}

/** A write that the database has. */
export interface AppliedWrite extends WriteResult {
  /** Undefined if an earlier process applied the write. */
  readonly txId: number | undefined;
}

/** An acknowledged write: durable here and in delivery. */
export interface AcceptedWrite {
  /** Resolves when the database has the write. A rejection ends the session for this writer. */
  readonly applied: Promise<AppliedWrite>;
}

/** Returns the telemetry attributes of a write. */
export function writeFacts({ session, step, call, assembly, lease }: SessionWrite): Facts {
  const kind =
    step !== undefined ? 'step' : assembly !== undefined ? 'context' : lease !== undefined ? 'heads' : 'files';
  return {
    'palimpsest.write': kind,
    ...(kind === 'files' ? {} : { 'gen_ai.conversation.id': session }),
    ...(step === undefined ? {} : { 'palimpsest.step': step.seq }),
    ...(call === undefined ? {} : { 'gen_ai.tool.call.id': call.id }),
  };
}

/** Reports the token counts of a model call. By convention, input includes the cache's tokens. */
export function tellUsage(telemetry: Telemetry, { input, output, cacheRead, cacheWrite }: ModelUsage): void {
  const chat = { 'gen_ai.operation.name': 'chat' } as const;
  const read = input === undefined ? undefined : input + (cacheRead ?? 0) + (cacheWrite ?? 0);
  const facts = defined({
    'gen_ai.usage.input_tokens': read,
    'gen_ai.usage.output_tokens': output,
    'gen_ai.usage.cache_read.input_tokens': cacheRead,
    'gen_ai.usage.cache_creation.input_tokens': cacheWrite,
  });
  void telemetry.observe({ activity: 'model call', facts: { ...chat, ...facts } }, async () => undefined);
  if (read !== undefined) telemetry.add('gen_ai.client.token.usage', read, { ...chat, 'gen_ai.token.type': 'input' });
  if (output !== undefined)
    telemetry.add('gen_ai.client.token.usage', output, { ...chat, 'gen_ai.token.type': 'output' });
}

/** The result of a write that changed no object. */
export const NOTHING_WRITTEN: WriteResult = {
  outcomes: new Map(),
  written: [],
  files: [],
  observed: [],
  observedAt: undefined,
  ops: [],
};

/** A client's local knowledge of objects, without the database. */
interface KnownLocally {
  readonly metadata: MetadataCache;
  /** Returns the newest locally known version of an object. */
  readonly newest: (id: ObjectId) => MarkedVersion | undefined;
}

/** The placeholder for the version of a known file, if only the database has that version. */
const SOME_VERSION = { fileHash: null, gone: false, validTime: new Date(0) };

/** Returns whether a reading of a file would produce this version. */
const isOf = ({ reading }: Extract<FileObservation, { kind: 'read' }>, version: ObjectVersion): boolean =>
  reading.kind === 'text' && version.file_hash === reading.fileHash && version.content === reading.content;

function localFile(
  file: FileObservation,
  { at }: SessionWrite,
  { metadata, newest }: KnownLocally,
): readonly MarkedVersion[] {
  const known = file.kind === 'read' ? newest(fileObjectId(file.source))?.version : undefined;
  // Reuse the sealed version, because sealing the reading would give the same one.
  if (known !== undefined && file.kind === 'read' && isOf(file, known))
    return [{ version: known, marks: {}, observed: { file, at } }];
  const current = metadata.get(fileObjectId(file.source)) === undefined ? undefined : SOME_VERSION;
  const { write } = decideFile(file, current, at);
  if (write === undefined) return [];
  const chunks = file.kind === 'read' && file.reading.kind === 'large-text' ? file.reading.chunks : undefined;
  const wholeText = chunks === undefined ? undefined : (): string => [...chunks()].join('');
  return [{ version: write.version, marks: write.marks, observed: { file, at }, ...defined({ wholeText }) }];
}

/**
 * Returns a write's objects as this client sees them before the database decides (decision F4). So
 * its own reads see what it acknowledged. If other clients have read a file that is only mentioned
 * here, the database's response corrects it.
 */
export function localVersions(write: SessionWrite, known: KnownLocally): readonly MarkedVersion[] {
  const files = write.files.flatMap((file) => localFile(file, write, known));
  if (write.call === undefined) return files;
  const { version, marks, wholeText } = write.call;
  return [...files, { version, marks, ...(wholeText === undefined ? {} : { wholeText: () => wholeText.text }) }];
}

function textsOf({ step, call, files }: SessionWrite): readonly (string | null | undefined)[] {
  const read = files.map((file) =>
    file.kind === 'read' && 'content' in file.reading ? file.reading.content : undefined,
  );
  return [step?.message?.text, call?.made.content, call?.wholeText?.text, call?.argsText?.text, ...read];
}

/** Returns the size of a write's texts, in UTF-16 units. */
export const unitsOf = (write: SessionWrite): number =>
  textsOf(write).reduce((sum, text) => sum + (text?.length ?? 0), 0);

import { decideFile, type FileObservation, type IndexOutcome } from '../../indexing/decide-file.js';
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
import { fileObjectId } from '../file-access.js';
import type { MarkedVersion, WrittenObjects } from '../optimistic/known-versions.js';
import type { MetadataCache } from '../optimistic/metadata-cache.js';
import type { StoredCall } from './stored-call.js';

/** What was observed of a file, and when it was acknowledged, milliseconds since 1970. */
export interface ObservedFile {
  readonly file: FileObservation;
  readonly at: number;
}

/**
 * Everything that one step of work on a session wants written (decision F3): plain data, acknowledged as it is and decided against the database only
 * when it is applied (decision F6). Without a `step` it only moves heads: a session that begins, is taken over, or pauses; a changed prompt.
 */
export interface SessionWrite {
  readonly session: SessionId;
  /**
   * The session's head as this writer left it, the guard of its lease (decision F5); null where the session must not exist yet. Absent where only files
   * are indexed, on behalf of no session: a tracker's event, a resume [§5.6].
   */
  readonly lease?: StoredDocument | null;
  readonly step?: Step;
  /** Steps that stand for those before `step` that were lost with a damaged journal (decision 0011). */
  readonly lost?: readonly Step[];
  readonly call?: StoredCall;
  readonly files: readonly FileObservation[];
  /** The versions of chat, session and prompt that this write brings forth. */
  readonly heads: readonly StoredPut[];
  readonly snapshot?: StoredDocument;
  /** A context that was handed out (decision E7): always a write of its own, with nothing else but `shown`. */
  readonly assembly?: AssemblyProof;
  /** Files that the context shows as only its process had observed them: no observation of their own, for whoever made it writes it too. */
  readonly shown?: readonly ObservedFile[];
  /** Moment of acknowledgement, milliseconds since 1970. */
  readonly at: number;
  /** The `traceparent` of what caused it, where that has a trace: kept in the journal alone, so that whichever process delivers it goes on with the trace. */
  readonly trace?: string;
}

/** What became of a write once the database has it. */
export interface WriteResult extends WrittenObjects {
  /** What indexing did to each file [§5.6]. */
  readonly outcomes: ReadonlyMap<ObjectId, IndexOutcome>;
  readonly ops: readonly TxOp[];
}

/** What may be told of a write. */
export function writeFacts({ session, step, call, assembly, lease }: SessionWrite): Facts {
  const kind = step !== undefined ? 'step' : assembly !== undefined ? 'context' : lease !== undefined ? 'heads' : 'files';
  return {
    'palimpsest.write': kind,
    ...(kind === 'files' ? {} : { 'gen_ai.conversation.id': session }),
    ...(step === undefined ? {} : { 'palimpsest.step': step.seq }),
    ...(call === undefined ? {} : { 'gen_ai.tool.call.id': call.id }),
  };
}

/** Tells what a call of a model took. A cache's tokens are a part of its input, by the conventions for these names. */
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
  if (output !== undefined) telemetry.add('gen_ai.client.token.usage', output, { ...chat, 'gen_ai.token.type': 'output' });
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

/** What a client knows of objects without asking the database. */
interface KnownLocally {
  readonly metadata: MetadataCache;
  /** The newest version of an object that is known here. */
  readonly newest: (id: ObjectId) => MarkedVersion | undefined;
}

/** A file that is known stands in some version; which one, only the database can tell. */
const SOME_VERSION = { fileHash: null, gone: false, validTime: new Date(0) };

/** Whether a version of a file is what a reading of it would make. */
const isOf = ({ reading }: Extract<FileObservation, { kind: 'read' }>, version: ObjectVersion): boolean =>
  reading.kind === 'text' && version.file_hash === reading.fileHash && version.content === reading.content;

function localFile(file: FileObservation, { at }: SessionWrite, { metadata, newest }: KnownLocally): readonly MarkedVersion[] {
  const known = file.kind === 'read' ? newest(fileObjectId(file.source))?.version : undefined;
  // Sealing it again would give the same.
  if (known !== undefined && file.kind === 'read' && isOf(file, known)) return [{ version: known, marks: {}, observed: { file, at } }];
  const current = metadata.get(fileObjectId(file.source)) === undefined ? undefined : SOME_VERSION;
  const { write } = decideFile(file, current, at);
  if (write === undefined) return [];
  const chunks = file.kind === 'read' && file.reading.kind === 'large-text' ? file.reading.chunks : undefined;
  const wholeText = chunks === undefined ? undefined : (): string => [...chunks()].join('');
  return [{ version: write.version, marks: write.marks, observed: { file, at }, ...defined({ wholeText }) }];
}

/**
 * What a write's objects are as far as this client can tell before the database has decided (decision F4): its own reads see what it acknowledged. A
 * mention may turn out to be a file that others read already; the database's answer corrects it.
 */
export function localVersions(write: SessionWrite, known: KnownLocally): readonly MarkedVersion[] {
  const files = write.files.flatMap((file) => localFile(file, write, known));
  if (write.call === undefined) return files;
  const { version, marks, wholeText } = write.call;
  return [...files, { version, marks, ...(wholeText === undefined ? {} : { wholeText: () => wholeText.text }) }];
}

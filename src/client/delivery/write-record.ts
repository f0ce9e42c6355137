import * as z from 'zod';
import { JournalError } from '../../journal/errors.js';
import type { Json } from '../../objects/canonical-json.js';
import { type ObjectVersion, restoreVersion } from '../../objects/seal.js';
import { checkedParts, type StoredParts, toStored } from '../../store/head.js';
import type { StoredPut } from '../../store/object-store.js';
import { renewedPart } from '../../store/part-id.js';
import { defined } from '../../values/defined.js';
import type { StoredDocument } from '../../xtdb/documents.js';
import type { SessionWrite } from './session-write.js';
import { type CallRecord, StoredCall } from './stored-call.js';

/** The format of new records. A reader accepts this format and all earlier ones. */
const FORMAT = 3;
/** The format of records without a call, which the previous version can also read. */
const WITHOUT_CALL = 2;

type FileObservation = SessionWrite['files'][number];

function encodeFile(file: FileObservation): unknown {
  if (file.kind === 'mention' || file.reading.kind !== 'large-text') return file;
  const { chunks, ...reading } = file.reading;
  return { ...file, reading: { ...reading, chunks: chunks === undefined ? null : [...chunks()] } };
}

function encodePut({ head, texts, validTime, expect }: StoredPut): unknown {
  const held = texts.length === 0 ? undefined : texts;
  return { head, ...defined({ texts: held, validTime: validTime?.getTime(), expect }) };
}

/**
 * Encodes a write as plain data for the journal. The encoding is lossless: `decodeWrite` returns an
 * equal write.
 */
export function encodeWrite(write: SessionWrite): Json {
  const shown = write.shown?.map(({ file, at }) => ({ file: encodeFile(file), at }));
  const lists = { files: write.files.map(encodeFile), heads: write.heads.map(encodePut), ...defined({ shown }) };
  return {
    ...write,
    format: write.call === undefined ? WITHOUT_CALL : FORMAT,
    ...lists,
    ...defined({ call: write.call?.record }),
  } as unknown as Json;
}

const count = z.int().nonnegative();
const ids = z.array(z.string());
const hash = z.string().length(64);
/** A head or part in its stored form. */
const storedDocument = z.looseObject({ 'xt/id': z.string() });
const source = z.looseObject({ type: z.literal('filesystem'), filesystemId: z.string(), path: z.string() });
const readable = { fileHash: hash, size: count, mtimeMs: z.number() };

const reading = z.discriminatedUnion('kind', [
  z.looseObject({ kind: z.literal('text'), ...readable, content: z.string() }),
  z.looseObject({
    kind: z.literal('large-text'),
    ...readable,
    content: z.string(),
    length: count,
    chunks: z.array(z.string()).nullable(),
  }),
  z.looseObject({ kind: z.literal('binary'), ...readable }),
  z.looseObject({ kind: z.literal('missing') }),
  z.looseObject({ kind: z.literal('unreachable'), reason: z.string() }),
  z.looseObject({ kind: z.literal('not-regular'), what: z.string() }),
]);

const file = z.discriminatedUnion('kind', [
  z.looseObject({ kind: z.literal('mention'), source, mtimeMs: z.number() }),
  z.looseObject({ kind: z.literal('read'), source, reading }),
]);

const step = z.looseObject({
  session: z.string(),
  seq: z.int().positive(),
  turn: z.int().positive(),
  at: z.number(),
  opens: z.looseObject({ rule: z.string() }).optional(),
  message: z.looseObject({ role: z.string(), text: z.string() }).optional(),
  call: z.looseObject({ id: z.string() }).optional(),
  changes: z.looseObject({
    index: ids.optional(),
    activate: ids.optional(),
    deactivate: ids.optional(),
    pin: ids.optional(),
    unpin: ids.optional(),
  }),
  fresh: ids.optional(),
});

/** A version to put. Format 1 held whole versions with every turn of the chat. */
const put = z
  .strictObject({
    head: storedDocument.optional(),
    texts: z.array(storedDocument).optional(),
    version: z.looseObject({}).optional(),
    marks: z.looseObject({}).optional(),
    validTime: z.number().optional(),
    expect: storedDocument.nullish(),
  })
  .refine(({ head, version }) => head !== undefined || version !== undefined, 'neither a head nor a version');

const partText = z.looseObject({ hash, text: z.string() });

/** A call, stored as its input. Formats 1 and 2 held its sealed version. */
const call = z
  .looseObject({
    made: z
      .looseObject({
        id: z.string(),
        tool: z.string(),
        args: z.looseObject({}),
        argsDisplay: z.string().optional(),
        status: z.literal(['ok', 'fail']),
        chatRef: z.string(),
        fileRefs: ids.optional(),
        content: z.string().nullable(),
      })
      .optional(),
    version: z.looseObject({}).optional(),
    wholeText: partText.optional(),
    argsText: partText.optional(),
  })
  .refine(({ made, version }) => made !== undefined || version !== undefined, 'neither a call nor a version of one');

const writeRecord = z.looseObject({
  format: z.literal([1, WITHOUT_CALL, FORMAT]),
  session: z.string(),
  lease: storedDocument.nullish(),
  step: step.optional(),
  call: call.optional(),
  files: z.array(file),
  heads: z.array(put),
  snapshot: storedDocument.optional(),
  shown: z.array(z.looseObject({ file, at: z.number() })).optional(),
  assembly: z.looseObject({ session: z.string(), step: count, at: z.number(), sha256: hash }).optional(),
  at: z.number(),
});

type WriteRecord = z.infer<typeof writeRecord>;

function decodeFile(file: WriteRecord['files'][number]): unknown {
  if (file.kind === 'mention' || file.reading.kind !== 'large-text') return file;
  const { chunks } = file.reading;
  return { ...file, reading: { ...file.reading, chunks: chunks === null ? undefined : () => chunks } };
}

function partsOf({ version, marks, head, texts = [] }: WriteRecord['heads'][number]): StoredParts {
  if (head === undefined) return toStored(restoreVersion(version ?? {}), marks);
  return checkedParts({
    head: head as StoredDocument,
    texts: texts.map((text) => renewedPart(text as StoredDocument)),
  });
}

function decodePut(put: WriteRecord['heads'][number]): unknown {
  const { validTime, expect } = put;
  return {
    ...partsOf(put),
    ...defined({ validTime: validTime === undefined ? undefined : new Date(validTime), expect }),
  };
}

function decodeCall({ made, version, ...texts }: NonNullable<WriteRecord['call']>): StoredCall {
  if (made !== undefined) {
    const call = new StoredCall({ ...texts, made } as unknown as CallRecord);
    // Seal the call here, so that an invalid one fails now and not later among other writes.
    void call.version;
    return call;
  }
  return StoredCall.of(
    restoreVersion(version ?? {}) as ObjectVersion<'toolcall'>,
    texts as unknown as Partial<CallRecord>,
  );
}

/**
 * Checks a record without changing it. Its content is written as it was acknowledged, including
 * fields of other program versions.
 */
function checkedRecord(value: Json): WriteRecord {
  const parsed = writeRecord.safeParse(value);
  if (parsed.success) return value as unknown as WriteRecord;
  const [issue] = parsed.error.issues;
  const what = `${issue?.path.join('.') || 'the record'}: ${issue?.message ?? 'unreadable'}`;
  const format = (value as { readonly format?: unknown } | null)?.format;
  const isNewer = typeof format === 'number' && format > FORMAT;
  throw isNewer
    ? new JournalError(
        'newer-format',
        `a journal record has the format ${format}, this version reads up to ${FORMAT}; update Palimpsest`,
      )
    : new JournalError(
        'bad-payload',
        `a journal record is not a write of a session (${what}); keep a copy of the journal, then report it`,
      );
}

/**
 * Decodes a write and checks the hash of every version in the record.
 * @throws {JournalError} `newer-format` – a later version of Palimpsest wrote the record;
 *   `bad-payload` – it is not a write
 * @throws {DocumentError} `hash-mismatch` – a version is damaged
 */
export function decodeWrite(value: Json): SessionWrite {
  const { format: _format, files, heads, call, snapshot, shown, ...write } = checkedRecord(value);
  const decoded = {
    ...write,
    files: files.map(decodeFile),
    heads: heads.map(decodePut),
    ...(shown === undefined ? {} : { shown: shown.map((one) => ({ ...one, file: decodeFile(one.file) })) }),
    ...(snapshot === undefined ? {} : { snapshot: renewedPart(snapshot as StoredDocument) }),
    ...(call === undefined ? {} : { call: decodeCall(call) }),
  };
  return decoded as unknown as SessionWrite;
}

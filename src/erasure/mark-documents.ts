import { formsOf } from '../objects/forgotten.js';
import { hashText, metadataHash, objectHash } from '../objects/hashes.js';
import type { Sha256 } from '../objects/ids.js';
import { keptArgsHash } from '../objects/kept-args.js';
import { contentPartHash } from '../store/head.js';
import type { StoredDocument, StoredValue } from '../xtdb/documents.js';
import { holdsText } from './inventory.js';

/**
 * The text that replaces erased text. A recorded text may contain it by chance, so only a tombstone
 * proves an erasure.
 */
const ERASED_MARK = '⟦erased on order⟧';

/** The texts to remove from documents. */
export interface TakenOut {
  readonly texts: readonly string[];
  /** Digests of the texts in `texts` that are stored under their hash. */
  readonly digests: ReadonlySet<string>;
}

const ENVELOPE: ReadonlySet<string> = new Set([
  'xt/id',
  'type',
  'source',
  'content',
  'identity_hash',
  'file_hash',
  'content_hash',
  'metadata_hash',
  'object_hash',
]);
/** Attributes of stored documents that no hash covers. */
const STORAGE: ReadonlySet<string> = new Set(['gone', 'whole', 'size']);

function masked(value: StoredValue, forms: readonly string[]): StoredValue {
  if (typeof value === 'string') return holdsText(value, forms) ? ERASED_MARK : value;
  if (Array.isArray(value)) return value.map((one) => masked(one, forms));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, masked(one, forms)]));
}

type Fields = Readonly<Record<string, StoredValue>>;

/** Returns a step without the erased texts. Its changes of the session's sets stay. */
function markedStep(document: StoredDocument, { texts, digests }: TakenOut): StoredDocument {
  const forms = texts.flatMap(formsOf);
  const body = masked(document.body ?? {}, forms) as Fields;
  const { message, call } = body as { readonly message?: Fields; readonly call?: Fields };
  const { text_hash, ...others } = message ?? {};
  const isLong = typeof text_hash === 'string' && digests.has(text_hash);
  const { pieces: _, ...answer } = (call?.answer ?? {}) as Fields;
  return {
    ...document,
    body: {
      ...body,
      ...(isLong ? { message: { ...others, text: ERASED_MARK } } : {}),
      // Pieces of the answer may quote parts of the text.
      ...(call?.answer === undefined ? {} : { call: { ...call, answer } }),
      erased: true,
    },
  };
}

/** Returns a head without the erased texts. Its hashes are computed again. */
function markedHead(document: StoredDocument, { texts, digests }: TakenOut): StoredDocument {
  const forms = texts.flatMap(formsOf);
  const args = keptArgsHash(document.args);
  const open: StoredDocument =
    args !== undefined && digests.has(args) ? { ...document, args: { erased: ERASED_MARK } } : document;
  const part = open.content_hash === null ? undefined : contentPartHash(open);
  const isTaken =
    holdsText(open.content ?? '', forms) ||
    [part, open.whole].some((one) => typeof one === 'string' && digests.has(one));
  const fields: Record<string, StoredValue> = {};
  for (const [key, value] of Object.entries(open)) {
    if (ENVELOPE.has(key) || (isTaken && (key === 'whole' || key === 'size'))) continue;
    fields[key] = key === 'char_count' && isTaken ? ERASED_MARK.length : masked(value, forms);
  }
  const hashed = Object.fromEntries(Object.entries(fields).filter(([key]) => !STORAGE.has(key)));
  const content_hash = isTaken ? hashText(ERASED_MARK) : (open.content_hash as Sha256 | null);
  // The original hash of the file's bytes would confirm a guess of the text.
  const file_hash = isTaken && open.file_hash !== null ? hashText(ERASED_MARK) : (open.file_hash as Sha256 | null);
  const metadata_hash = metadataHash(hashed);
  const kept = Object.fromEntries(Object.entries(open).filter(([key]) => key === 'content'));
  return {
    'xt/id': open['xt/id'],
    type: open.type ?? '',
    source: open.source ?? null,
    ...kept,
    ...(isTaken ? { content: ERASED_MARK } : {}),
    ...fields,
    ...(isTaken && open.type === 'toolcall' ? { size: ERASED_MARK.length } : {}),
    identity_hash: open.identity_hash ?? '',
    file_hash,
    content_hash,
    metadata_hash,
    object_hash: objectHash({ file_hash, content_hash, metadata_hash }),
  };
}

/** Types of documents that are stored again with a mark, because their session needs them. */
export const STAYS_MARKED: ReadonlySet<string> = new Set(['step', 'toolcall', 'file', 'system_prompt']);

/** Returns a document with marks in place of the erased texts. */
export const markedDocument = (document: StoredDocument, taken: TakenOut): StoredDocument =>
  document.type === 'step' ? markedStep(document, taken) : markedHead(document, taken);

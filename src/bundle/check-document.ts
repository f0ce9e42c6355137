import { isDeepStrictEqual } from 'node:util';
import { NO_MASK, type RecordMask } from '../client/record-mask.js';
import type { Json } from '../objects/canonical-json.js';
import { contextRecord } from '../objects/context-record.js';
import { hashText, objectHash } from '../objects/hashes.js';
import { callSuffix, chatObjectId, isReservedCallId, type SessionId, sessionId } from '../objects/ids.js';
import { CHUNK_UNITS } from '../objects/large-text.js';
import { isObjectType, type ObjectType } from '../objects/object-type.js';
import { parseSource } from '../objects/source.js';
import type { Step } from '../objects/step.js';
import type { FoundSecrets } from '../redaction/stored-marks.js';
import { assemblyId } from '../store/assemblies.js';
import { recordId, toRecordPart } from '../store/context-records.js';
import { contentPartHash, fromStored, marksOf } from '../store/head.js';
import { partId } from '../store/part-id.js';
import { fromStepPart, messagePartHash, stepId } from '../store/step-part.js';
import { chunkId, chunkListId, chunksOf } from '../store/texts.js';
import { ownMember } from '../values/own-member.js';
import { messageOf } from '../values/thrown.js';
import { fromDocument, type StoredDocument } from '../xtdb/documents.js';
import { BundleError } from './bundle-error.js';
import { BODY_SHAPES, HEAD_SHAPES, misfit } from './document-shapes.js';

/** The values against which the documents of a bundle are checked. */
export interface DocumentScope {
  /** The sessions of the bundle. */
  readonly sessions: ReadonlySet<string>;
  readonly transactions: number;
  /** The last step of the bundle's session. */
  readonly step: number;
  /** Time at which the check started, in milliseconds since 1970. Later times are rejected. */
  readonly now: number;
}

/** The form of a file's id. */
const DIGEST = /^[0-9a-f]{64}$/;

const altered = (document: StoredDocument, why: string, cause?: unknown): BundleError =>
  new BundleError('altered', `${JSON.stringify(document['xt/id'])} of the bundle was altered or damaged: ${why}`, {
    cause,
  });

function requireThat(holds: boolean, document: StoredDocument, why: string): void {
  if (!holds) throw altered(document, why);
}

function requireShape(shape: Parameters<typeof misfit>[0], value: unknown, document: StoredDocument): void {
  const wrong = misfit(shape, value);
  requireThat(wrong === undefined, document, `it has an invalid field: ${wrong}`);
}

/**
 * Rejects a time in the future.
 *
 * @throws {BundleError} `future-time`
 */
export function requirePast(time: number, what: string, now: number): void {
  if (time <= now) return;
  const when = new Date(time);
  const said = Number.isNaN(when.getTime()) ? String(time) : when.toISOString();
  throw new BundleError(
    'future-time',
    `${what} is dated ${said}, but this machine's clock says ${new Date(now).toISOString()}. ` +
      'Correct the clock if it is wrong, or import the bundle after that time',
  );
}

/** Returns the session of a part. It must be one of the bundle's sessions. */
function sessionIn(reference: unknown, document: StoredDocument, { sessions }: DocumentScope): SessionId {
  const name = String(reference).replace(/^session:/, '');
  requireThat(
    sessions.has(name),
    document,
    `it belongs to session ${JSON.stringify(name)}, which is not in the bundle`,
  );
  return sessionId(name);
}

function requireFields(document: StoredDocument, fields: readonly string[]): void {
  const names = Object.keys(document).sort();
  requireThat(isDeepStrictEqual(names, [...fields].sort()), document, `it has the fields ${names.join(', ')}`);
}

/**
 * Checks that a call belongs to a chat of the bundle. The call's id must not be that of a session,
 * of a file, or of another session's call (decision B2).
 */
function checkCall(document: StoredDocument, { sessions }: DocumentScope): void {
  const { 'xt/id': id, chat_ref } = document;
  const own = [...sessions].map(sessionId);
  const isOfOwnChat = own.some((session) => chat_ref === chatObjectId(session));
  requireThat(isOfOwnChat, document, `it is a call of ${JSON.stringify(chat_ref)}, which is not a chat of the bundle`);
  const bare = id.replace(/~\d+$/, '');
  const isOwnId = !isReservedCallId(id) || own.some((session) => bare.endsWith(callSuffix(session)));
  requireThat(isOwnId, document, "its id belongs to another object or to another session's call");
}

/**
 * Checks the hashes of a head. Texts, and fields that result from the steps, are checked elsewhere.
 */
function checkHead(document: StoredDocument, scope: DocumentScope): void {
  const { type, file_hash, content_hash, metadata_hash, object_hash } = document;
  const hashes = { file_hash, content_hash, metadata_hash } as Parameters<typeof objectHash>[0];
  requireThat(objectHash(hashes) === object_hash, document, 'its object hash does not match its other hashes');
  requireShape(HEAD_SHAPES[type as ObjectType], document, document);
  if (type === 'session' || type === 'chat' || type === 'system_prompt') {
    const session = sessionIn(String(document['xt/id']).slice(`${type}:`.length), document, scope);
    requireThat(document['xt/id'] === `${type}:${session}`, document, 'its id belongs to another object');
    if (type !== 'system_prompt') return;
  }
  // The id of a file is derived from its location, and is never the id of a call.
  const isPlaced = document.source !== null && document.source !== undefined;
  requireThat(
    isPlaced === (type === 'file') && (type === 'file' || !DIGEST.test(document['xt/id'])),
    document,
    `it is not of type ${String(type)}`,
  );
  if (type === 'toolcall') checkCall(document, scope);
  const elsewhere = contentPartHash(document);
  const inner = { ...hashes, content_hash: null } as Parameters<typeof objectHash>[0];
  fromStored(
    elsewhere === undefined
      ? document
      : { ...document, content: null, content_hash: null, object_hash: objectHash(inner) },
    undefined,
  );
  requireThat(
    isDeepStrictEqual(parseSource(document.source), document.source),
    document,
    'its path is not a canonical one',
  );
  const { content, char_count } = document;
  const isInline = type === 'file' && (content === null || typeof content === 'string');
  requireThat(
    !isInline || char_count === (content?.length ?? 0),
    document,
    'its char_count is not the length of its content',
  );
  const { whole, gone, size, author, ...others } = marksOf(document);
  requireThat(author === undefined || type === 'file', document, 'only a file has an author');
  const isSized = size === undefined || typeof content !== 'string' || size === content.length;
  requireThat(isSized, document, 'its size is not the length of its content');
  requireThat(Object.keys(others).length === 0, document, `it has the unknown marks ${Object.keys(others).join(', ')}`);
}

function checkStep(part: StoredDocument, scope: DocumentScope): void {
  requireFields(part, ['xt/id', 'type', 'session_ref', 'seq', 'body']);
  requireShape(BODY_SHAPES.step, part.body, part);
  const session = sessionIn(part.session_ref, part, scope);
  requirePast((part.body as unknown as Step).at, JSON.stringify(part['xt/id']), scope.now);
  const { seq } = fromStepPart(part, messagePartHash(part) === undefined ? undefined : '');
  requireThat(
    Number.isSafeInteger(seq) && seq >= 1 && seq <= scope.step,
    part,
    `it is not one of the steps 1 to ${scope.step}`,
  );
  requireThat(part['xt/id'] === stepId(session, seq), part, 'its id belongs to another step');
}

function checkAssembly(part: StoredDocument, scope: DocumentScope): void {
  requireFields(part, ['xt/id', 'type', 'assembly_ref', 'seq', 'body']);
  requireShape(BODY_SHAPES.assembly, part.body, part);
  const session = sessionIn(part.assembly_ref, part, scope);
  const proof = { session, step: Number(part.seq), ...(part.body as object) } as Parameters<typeof assemblyId>[0];
  requireThat(part['xt/id'] === assemblyId(proof), part, 'its content does not match its id');
  const { basis, at } = proof;
  requirePast(at, JSON.stringify(part['xt/id']), scope.now);
  requireThat(
    basis === null || (Number.isSafeInteger(basis.txId) && basis.txId >= 0 && basis.txId <= scope.transactions),
    part,
    'its basis is not in the bundle',
  );
}

const CHECKS: Readonly<Record<string, (part: StoredDocument, scope: DocumentScope) => void>> = {
  step: checkStep,
  snapshot: (part, scope) => {
    requireFields(part, ['xt/id', 'type', 'snapshot_ref', 'body']);
    const { seq } = part.body as { readonly seq: number };
    requireThat(
      part['xt/id'] === partId('snapshot', sessionIn(part.snapshot_ref, part, scope), seq),
      part,
      'its id belongs to another step',
    );
  },
  assembly: checkAssembly,
  record: (part, scope) => {
    const record = contextRecord(JSON.parse(String(part.text)));
    requireThat('session' in record.owner, part, 'it is of an agent, not of a session');
    requirePast(record.at, JSON.stringify(part['xt/id']), scope.now);
    if ('session' in record.owner) sessionIn(record.owner.session, part, scope);
    requireThat(
      part['xt/id'] === recordId(record) && isDeepStrictEqual(part, { ...toRecordPart(record) }),
      part,
      'its content does not match its id',
    );
  },
};

/**
 * Checks one version of a bundle on its own: its hashes, that it belongs to the bundle's sessions,
 * and that its id matches its content.
 *
 * @throws {BundleError} `altered`
 */
export function checkDocument(document: StoredDocument, scope: DocumentScope): void {
  const check = isObjectType(document.type) ? checkHead : ownMember(CHECKS, String(document.type));
  if (check === undefined) throw altered(document, `a bundle cannot contain the type ${JSON.stringify(document.type)}`);
  try {
    check(document, scope);
    // Also rejects documents that the database would refuse, so that this shows before anything is
    // written.
    fromDocument(document);
  } catch (error) {
    if (error instanceof BundleError) throw error;
    throw altered(document, messageOf(error), error);
  }
}

/**
 * Checks the texts of a bundle as they arrive. Each must match its hash, and the chunks of a long
 * text must follow its list.
 */
export class TextCheck {
  /** The hashes of all whole texts. */
  readonly #seen = new Set<string>();
  #pieces: { readonly list: StoredDocument; readonly left: string[]; readonly texts: string[] } | undefined;

  has(hash: string): boolean {
    return this.#seen.has(hash);
  }

  /** Takes a text, or one chunk of a long text. Returns the whole text once it is complete. */
  take(part: StoredDocument): { readonly hash: string; readonly text: string } | undefined {
    if (part.type === 'chunks') return this.#begin(part);
    requireThat(part.type === 'chunk', part, 'it is not text');
    requireFields(part, ['xt/id', 'type', 'text']);
    const { text } = part;
    const hash = typeof text === 'string' && text.isWellFormed() && text.length <= CHUNK_UNITS ? hashText(text) : '';
    requireThat(part['xt/id'] === chunkId(hash), part, 'its text does not match its hash');
    if (this.#pieces === undefined) {
      this.#seen.add(hash);
      return { hash, text: String(text) };
    }
    const { list, left, texts } = this.#pieces;
    requireThat(left.shift() === hash, part, `it does not follow in ${String(list['xt/id'])}`);
    texts.push(String(text));
    if (left.length > 0) return undefined;
    this.#pieces = undefined;
    const whole = texts.join('');
    const wholeHash = hashText(whole);
    requireThat(
      list['xt/id'] === chunkListId(wholeHash) && list.size === whole.length,
      list,
      'its pieces do not match its hash',
    );
    this.#seen.add(wholeHash);
    return { hash: wholeHash, text: whole };
  }

  /**
   * Checks that the last long text is complete.
   *
   * @throws {BundleError} `altered` if chunks of it are missing
   */
  end(): void {
    if (this.#pieces !== undefined) throw altered(this.#pieces.list, 'pieces of it are missing');
  }

  #begin(list: StoredDocument): undefined {
    this.end();
    requireFields(list, ['xt/id', 'type', 'size', 'body']);
    const left = [...chunksOf(list)];
    requireThat(
      left.length > 0 && left.length <= 1_000 && left.every((hash) => typeof hash === 'string'),
      list,
      'it lists no pieces',
    );
    this.#pieces = { list, left, texts: [] };
  }
}

/** Members that name objects, folders and files. Masks do not change them (decision 0026). */
const NAMES: ReadonlySet<string> = new Set(['xt/id', 'source', 'roots', 'folders', 'mounts']);

const MARK_KIND = /^⟦masked:([a-z-]+):/;

/**
 * Looks for secrets that this data folder would mask in its records. A bundle with a secret is
 * rejected. It cannot be masked here, because its hashes and proofs cover its texts.
 */
export class SecretCheck {
  readonly #mask: RecordMask;
  readonly #found: FoundSecrets = new Map();
  /** The name of the first document or text with a secret. */
  #first: string | undefined;

  constructor(mask: RecordMask = NO_MASK) {
    this.#mask = mask;
  }

  /** Checks a whole text. */
  text(text: string, name: string): void {
    if (this.#mask.text(text, this.#found) !== text) this.#first ??= name;
  }

  /** Checks a document, without the texts that it refers to by hash. `text` checks those. */
  document(document: StoredDocument): void {
    if (this.#mask === NO_MASK) return;
    const { size } = this.#found;
    const body = document.body as Readonly<Record<string, Json>> | undefined;
    for (const part of body === undefined ? [document] : [{ ...document, body: null }, body])
      for (const [name, value] of Object.entries(part))
        if (!NAMES.has(name)) this.#mask.value({ [name]: value as Json }, this.#found);
    if (this.#found.size > size) this.#first ??= document['xt/id'];
  }

  /** @throws {BundleError} `secrets` if there was a secret */
  end(): void {
    if (this.#first === undefined) return;
    const kinds = new Set([...this.#found.keys()].map((mark) => MARK_KIND.exec(mark)?.[1] ?? 'secret'));
    throw new BundleError(
      'secrets',
      `the bundle has ${this.#found.size} secrets (${[...kinds].sort().join(', ')}), the first in ` +
        `${JSON.stringify(this.#first)}, and this data folder masks secrets. Nothing was imported. Export the ` +
        'session again with --redact, or import the bundle unchanged with --mask off',
    );
  }
}

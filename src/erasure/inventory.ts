import * as z from 'zod';
import { formsOf } from '../objects/forgotten.js';
import { type SessionId, sessionId } from '../objects/ids.js';
import { keptArgsHash } from '../objects/kept-args.js';
import { parseJson } from '../process/owned-file.js';
import { contentPartHash, type ForkPoint, isHead } from '../store/head.js';
import { ARRIVING, fromImportPart, importId } from '../store/import-parts.js';
import { messagePartHash } from '../store/step-part.js';
import { chunksOf } from '../store/texts.js';
import { ownMember } from '../values/own-member.js';
import type { StoredDocument } from '../xtdb/documents.js';
import type { TransactionLog } from '../xtdb/tx-log.js';
import { ErasureError } from './erasure-error.js';
import { digestsIn, partsOf } from './named-digests.js';

/** A document of the database, with all its versions. */
export interface KnownDocument {
  readonly id: string;
  readonly type: string;
  /** The session that the document belongs to. Files and texts belong to no session. */
  session: SessionId | undefined;
  /** The digests that its versions name: digests of texts and ids of files. */
  readonly names: Set<number>;
  /** The digests in `names` that belong to texts which a version stores under their hash. */
  readonly texts: Set<number>;
  /** The hashes of each version, oldest first. Empty for parts. */
  readonly hashes: Readonly<Record<string, string>>[];
  /** Whether a version contains one of the searched texts. */
  holds: boolean;
  /** Bytes of all versions of the document, as JSON. */
  bytes: number;
}

/** Facts about a session, derived from its documents. */
export interface KnownSession {
  readonly id: SessionId;
  /**
   * Time of the session's last step, or if it has no step, of its last transaction, in milliseconds
   * since 1970.
   */
  lastAt: number;
  parent: ForkPoint | undefined;
  /** The session's steps by number. `names` are the objects that the step is the first to name. */
  readonly steps: Map<number, { readonly turn: number; readonly names: ReadonlySet<string> }>;
  /** The steps to which its context records belong. */
  readonly contexts: number[];
}

/** Maximum bytes of documents that are read at once. */
const READ_AT_ONCE = 16 * 1_048_576;

const HASHES = ['file_hash', 'content_hash', 'metadata_hash', 'object_hash'] as const;

/**
 * Where a document's id contains its session, as in `step:{session}:{seq}~`: the prefix before the
 * session, and the number of parts after it.
 */
const PARTS: Readonly<Record<string, { readonly prefix: string; readonly after: number }>> = {
  step: { prefix: 'step:', after: 1 },
  steps: { prefix: 'step:', after: 1 },
  snapshot: { prefix: 'snapshot:', after: 1 },
  assembly: { prefix: 'assembly:', after: 2 },
  import: { prefix: 'import:', after: 1 },
  'import-arriving': { prefix: 'import:', after: 1 },
  unproved: { prefix: 'unproved:', after: 0 },
  session: { prefix: 'session:', after: 0 },
  chat: { prefix: 'chat:', after: 0 },
  system_prompt: { prefix: 'system_prompt:', after: 0 },
};

function sessionOf({ 'xt/id': id, type }: StoredDocument): SessionId | undefined {
  const bare = id.endsWith('~') ? id.slice(0, -1) : id;
  const names = bare.split(':');
  // `record:{kind}:session:{session}:{sha256}` and `line:{file}:{session}`
  if (type === 'record') return names[2] === 'session' ? sessionId(names.slice(3, -1).join(':')) : undefined;
  if (type === 'line') return sessionId(names.slice(2).join(':'));
  const part = ownMember(PARTS, String(type));
  if (part === undefined || !id.startsWith(part.prefix)) return undefined;
  return sessionId(
    bare
      .slice(part.prefix.length)
      .split(':')
      .slice(0, part.after === 0 ? undefined : -part.after)
      .join(':'),
  );
}

/**
 * Throws while the import of a session is interrupted, unless the order erases that session. The
 * packed lines of the import may name or contain documents that the order erases.
 *
 * @throws {ErasureError} `importing`
 */
export function refuseArriving({ arriving }: Inventory, erased: ReadonlySet<SessionId>): void {
  const session = [...arriving].find((one) => !erased.has(one));
  if (session === undefined) return;
  throw new ErasureError(
    'importing',
    `the import of session ${session} is not finished, and needs texts that no document names yet: import its file ` +
      `again, or run palimpsest import --finish ${session}, or erase the session. Nothing was erased`,
  );
}

interface StepParts {
  readonly turn: number;
  readonly at: number;
  readonly call?: { readonly id: string };
  readonly changes?: { readonly index?: readonly string[] };
}

/** Returns the digests of the texts that a document stores under their hash. */
function textsOf(document: StoredDocument): readonly string[] {
  const { type, body, whole, text } = document;
  if (type === 'step') return [messagePartHash(document) ?? []].flat();
  if (type === 'chunks') return chunksOf(document);
  if (type === 'record') return parseJson(String(text), recordTexts)?.texts ?? [];
  if (body !== undefined || !isHead(document)) return [];
  const content = document.content_hash === null ? undefined : contentPartHash(document);
  return [content, keptArgsHash(document.args), whole].flatMap((one) => (typeof one === 'string' ? [one] : []));
}

const recordTexts = z.looseObject({ texts: z.array(z.string()).optional() });

/** Returns whether any string in a value contains one of the given forms of a text. */
export function holdsText(value: unknown, forms: readonly string[]): boolean {
  if (typeof value === 'string') return forms.some((form) => value.includes(form));
  if (Array.isArray(value)) return value.some((one) => holdsText(one, forms));
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([key, one]) => holdsText(key, forms) || holdsText(one, forms));
}

/**
 * Lists all documents that were ever committed to the database and not evicted, with the digests
 * that they name. Stores no texts, so that a million documents fit in memory.
 */
export class Inventory {
  readonly documents = new Map<string, KnownDocument>();
  readonly sessions = new Map<SessionId, KnownSession>();
  readonly #digests = new Map<string, number>();
  readonly #named: string[] = [];
  readonly #callers = new Map<string, SessionId>();
  /**
   * The digests of staged texts of imports. Staged texts are packed, so no search finds another
   * text in them.
   */
  readonly staged = new Set<number>();
  /** Sessions whose import is not finished. */
  readonly arriving = new Set<SessionId>();
  /** The number of the last transaction that was read. */
  txId = -1;

  /** Reads the whole transaction log. Marks the documents that contain one of `texts`. */
  static async read(log: TransactionLog, texts: readonly string[] = []): Promise<Inventory> {
    const inventory = new Inventory();
    const forms = texts.flatMap(formsOf);
    for (;;) {
      const transactions = await log.documentsAfter(inventory.txId, { maxBytes: READ_AT_ONCE });
      if (transactions.length === 0) break;
      for (const { txId, txTime, puts } of transactions) {
        inventory.txId = txId;
        for (const { document } of puts) inventory.#add(document, { forms, at: txTime.getTime() });
      }
    }
    for (const [id, session] of inventory.#callers) {
      const call = inventory.documents.get(id);
      if (call?.type === 'toolcall') call.session = session;
    }
    return inventory;
  }

  /**
   * Returns the number under which a digest is stored here. Undefined if no document names the
   * digest.
   */
  numberOf(digest: string): number | undefined {
    return this.#digests.get(digest);
  }

  /** Returns the documents that a digest identifies: a file, or the parts of a text. */
  identifiedBy(digest: string): readonly KnownDocument[] {
    return [digest, ...partsOf(digest)].flatMap((id) => {
      const found = this.documents.get(id);
      return found === undefined || (id === digest && found.type !== 'file') ? [] : [found];
    });
  }

  /** Returns the digests that some numbers stand for. */
  digestsOf(numbers: ReadonlySet<number>): readonly string[] {
    return [...numbers].flatMap((number) => this.#named[number] ?? []);
  }

  #add(document: StoredDocument, { forms, at }: { readonly forms: readonly string[]; readonly at: number }): void {
    const id = document['xt/id'];
    const session = sessionOf(document);
    const known = this.documents.get(id) ?? {
      id,
      type: String(document.type),
      session,
      names: new Set<number>(),
      texts: new Set<number>(),
      hashes: [],
      holds: false,
      bytes: 0,
    };
    this.documents.set(id, known);
    const written = JSON.stringify(document);
    known.bytes += Buffer.byteLength(written);
    // The text of a chunk is content, so a digest in it names no document.
    if (document.type !== 'chunk') for (const digest of digestsIn(written)) known.names.add(this.#number(digest));
    for (const digest of textsOf(document)) known.texts.add(this.#number(digest));
    const hashes = HASHES.flatMap((name) => (typeof document[name] === 'string' ? [[name, document[name]]] : []));
    if (hashes.length > 0) known.hashes.push(Object.fromEntries(hashes));
    known.holds ||= forms.length > 0 && holdsText(document, forms);
    if (session === undefined) return;
    this.#addToSession(session, document, at);
    if (id !== importId(session)) return;
    if (document.type === ARRIVING) this.arriving.add(session);
    else this.arriving.delete(session);
    for (const digest of fromImportPart(document).staged ?? []) this.staged.add(this.#number(digest));
  }

  #addToSession(id: SessionId, document: StoredDocument, writtenAt: number): void {
    const session: KnownSession = this.sessions.get(id) ?? {
      id,
      lastAt: 0,
      parent: undefined,
      steps: new Map(),
      contexts: [],
    };
    this.sessions.set(id, session);
    if (session.steps.size === 0) session.lastAt = writtenAt;
    if (document.type === 'session') session.parent = (document.parent as unknown as ForkPoint) ?? session.parent;
    else if (document.type === 'assembly') session.contexts.push(Number(document.seq));
    else if (document.type === 'step') {
      const { turn, at, call, changes } = document.body as unknown as StepParts;
      session.lastAt = session.steps.size === 0 ? at : Math.max(session.lastAt, at);
      if (call !== undefined) this.#callers.set(call.id, id);
      const names = new Set([...(changes?.index ?? []), ...(call === undefined ? [] : [call.id])]);
      session.steps.set(Number(document.seq), { turn, names });
    }
  }

  #number(digest: string): number {
    const known = this.#digests.get(digest);
    if (known !== undefined) return known;
    this.#digests.set(digest, this.#named.length);
    return this.#named.push(digest) - 1;
  }
}

import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import pLimit from 'p-limit';
import { hashText } from '../objects/hashes.js';
import type { PartId, Sha256 } from '../objects/ids.js';
import { CHUNK_UNITS, chunkText } from '../objects/large-text.js';
import type { ObjectVersion } from '../objects/seal.js';
import { counted } from '../values/counted.js';
import type { DbSnapshot } from '../xtdb/db-snapshot.js';
import type { StoredDocument } from '../xtdb/documents.js';
import { StoreError } from './errors.js';
import { formerParts, partId } from './part-id.js';

/**
 * Maximum UTF-16 units of a text that is stored in its head or step. Longer texts are chunk parts,
 * shared by all documents with the same text.
 */
export const INLINE_UNITS = 2_048;

/** Returns the id of the part that holds a text of at most one chunk (decision G5). */
export const chunkId = (hash: string): PartId => partId('chunk', hash);
/** Returns the id of the part that lists the chunks of a longer text in order (decision G5). */
export const chunkListId = (hash: string): PartId => partId('chunks', hash);

/**
 * Returns a chunk part. Its id is the SHA-256 of its UTF-8 text, so it never changes and is stored
 * once.
 */
export function chunkPart(text: string, hash: Sha256 = hashText(text)): StoredDocument {
  return { 'xt/id': chunkId(hash), type: 'chunk', text };
}

/**
 * Returns the part that lists the chunks of a text. `units` is the length of the whole text in
 * UTF-16 units.
 */
export function chunkListPart(hash: string, chunks: readonly string[], units: number): StoredDocument {
  return { 'xt/id': chunkListId(hash), type: 'chunks', size: units, body: { chunks } };
}

/** Returns all parts that hold a text under its hash: one chunk, or a list and its chunks. */
export function textParts(text: string, hash: Sha256): readonly StoredDocument[] {
  if (text.length <= CHUNK_UNITS) return [chunkPart(text, hash)];
  const chunks = [...chunkText(text)].map((chunk) => ({ chunk, hash: hashText(chunk) }));
  const list = chunkListPart(
    hash,
    chunks.map((one) => one.hash),
    text.length,
  );
  return [list, ...chunks.map((one) => chunkPart(one.chunk, one.hash))];
}

/**
 * Caches texts by hash, bounded by size. Texts are immutable, so a hit is never stale. Also records
 * the text parts known to be stored, so that they are not sent twice.
 */
export class TextCache {
  readonly #texts: LRUCache<string, string>;
  readonly #stored: LRUCache<string, true>;

  /** `maxUnits` bounds the total length of the texts in UTF-16 units. */
  constructor(maxUnits = 8 * 1_048_576) {
    this.#texts = new LRUCache({ maxSize: maxUnits, sizeCalculation: (text) => text.length + 64 });
    this.#stored = new LRUCache(counted(100_000));
  }

  get(hash: string): string | undefined {
    return this.#texts.get(hash);
  }

  set(hash: string, text: string): void {
    this.#texts.set(hash, text);
  }

  /** Returns whether a part is known to be committed. */
  isStored(partId: string): boolean {
    return this.#stored.has(partId);
  }

  /** Records that a part is committed. */
  markStored(partId: string): void {
    this.#stored.set(partId, true);
  }

  /** Forgets which parts are committed, because an erasure may have removed them. */
  forgetStored(): void {
    this.#stored.clear();
  }
}

/** Number of ids per query. A chunk can have half a megabyte. */
const CHUNKS_AT_ONCE = 16;
/**
 * Maximum concurrent queries. Most are small, and waiting for an answer takes longer than the
 * node's work.
 */
const PAGES_AT_ONCE = 4;

/** The damage of a text stored in parts. */
export type TextDamage = 'missing' | 'damaged';

/** The text of a version, and whether it is complete (decisions B8, C6). */
export interface VersionText {
  readonly text: string;
  /** False if only head and tail were ever stored. */
  readonly whole: boolean;
}

/** The mark of a head that names the whole text of an abridged tool output (decisions B8, C6). */
interface TextMarks {
  readonly whole?: Sha256;
}

/** Returns the hashes of the chunks in a list. */
export function chunksOf(list: StoredDocument): readonly string[] {
  return (list.body as unknown as { readonly chunks: readonly string[] }).chunks;
}

/**
 * Returns the hash of the whole text of a version whose `content` holds only head and tail.
 * Undefined if the content is complete.
 */
function wholeHash({ content_hash, file_hash }: ObjectVersion, { whole }: TextMarks): Sha256 | undefined {
  return whole ?? (file_hash !== null && file_hash !== content_hash ? file_hash : undefined);
}

/**
 * Reads texts by hash at one basis, from a cache or from their parts (decision G5).
 *
 * @throws {StoreError} `missing-part` if a listed chunk is absent; `corrupt-part` if the text of a
 *   chunk does not match its name
 */
export class TextReader {
  readonly #db: DbSnapshot;
  readonly #cache: TextCache;
  /** Hashes of texts that were read from the database at this basis and match their hashes. */
  readonly #whole = new Set<Sha256>();

  constructor(db: DbSnapshot, cache: TextCache) {
    this.#db = db;
    this.#cache = cache;
  }

  /** Returns the whole texts under some hashes. Hashes without parts are absent. */
  async many(hashes: readonly Sha256[]): Promise<ReadonlyMap<Sha256, string>> {
    const texts = new Map<Sha256, string>();
    for (const hash of hashes) {
      const cached = this.#cache.get(hash);
      if (cached !== undefined) texts.set(hash, cached);
    }
    const wanted = [...new Set(hashes)].filter((hash) => !texts.has(hash));
    if (wanted.length === 0) return texts;
    for (const [hash, part] of await this.#parts(wanted)) {
      const text = part.type === 'chunk' ? checkedText(part, hash) : await this.#listed(part, hash);
      texts.set(hash, text);
      this.#cache.set(hash, text);
      if (part.type === 'chunk') this.#whole.add(hash);
    }
    return texts;
  }

  /** Returns the whole text of a version. Undefined if it has no text. */
  async ofVersion(version: ObjectVersion, marks: TextMarks): Promise<VersionText | undefined> {
    const { content } = version;
    if (content === null) return undefined;
    const hash = wholeHash(version, marks);
    if (hash === undefined) return { text: content, whole: true };
    const text = (await this.many([hash])).get(hash);
    return text === undefined ? { text: content, whole: false } : { text, whole: true };
  }

  /**
   * Returns the texts whose stored parts do not match their hashes. Checks only texts that this
   * reader read from the database, never those of the shared cache.
   */
  async damaged(hashes: readonly Sha256[]): Promise<ReadonlyMap<Sha256, TextDamage>> {
    const damages = new Map<Sha256, TextDamage>();
    const wanted = [...new Set(hashes)].filter((hash) => !this.#whole.has(hash));
    for (let i = 0; i < wanted.length; i += CHUNKS_AT_ONCE) {
      const page = wanted.slice(i, i + CHUNKS_AT_ONCE);
      const parts = await this.#parts(page);
      for (const hash of page) {
        const part = parts.get(hash);
        const damage = part?.type === 'chunk' ? damageOfChunk(part, hash) : await this.#damageOfList(hash, part);
        if (damage !== undefined) damages.set(hash, damage);
      }
    }
    return damages;
  }

  /** Returns the damage of a long text. Checks each chunk and the joined text. */
  async #damageOfList(hash: Sha256, list: StoredDocument | undefined): Promise<TextDamage | undefined> {
    if (list === undefined) return 'missing';
    const digest = createHash('sha256');
    for (const chunk of chunksOf(list)) {
      const part = (await this.#parts([chunk])).get(chunk);
      if (part === undefined) return 'missing';
      if (damageOfChunk(part, chunk) !== undefined) return 'damaged';
      digest.update(String(part.text));
    }
    return digest.digest('hex') === hash ? undefined : 'damaged';
  }

  /** Returns the text of a list of chunks. */
  async #listed(list: StoredDocument, hash: Sha256): Promise<string> {
    const chunks = chunksOf(list);
    const parts = await this.#parts(chunks);
    const missing = chunks.find((chunk) => parts.get(chunk)?.type !== 'chunk');
    if (missing !== undefined) {
      throw new StoreError(
        'missing-part',
        `${chunkListId(hash)} lists ${chunkId(missing)}, which the database does not hold`,
      );
    }
    return chunks.map((chunk) => checkedText(parts.get(chunk), chunk)).join('');
  }

  /**
   * Returns the chunk or list of chunks under each hash, from any format version. Hashes without
   * parts are absent.
   */
  async #parts<Hash extends string>(hashes: readonly Hash[]): Promise<ReadonlyMap<Hash, StoredDocument>> {
    const found = new Map<Hash, StoredDocument>();
    const pages = Array.from({ length: Math.ceil(hashes.length / CHUNKS_AT_ONCE) }, (_, i) =>
      hashes.slice(i * CHUNKS_AT_ONCE, (i + 1) * CHUNKS_AT_ONCE),
    );
    await pLimit(PAGES_AT_ONCE).map(pages, async (page) => {
      const chunks = await this.#db.entities(page.map(chunkId));
      const others = page.filter((hash) => !chunks.has(chunkId(hash)));
      // A long text has a list instead of one chunk. A text from an earlier version may have its
      // former id.
      const ids = others.flatMap((hash) => [chunkListId(hash), chunkId(hash)]);
      const [lists, former] =
        ids.length === 0
          ? []
          : await Promise.all([this.#db.entities(others.map(chunkListId)), formerParts(this.#db, ids)]);
      for (const hash of page) {
        const [chunk, list] = [chunkId(hash), chunkListId(hash)];
        const part = chunks.get(chunk) ?? lists?.get(list) ?? former?.get(chunk) ?? former?.get(list);
        if (part !== undefined) found.set(hash, part);
      }
    });
    return found;
  }
}

/**
 * Returns the text of a chunk after checking its hash. Unchecked text is neither returned nor
 * cached.
 */
function checkedText(part: StoredDocument | undefined, hash: string): string {
  if (part === undefined || damageOfChunk(part, hash) !== undefined)
    throw new StoreError('corrupt-part', `the text of ${chunkId(hash)} does not match its name`);
  return String(part.text);
}

function damageOfChunk({ text }: StoredDocument, hash: string): TextDamage | undefined {
  return hashText(String(text)) === hash ? undefined : 'damaged';
}

import { createHash } from 'node:crypto';
import { hashText } from '../objects/hashes.js';
import type { Sha256 } from '../objects/ids.js';
import type { DbSnapshot } from '../xtdb/db-snapshot.js';
import type { StoredDocument } from '../xtdb/documents.js';
import { StoreError } from './errors.js';
import type { TextCache } from './text-cache.js';
import { chunkId, chunkListId } from './text-parts.js';

/** Ids a query: chunks can be half a megabyte each. */
const CHUNKS_AT_ONCE = 16;

/** What is wrong with a text that lies in parts. */
export type TextDamage = 'missing' | 'damaged';

const damageOfChunk = ({ text }: StoredDocument, hash: string): TextDamage | undefined =>
  hashText(String(text)) === hash ? undefined : 'damaged';

/** What is wrong with a long text: it is put together from its chunks, each checked. */
async function damageOfList(db: DbSnapshot, hash: Sha256, list: StoredDocument | undefined): Promise<TextDamage | undefined> {
  if (list === undefined) return 'missing';
  const digest = createHash('sha256');
  for (const chunk of chunksOf(list)) {
    const part = await db.entity(chunkId(chunk));
    if (part === undefined) return 'missing';
    if (hashText(String(part.text)) !== chunk) return 'damaged';
    digest.update(String(part.text));
  }
  return digest.digest('hex') === hash ? undefined : 'damaged';
}

/** Which of the texts under some hashes the database does not hold as they are called; read from it, never from a cache. */
export async function damagedTexts(db: DbSnapshot, hashes: readonly Sha256[]): Promise<ReadonlyMap<Sha256, TextDamage>> {
  const damages = new Map<Sha256, TextDamage>();
  const wanted = [...new Set(hashes)];
  for (let i = 0; i < wanted.length; i += CHUNKS_AT_ONCE) {
    const page = wanted.slice(i, i + CHUNKS_AT_ONCE);
    const chunks = await db.entities(page.map(chunkId));
    const long = page.filter((hash) => !chunks.has(chunkId(hash)));
    const lists = await db.entities(long.map(chunkListId));
    for (const hash of page) {
      const chunk = chunks.get(chunkId(hash));
      const damage = chunk === undefined ? await damageOfList(db, hash, lists.get(chunkListId(hash))) : damageOfChunk(chunk, hash);
      if (damage !== undefined) damages.set(hash, damage);
    }
  }
  return damages;
}

async function readChunks(db: DbSnapshot, hashes: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>();
  for (let i = 0; i < hashes.length; i += CHUNKS_AT_ONCE) {
    const ids = hashes.slice(i, i + CHUNKS_AT_ONCE).map(chunkId);
    for (const [id, part] of await db.entities(ids)) {
      const hash = id.slice('chunk:'.length);
      const text = String(part.text);
      // Content has to be what it is called by: nothing is shown, and nothing is kept in the cache, on trust.
      if (hashText(text) !== hash) throw new StoreError('corrupt-part', `${id} does not hold the text that it is named after`);
      texts.set(hash, text);
    }
  }
  return texts;
}

function chunksOf(list: StoredDocument): readonly string[] {
  return (list.body as unknown as { readonly chunks: readonly string[] }).chunks;
}

/**
 * The whole texts under the given hashes, from the cache or from their parts in the database. Hashes without parts are absent from the answer.
 * Throws StoreError `missing-part` when a list names a chunk that is not there, `corrupt-part` for a chunk that holds another text.
 */
export async function readTexts(db: DbSnapshot, hashes: readonly Sha256[], cache: TextCache): Promise<ReadonlyMap<Sha256, string>> {
  const texts = new Map<Sha256, string>();
  for (const hash of hashes) {
    const cached = cache.get(hash);
    if (cached !== undefined) texts.set(hash, cached);
  }
  const wanted = [...new Set(hashes)].filter((hash) => !texts.has(hash));
  if (wanted.length === 0) return texts;
  for (const [hash, text] of await readChunks(db, wanted)) texts.set(hash as Sha256, text);
  const long = wanted.filter((hash) => !texts.has(hash));
  if (long.length > 0) {
    for (const [id, list] of await db.entities(long.map(chunkListId))) {
      const chunks = chunksOf(list);
      const parts = await readChunks(db, chunks);
      const missing = chunks.find((chunk) => !parts.has(chunk));
      if (missing !== undefined) throw new StoreError('missing-part', `${id} lists chunk:${missing}, which the database does not hold`);
      texts.set(id.slice('chunks:'.length) as Sha256, chunks.map((chunk) => parts.get(chunk)).join(''));
    }
  }
  for (const hash of wanted) {
    const text = texts.get(hash);
    if (text !== undefined) cache.set(hash, text);
  }
  return texts;
}

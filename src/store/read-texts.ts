import { hashText } from '../objects/hashes.js';
import type { Sha256 } from '../objects/ids.js';
import type { DbSnapshot } from '../xtdb/db-snapshot.js';
import type { StoredDocument } from '../xtdb/documents.js';
import { StoreError } from './errors.js';
import type { TextCache } from './text-cache.js';
import { chunkId, chunkListId } from './text-parts.js';

/** Ids a query: chunks can be half a megabyte each. */
const CHUNKS_AT_ONCE = 16;

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

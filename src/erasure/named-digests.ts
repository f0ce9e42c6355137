import { formerId } from '../store/part-id.js';
import { chunkId, chunkListId } from '../store/texts.js';

const DIGEST = /(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])/g;

/** Returns the digests in a text, in order. */
export const digestsIn = (text: string): readonly string[] => [...text.matchAll(DIGEST)].map(([digest]) => digest);

/**
 * Returns the ids that the parts of a text with this digest may have. Ids of data format 1 come
 * last.
 */
export function partsOf(digest: string): readonly string[] {
  const ids = [chunkId(digest), chunkListId(digest)];
  return [...ids, ...ids.map(formerId)];
}

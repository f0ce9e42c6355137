import type { ShownAhead } from '../objects/assembly-proof.js';
import { fileStub } from '../objects/file.js';
import { type FilesystemSource, parseSource } from '../objects/source.js';
import { StoreError } from './errors.js';
import { toStored } from './head.js';
import type { Head, StoreSnapshot } from './store-snapshot.js';

/**
 * The version of an object that was shown, by its hash: the one at a snapshot, or any before it. A stub that turned out to be known already was never
 * written; it follows from the object's source. Throws StoreError `missing-part` where there is none.
 */
export async function findVersion(snapshot: StoreSnapshot, { id, object_hash, gone }: ShownAhead): Promise<Head> {
  const isIt = ({ document, marks }: Pick<Head, 'document' | 'marks'>): boolean =>
    document.object_hash === object_hash && marks.gone === gone;
  const now = (await snapshot.heads([id])).get(id);
  if (now !== undefined && isIt(now)) return now;
  const all = await snapshot.historyOfHeads(id);
  const found = all
    .flatMap(({ document, marks, validTime }) => (document === undefined ? [] : [{ document, marks, validTime }]))
    .findLast(isIt);
  if (found !== undefined) return found;
  if (now?.document.type === 'file' && gone === undefined) {
    const stub = fileStub(parseSource(now.document.source) as FilesystemSource);
    if (stub.object_hash === object_hash) return { document: toStored(stub).head, marks: {}, validTime: now.validTime };
  }
  throw new StoreError('missing-part', `the version ${object_hash} of ${JSON.stringify(id)}, which was shown, is not in the database`);
}

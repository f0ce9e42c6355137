import type { FoundVersion, HistoryHead } from '../../src/store/snapshot-rows.js';
import type { StoreSnapshot } from '../../src/store/store-snapshot.js';

/**
 * One version of an object with both its times. `version` is undefined for a part and for an entity
 * that was deleted from the database.
 */
export interface HistoryVersion extends Pick<HistoryHead, 'marks' | 'validTime' | 'txTime' | 'txId'> {
  readonly version: FoundVersion['version'] | undefined;
}

/**
 * Returns every version of an object up to a snapshot, oldest first. Reads each as of its own two
 * times, like a reviewer.
 */
export async function historyOf(snapshot: StoreSnapshot, id: string): Promise<readonly HistoryVersion[]> {
  const versions: HistoryVersion[] = [];
  for (const { number: _number, document, ...head } of await snapshot.historyOfHeads(id)) {
    const found = document === undefined ? undefined : await snapshot.earlier(head)?.get(id);
    if (document !== undefined && found?.version.object_hash === undefined)
      throw new Error(`${id} cannot be read as of ${head.txId}`);
    versions.push({ ...head, version: found?.version });
  }
  return versions;
}

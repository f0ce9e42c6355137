import { erasureSign } from '../../node/erasure-sign.js';
import { sessionTableFile } from '../../node/session-table-file.js';
import { ObjectStore } from '../../store/object-store.js';
import { TextCache } from '../../store/texts.js';
import type { XtdbClient } from '../../xtdb/xtdb-client.js';
import type { ContextClientOptions } from './client-options.js';

/** Returns the store of a client. With a data folder, it keeps the list of sessions there. */
export function clientStore(
  xtdb: XtdbClient,
  { dataDir, keptUnits }: Pick<ContextClientOptions, 'dataDir' | 'keptUnits'>,
): ObjectStore {
  return new ObjectStore(xtdb, {
    cache: new TextCache(keptUnits),
    erasedMeanwhile: erasureSign(dataDir),
    sessionFile: sessionTableFile(dataDir),
  });
}

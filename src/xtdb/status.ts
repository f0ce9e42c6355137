import { EdnMap, type EdnValue } from '../edn/values.js';
import { XtdbError } from './errors.js';

/** What a node says of itself. */
export interface NodeStatus {
  /** XTDB's version, such as `1.24.3`; `undefined` if the node does not say. */
  readonly version: string | undefined;
  readonly indexVersion: number | undefined;
  /** True if the node has stopped indexing. It then still answers 200, with stale data. */
  readonly ingesterFailed: boolean;
  readonly kvStore: string | undefined;
  readonly estimatedKeys: number | undefined;
  /** Bytes on disk of one of the node's stores; `undefined` in memory. */
  readonly sizeBytes: number | undefined;
}

/** The answer of `/status`. @throws {XtdbError} `bad-response` */
export const readStatus = (value: EdnValue | undefined): NodeStatus => {
  if (!(value instanceof EdnMap)) throw new XtdbError('bad-response', 'GET /_xtdb/status: the answer is no map.');
  const text = (name: string): string | undefined => aString(value.get(name));
  const number = (name: string): number | undefined => aNumber(value.get(name));
  return {
    version: text('xtdb.version/version'),
    indexVersion: number('xtdb.index/index-version'),
    ingesterFailed: value.get('ingester-failed?') === true || value.get('xtdb.tx/ingester-failed?') === true,
    kvStore: text('xtdb.kv/kv-store'),
    estimatedKeys: number('xtdb.kv/estimate-num-keys'),
    sizeBytes: number('xtdb.kv/size'),
  };
};

const aString = (value: EdnValue | undefined): string | undefined => (typeof value === 'string' ? value : undefined);
const aNumber = (value: EdnValue | undefined): number | undefined => (typeof value === 'number' ? value : undefined);

import { EdnMap, type EdnValue, Keyword } from '../edn/values.js';
import type { NodeAddress } from './address.js';
import { XtdbError } from './errors.js';

/**
 * Stands for the address of a node if there is no node. Reads find an empty database, and writes
 * fail.
 */
export const NO_NODE = 'no node';

/** Where a node is, a function that finds or starts it, or no node at all. */
export type AskedAddress = NodeAddress | (() => Promise<NodeAddress>) | typeof NO_NODE;

/** The parts of a request that decide the answer. */
interface Asked {
  readonly path: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly writes?: boolean;
}

/**
 * Returns the answer of a node without transactions.
 * @throws {XtdbError} `forbidden` – the request writes
 */
export function answerOfNone({ path, params = {}, writes }: Asked): EdnValue | undefined {
  if (writes === true)
    throw new XtdbError('forbidden', `${path}: a client without a database stores nothing. Give it an address.`);
  const { 'valid-time': asked, history } = params;
  if (path === '/db')
    return new EdnMap([new Keyword('xtdb.api/valid-time'), asked instanceof Date ? asked : new Date()]);
  return path === '/query' || history === true ? [] : undefined;
}

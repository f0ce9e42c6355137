import { EdnMap, type EdnValue } from '../edn/values.js';
import { defined } from '../values/defined.js';
import { XtdbError } from './errors.js';
import type { HttpRequest, XtdbHttp } from './http.js';

/** What a node says of itself. */
export interface NodeStatus {
  /** XTDB's version, such as `1.24.3`; `undefined` if the node does not say. */
  readonly version: string | undefined;
  /** True if the node has stopped indexing. It then still answers 200, with stale data. */
  readonly ingesterFailed: boolean;
  /** Why it has stopped, as one line without any document's content; absent while it indexes, and where it does not say. */
  readonly ingesterError?: string;
  /** How many steps of a log that it shares with other nodes its index is behind; absent where it does not say. */
  readonly behind?: number;
  /** The name of that log and the format of what is in it; absent where it does not say. */
  readonly log?: { readonly name: string; readonly format: number | undefined };
}

/** The answer of `/status`. @throws {XtdbError} `bad-response` */
export function readStatus(value: EdnValue | undefined): NodeStatus {
  if (!(value instanceof EdnMap)) throw new XtdbError('bad-response', 'GET /_xtdb/status: the answer is no map.');
  const version = value.get('xtdb.version/version');
  const ingesterError = value.get('front/ingester-error');
  return {
    version: typeof version === 'string' ? version : undefined,
    ingesterFailed: value.get('ingester-failed?') === true || value.get('xtdb.tx/ingester-failed?') === true,
    ...defined({
      behind: behindOf(value.get('front/log')),
      log: logOf(value.get('front/log')),
      ingesterError: typeof ingesterError === 'string' ? ingesterError : undefined,
    }),
  };
}

function behindOf(log: EdnValue | undefined): number | undefined {
  const [submitted, completed] = log instanceof EdnMap ? [log.get('submitted'), log.get('completed')] : [];
  return typeof submitted === 'number' && typeof completed === 'number' ? Math.max(0, submitted - completed) : undefined;
}

function logOf(log: EdnValue | undefined): NodeStatus['log'] {
  const [name, format] = log instanceof EdnMap ? [log.get('name'), log.get('format')] : [];
  return typeof name === 'string' ? { name, format: typeof format === 'number' ? format : undefined } : undefined;
}

/** Limits of one call. */
export interface RequestOptions {
  /** Milliseconds; where the node is still being started, from the moment it is there. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** How long one held-back request may keep its connection; longer waits are made of several. */
const MAX_HELD_MS = 10_000;
/** What the node may take beyond the wait that it was asked for. */
const MARGIN_MS = 5_000;

/**
 * Asks the node something that it answers once it has indexed transaction `txId`, again and again until `timeoutMs` have passed.
 *
 * @throws {XtdbError} `timeout` if the transaction was not indexed within the limit, `ingester-failed` if it never will be
 */
export const askOnceIndexed = async (
  http: XtdbHttp,
  request: Omit<HttpRequest, 'timeoutMs' | 'waits'>,
  { txId, timeoutMs }: { readonly txId: number; readonly timeoutMs: number },
): Promise<EdnValue | undefined> => {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const left = deadline - performance.now();
    const held = Math.max(1, Math.min(MAX_HELD_MS, Math.ceil(left)));
    try {
      return await http.send({
        ...request,
        params: { ...request.params, 'await-tx-id': txId, 'await-tx-timeout': held },
        timeoutMs: held + MARGIN_MS,
        waits: true,
      });
    } catch (error) {
      if (!(error instanceof XtdbError)) throw error;
      const status = error.code === 'server-error' ? await statusOf(http, request.signal) : undefined;
      if (status?.ingesterFailed === true) {
        // Another node may live, and has the same log.
        if (performance.now() < deadline && http.leave()) continue;
        throw new XtdbError(
          'ingester-failed',
          `Transaction ${txId} will not be indexed: the node has stopped indexing${status.ingesterError === undefined ? '' : ` (${status.ingesterError})`}. Restart it; its log says why.`,
          {
            cause: error,
          },
        );
      }
      if (error.code !== 'timeout') throw error;
      if (performance.now() >= deadline) {
        throw new XtdbError('timeout', `Transaction ${txId} was not indexed within ${timeoutMs} ms.`, { cause: error });
      }
    }
  }
};

async function statusOf(http: XtdbHttp, signal: AbortSignal | undefined): Promise<NodeStatus> {
  return readStatus(await http.send({ method: 'GET', path: '/status', accept: 'application/edn', timeoutMs: MARGIN_MS, signal }));
}

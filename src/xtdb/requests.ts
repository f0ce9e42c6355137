import { EdnMap, type EdnValue } from '../edn/values.js';
import { defined } from '../values/defined.js';
import { XtdbError } from './errors.js';
import type { HttpRequest, XtdbHttp } from './http.js';

/** The status that a node reports. */
export interface NodeStatus {
  /** XTDB's version, such as `1.24.3`; `undefined` if the node does not report it. */
  readonly version: string | undefined;
  /** True if the node has stopped indexing. It then still answers 200, with stale data. */
  readonly ingesterFailed: boolean;
  /**
   * The reason why indexing stopped, as one line without document content. Absent if the node still
   * indexes or gives no reason.
   */
  readonly ingesterError?: string;
  /** Steps that its index is behind a log shared with other nodes; absent if not reported. */
  readonly behind?: number;
  /** The name of that log and the format of its content; absent if not reported. */
  readonly log?: { readonly name: string; readonly format: number | undefined };
}

/**
 * Parses the answer of `/status`.
 * @throws {XtdbError} `bad-response`
 */
export function readStatus(value: EdnValue | undefined): NodeStatus {
  if (!(value instanceof EdnMap)) throw new XtdbError('bad-response', 'GET /_xtdb/status: the answer is not a map.');
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
  return typeof submitted === 'number' && typeof completed === 'number'
    ? Math.max(0, submitted - completed)
    : undefined;
}

function logOf(log: EdnValue | undefined): NodeStatus['log'] {
  const [name, format] = log instanceof EdnMap ? [log.get('name'), log.get('format')] : [];
  return typeof name === 'string' ? { name, format: typeof format === 'number' ? format : undefined } : undefined;
}

/** Limits of one call. */
export interface RequestOptions {
  /** Milliseconds. If the node is still starting, the limit counts from its readiness. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** Maximum milliseconds that the node holds back a request. Longer waits use several. */
const MAX_HELD_MS = 10_000;
/** Extra time for the node beyond the requested wait. */
const MARGIN_MS = 5_000;

/**
 * Sends a request. If `awaited` names a transaction, the node answers only once it has indexed that
 * transaction. Default: the newest transaction seen, if another node may give the answer.
 *
 * @throws {XtdbError}
 */
export const askIndexed = (
  http: XtdbHttp,
  request: Omit<HttpRequest, 'waits'>,
  awaited = http.awaited,
): Promise<EdnValue | undefined> =>
  awaited === undefined
    ? http.send(request)
    : askOnceIndexed(http, request, { txId: awaited, timeoutMs: request.timeoutMs });

/**
 * Repeats a request that the node answers once it has indexed transaction `txId`, until `timeoutMs`
 * have passed.
 *
 * @throws {XtdbError} `timeout` if the transaction was not indexed within the limit,
 *   `ingester-failed` if it never will be
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
        // Another node with the same log may be healthy.
        if (performance.now() < deadline && http.leave()) continue;
        throw new XtdbError(
          'ingester-failed',
          `Transaction ${txId} will not be indexed: the node has stopped indexing` +
            `${status.ingesterError === undefined ? '' : ` (${status.ingesterError})`}. Restart it; its log says why.`,
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
  return readStatus(
    await http.send({ method: 'GET', path: '/status', accept: 'application/edn', timeoutMs: MARGIN_MS, signal }),
  );
}

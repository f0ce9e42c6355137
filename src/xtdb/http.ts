import { isUtf8 } from 'node:buffer';
import { setTimeout } from 'node:timers/promises';
import type { Pool } from 'undici';
import type { EdnValue } from '../edn/values.js';
import { NO_TELEMETRY, type Telemetry } from '../telemetry/telemetry.js';
import { CodedError } from '../values/coded-error.js';
import { unlessAborted } from '../values/promises.js';
import { codeOf } from '../values/thrown.js';
import { describeAddress, isListed, mayMove, type NodeAddress, prefixOf } from './address.js';
import { interpretAnswer, type MediaType, refusalIn } from './answers.js';
import { XtdbError } from './errors.js';
import { type AskedAddress, answerOfNone, NO_NODE } from './no-node.js';
import { authorisation, openPool } from './node-pool.js';

/** A parameter of a request's URL; `undefined` omits it. Instants travel with milliseconds. */
export type Param = string | number | boolean | Date | undefined;

/** One request to the node. */
export interface HttpRequest {
  readonly method: 'GET' | 'POST';
  /** The endpoint below `/_xtdb`, such as `/entity`. */
  readonly path: string;
  readonly params?: Readonly<Record<string, Param>>;
  readonly body?: { readonly type: MediaType; readonly text: string };
  readonly accept: MediaType;
  /** Milliseconds from the moment the address is known until the answer is complete. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /**
   * True for a submission. Its failures say whether the node may have accepted it, and it is never
   * sent twice.
   */
  readonly writes?: boolean;
  /**
   * True if the node answers only after a wait, such as for a transaction. Such requests have
   * separate connections, so that they never delay others.
   */
  readonly waits?: boolean;
  /**
   * True if other programs' values may be in the answer. In transit, each value that cannot be read
   * becomes `UNREADABLE`. Otherwise such a value is an error.
   */
  readonly isForeign?: boolean;
  /** A limit for this answer in bytes, below the general one. */
  readonly maxAnswerBytes?: number;
  /** Returns the usable part of an answer over its limit. If absent, such an answer is an error. */
  readonly cut?: (bytes: Buffer) => Buffer;
}

/** Options of the connection to a node. */
export interface HttpOptions {
  readonly connections: number;
  readonly maxRequestBytes: number;
  readonly maxAnswerBytes: number;
  /** True for a health check: its first answer counts, even if the node is busy. */
  readonly isProbe?: boolean;
  /** Telemetry sink for requests; none if absent. */
  readonly telemetry?: Telemetry;
}

type Ending = 'timeout' | 'aborted' | 'closed';

/** A request with its name for messages and its encoded body. */
interface Outgoing {
  readonly request: HttpRequest;
  readonly what: string;
  readonly body: Buffer | undefined;
}

/** Whether a request was passed to a connection. */
type Progress = { sent: boolean };

interface Connection {
  readonly address: NodeAddress;
  readonly work: Pool;
  readonly wait: Pool;
}

/** Codes of failures to connect. The request was not sent. */
const NOT_SENT: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOENT',
  'EACCES',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);
/** Codes of failures in the middle of an answer. */
const CUT_OFF: ReadonlySet<string> = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);
const MAX_WAIT_CONNECTIONS = 4;
const BUSY_PAUSE_MS = 20;
const MAX_BUSY_PAUSE_MS = 320;

/**
 * The HTTP client of a node: sends a request, waits up to its limit, and returns a value or throws
 * an XtdbError.
 *
 * It owns its connections. `close()` ends them and every pending request. A read is sent a second
 * time if its connection was dead, and again within its limit while the node is busy.
 */
export class XtdbHttp {
  readonly #address: AskedAddress;
  readonly #options: HttpOptions;
  readonly #running = new Set<(ending: Ending) => void>();
  #connection: Promise<Connection> | undefined;
  #opened: Connection | undefined;
  readonly #retired: Promise<void>[] = [];
  #closing: Promise<void> | undefined;
  #seen: number | undefined;

  constructor(address: AskedAddress, options: HttpOptions) {
    this.#address = address;
    this.#options = options;
  }

  /** Records a transaction that an answer or a receipt named. */
  saw(txId: number | undefined): void {
    if (txId !== undefined) this.#seen = Math.max(this.#seen ?? txId, txId);
  }

  /** Whether another node may give the next answer. */
  get mayMove(): boolean {
    return mayMove(this.#opened?.address);
  }

  /**
   * The newest transaction seen. Undefined if only the same node can give the next answer, because
   * it has indexed that transaction.
   */
  get awaited(): number | undefined {
    return this.mayMove ? this.#seen : undefined;
  }

  /** Switches to another node of the list for the next requests. Returns false if there is none. */
  leave(): boolean {
    if (!isListed(this.#opened?.address)) return false;
    this.#connection = undefined;
    return true;
  }

  /**
   * Sends one request. Returns `undefined` if the node does not know the requested item.
   *
   * @throws {XtdbError}
   */
  send(request: HttpRequest): Promise<EdnValue | undefined> {
    const { telemetry = NO_TELEMETRY } = this.#options;
    const facts = { 'db.system.name': 'xtdb', 'db.operation.name': request.path.slice(1) } as const;
    return telemetry.observe({ activity: 'query', facts }, () => this.#send(request));
  }

  async #send(request: HttpRequest): Promise<EdnValue | undefined> {
    if (this.#address === NO_NODE) return answerOfNone(request);
    const what = `${request.method} /_xtdb${request.path}`;
    const body = request.body === undefined ? undefined : Buffer.from(request.body.text, 'utf8');
    if (body !== undefined && body.length > this.#options.maxRequestBytes) {
      throw new XtdbError(
        'too-large',
        `${what}: a body of ${body.length} bytes is over the limit of ${this.#options.maxRequestBytes}.`,
      );
    }
    const outgoing: Outgoing = { request, what, body };
    const token = this.#opened?.address.token;
    try {
      return await this.#repeat(outgoing);
    } catch (error) {
      if (!(error instanceof XtdbError) || error.code !== 'unauthorised') throw error;
      // The token may have expired. The node did nothing, so the request is retried with the new
      // token.
      this.#connection = undefined;
      const renewed = await this.#connect().catch(() => undefined);
      if (renewed === undefined || renewed.address.token === token) throw error;
      return this.#repeat(outgoing);
    }
  }

  async #repeat(outgoing: Outgoing): Promise<EdnValue | undefined> {
    const { request } = outgoing;
    if (request.writes === true) return this.#attempt(outgoing, { sent: false });
    const deadline = performance.now() + request.timeoutMs;
    for (let attempt = 0; ; attempt += 1) {
      const progress: Progress = { sent: false };
      try {
        return await this.#attempt(outgoing, progress);
      } catch (error) {
        if (!(error instanceof XtdbError)) throw error;
        // Includes a break in the middle of the answer, as when the node was killed.
        const hasBroken = (error.code === 'unreachable' && error.status === undefined) || error.code === 'cut-off';
        const deadConnection = hasBroken && progress.sent && attempt === 0;
        const busy = error.code === 'busy' && performance.now() < deadline && this.#options.isProbe !== true;
        if (!deadConnection && !busy) throw error;
        // The node may be building its index while another node of the list is ready.
        if (busy) this.leave();
        if (busy) await this.#pause(Math.min(BUSY_PAUSE_MS * 2 ** attempt, MAX_BUSY_PAUSE_MS), request.signal);
      }
    }
  }

  /**
   * Waits briefly so that other processes' queries can end. The node does not announce free
   * capacity.
   */
  async #pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
    const controller = new AbortController();
    const end = (): void => controller.abort();
    this.#running.add(end);
    try {
      await setTimeout(milliseconds, undefined, {
        signal: signal === undefined ? controller.signal : AbortSignal.any([controller.signal, signal]),
      });
    } catch {
      // If the client or the caller ended the pause, the next attempt detects it.
    } finally {
      this.#running.delete(end);
    }
  }

  /** Ends every connection and request. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#shutDown();
    return this.#closing;
  }

  async #shutDown(): Promise<void> {
    for (const end of this.#running) end('closed');
    const opened = this.#opened;
    this.#opened = undefined;
    if (opened !== undefined) await Promise.all([opened.work.destroy(), opened.wait.destroy()]);
    await Promise.all(this.#retired);
  }

  async #attempt(outgoing: Outgoing, progress: Progress): Promise<EdnValue | undefined> {
    const { request, what } = outgoing;
    if (this.#closing !== undefined) throw new XtdbError('closed', `${what}: the client is closed.`);
    if (request.signal?.aborted === true)
      throw new XtdbError('aborted', `${what}: aborted before it was sent.`, { cause: request.signal.reason });
    const controller = new AbortController();
    let ending: Ending | undefined;
    const end = (how: Ending): void => {
      ending ??= how;
      controller.abort();
    };
    const onAbort = (): void => end('aborted');
    let timer: NodeJS.Timeout | undefined;
    this.#running.add(end);
    request.signal?.addEventListener('abort', onAbort, { once: true });
    try {
      const connection = await unlessAborted(this.#connect(), controller.signal);
      timer = globalThis.setTimeout(() => end('timeout'), request.timeoutMs);
      progress.sent = true;
      return await this.#exchange(connection, outgoing, controller.signal);
    } catch (error) {
      const failure = this.#failure(error, ending, outgoing);
      if (failure.code === 'unreachable' || failure.code === 'cut-off') this.#connection = undefined;
      // The node may hang; its health is checked before the next request.
      if (failure.code === 'timeout' && request.waits !== true) this.leave();
      throw request.writes === true && progress.sent && mayHaveBeenTaken(failure)
        ? failure.withUnknownOutcome()
        : failure;
    } finally {
      clearTimeout(timer);
      this.#running.delete(end);
      request.signal?.removeEventListener('abort', onAbort);
    }
  }

  async #exchange(
    connection: Connection,
    { request, what, body }: Outgoing,
    signal: AbortSignal,
  ): Promise<EdnValue | undefined> {
    const { address } = connection;
    const pool = request.waits === true ? connection.wait : connection.work;
    const response = await pool.request({
      method: request.method,
      path: `${prefixOf(address)}/_xtdb${request.path}${queryString(request.params ?? {})}`,
      headers: {
        accept: request.accept,
        te: 'trailers',
        ...(request.body === undefined ? {} : { 'content-type': request.body.type }),
        ...authorisation(address),
      },
      body: body ?? null,
      signal,
    });
    const status = response.statusCode;
    const contentType = String(response.headers['content-type'] ?? '');
    const { maxAnswerBytes } = this.#options;
    let text: string;
    try {
      text = await this.#readBody(response.body, what, {
        most: Math.min(request.maxAnswerBytes ?? maxAnswerBytes, maxAnswerBytes),
        cut: request.cut,
      });
    } catch (cause) {
      if (signal.aborted || cause instanceof XtdbError) throw cause;
      const code = CUT_OFF.has(codeOf(cause) ?? '') ? 'cut-off' : 'bad-response';
      throw new XtdbError(code, `${what}: ${status}, but the answer was cut off.`, { status, cause });
    }
    const refused = refusalIn(response.trailers);
    const answer = refused === undefined ? { status, contentType, text } : { ...refused, contentType };
    return interpretAnswer(answer, what, { isForeign: request.isForeign });
  }

  async #readBody(
    body: AsyncIterable<Buffer>,
    what: string,
    { most, cut }: { readonly most: number; readonly cut: HttpRequest['cut'] },
  ): Promise<string> {
    const pieces: Buffer[] = [];
    let size = 0;
    let isCut = false;
    for await (const piece of body) {
      size += piece.length;
      if (size > most && cut !== undefined) {
        pieces.push(piece);
        isCut = true;
        break;
      }
      if (size > most) {
        throw new XtdbError(
          'too-large',
          `${what}: the answer exceeds the limit of ${most} bytes. Ask for less at once.`,
        );
      }
      pieces.push(piece);
    }
    const whole = pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces, size);
    const bytes = isCut && cut !== undefined ? cut(whole) : whole;
    if (!isUtf8(bytes)) throw new XtdbError('bad-response', `${what}: the answer is not UTF-8.`);
    return bytes.toString('utf8');
  }

  #connect(): Promise<Connection> {
    this.#connection ??= this.#open();
    return this.#connection;
  }

  async #open(): Promise<Connection> {
    const address = typeof this.#address === 'function' ? await this.#address() : (this.#address as NodeAddress);
    const before = this.#opened;
    if (before !== undefined && JSON.stringify(before.address) === JSON.stringify(address)) return before;
    // The pools get no timeout, because every request has one limit for its whole duration.
    const [work, wait] = await Promise.all([
      openPool(address, this.#options.connections),
      openPool(address, MAX_WAIT_CONNECTIONS),
    ]);
    if (this.#closing !== undefined) throw new XtdbError('closed', 'The client is closed.');
    const connection = { address, work, wait };
    this.#opened = connection;
    // Requests to the former node may finish. Does not wait for them.
    if (before !== undefined) this.#retired.push(before.work.close(), before.wait.close());
    return connection;
  }

  #failure(error: unknown, ending: Ending | undefined, { what, request }: Outgoing): XtdbError {
    if (ending === 'timeout')
      return new XtdbError('timeout', `${what}: no complete answer within ${request.timeoutMs} ms.`);
    if (ending === 'aborted')
      return new XtdbError('aborted', `${what}: aborted by the caller.`, { cause: request.signal?.reason });
    if (ending === 'closed') return new XtdbError('closed', `${what}: the client was closed before the answer came.`);
    if (error instanceof XtdbError) return error;
    // The address function itself explains why there is no node and what to do.
    if (error instanceof CodedError) return new XtdbError('unreachable', `${what}: ${error.message}`, { cause: error });
    const code = codeOf(error) ?? '';
    if (
      (error instanceof Error && error.name === 'HTTPParserError') ||
      code.startsWith('UND_ERR_RES') ||
      code === 'UND_ERR_HEADERS_OVERFLOW'
    ) {
      return new XtdbError('bad-response', `${what}: the answer is not valid HTTP.`, { cause: error });
    }
    const at = this.#opened === undefined ? '' : ` at ${describeAddress(this.#opened.address)}`;
    const why = error instanceof Error ? error.message.slice(0, 200) : 'no reason given';
    return new XtdbError('unreachable', `${what}: cannot reach the node${at}: ${why}. Is it running?`, {
      cause: error,
    });
  }
}

/** Returns true unless the node certainly rejected the submission or never received it. */
function mayHaveBeenTaken(failure: XtdbError): boolean {
  if (failure.status !== undefined)
    return failure.status < 300 || failure.status >= 500 ? failure.status !== 503 : false;
  return failure.code !== 'unreachable' || !NOT_SENT.has(codeOf(failure.cause) ?? '');
}

function queryString(params: Readonly<Record<string, Param>>): string {
  const pairs = Object.entries(params).flatMap(([name, value]) =>
    value === undefined
      ? []
      : [[name, value instanceof Date ? value.toISOString() : String(value)].map(encodeURIComponent).join('=')],
  );
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`;
}

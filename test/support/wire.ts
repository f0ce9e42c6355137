import { parseEDNString } from 'edn-data';
import { type Dispatcher, Pool } from 'undici';
import { until } from './until.js';

/** One answer on the wire. */
export interface WireAnswer {
  readonly status: number;
  readonly type: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  readonly trailers: Readonly<Record<string, string | string[] | undefined>>;
}

export interface WireOptions {
  readonly params?: Readonly<Record<string, string | number | boolean>>;
  readonly accept?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface PostOptions extends WireOptions {
  /** The Content-Type: EDN by default, none if null. */
  readonly type?: string | null;
}

/** The address of a front. */
export type WireTarget = { readonly socketPath: string } | { readonly origin: string };

type Body = string | Buffer | NonNullable<Dispatcher.DispatchOptions['body']>;

export const EDN = 'application/edn';
export const TRANSIT = 'application/transit+json';
export const JSON_TYPE = 'application/json';

/** The front's refusal of a query while every slot is taken. It comes with `Retry-After`. */
const SLOTS_TAKEN = 'Too many queries are running; try again.';

/**
 * Reads one EDN form: maps as objects, keywords as their names, tagged values without a JavaScript
 * type as `{ tag, val }`.
 */
export const readEdn = (text: string): unknown =>
  parseEDNString(text, { mapAs: 'object', keywordAs: 'string', setAs: 'array', listAs: 'array' });

export interface WireSettings {
  /** Headers of every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Whether other suites use the same front. If so, a request is sent again after a refusal because
   * all slots are taken.
   */
  readonly shared?: boolean;
}

/** Plain HTTP to a front, without the client's checks. */
export class Wire {
  readonly #pool: Pool;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #shared: boolean;

  constructor(target: WireTarget, { headers = {}, shared = false }: WireSettings = {}) {
    this.#shared = shared;
    const limits = { bodyTimeout: 240_000, headersTimeout: 240_000 };
    this.#pool =
      'origin' in target
        ? new Pool(target.origin, limits)
        : new Pool('http://localhost', { socketPath: target.socketPath, ...limits });
    this.#headers = headers;
  }

  get(path: string, options: WireOptions = {}): Promise<WireAnswer> {
    return this.#send('GET', path, undefined, options);
  }

  post(path: string, body: Body, { type = EDN, ...options }: PostOptions = {}): Promise<WireAnswer> {
    const headers = { ...(type === null ? {} : { 'content-type': type }), ...options.headers };
    return this.#send('POST', path, body, { ...options, headers });
  }

  close(): Promise<void> {
    return this.#pool.destroy();
  }

  async #send(method: 'GET' | 'POST', path: string, body: Body | undefined, options: WireOptions): Promise<WireAnswer> {
    const send = (): Promise<WireAnswer> => this.#sendOnce(method, path, body, options);
    const repeatable = body === undefined || typeof body === 'string' || Buffer.isBuffer(body);
    return this.#shared && repeatable ? until(send, (answer) => !answer.text.includes(SLOTS_TAKEN)) : send();
  }

  async #sendOnce(
    method: 'GET' | 'POST',
    path: string,
    body: Body | undefined,
    options: WireOptions,
  ): Promise<WireAnswer> {
    const query = new URLSearchParams(
      Object.entries(options.params ?? {}).map(([name, value]): [string, string] => [name, String(value)]),
    ).toString();
    const target = path.startsWith('/') ? `/_xtdb${path}` : `/${path}`;
    const response = await this.#pool.request({
      method,
      path: query === '' ? target : `${target}?${query}`,
      headers: {
        ...this.#headers,
        ...(options.accept === undefined ? {} : { accept: options.accept }),
        ...options.headers,
      },
      ...(body === undefined ? {} : { body }),
    });
    const type = response.headers['content-type'];
    // The trailers come behind the body.
    const text = await response.body.text();
    return {
      status: response.statusCode,
      type: typeof type === 'string' ? type.split(';')[0] : undefined,
      headers: response.headers,
      text,
      trailers: response.trailers as WireAnswer['trailers'],
    };
  }
}

/** Submits operations in EDN and waits until they are indexed. Returns the transaction id. */
export async function submitAndWait(wire: Wire, ops: string): Promise<number> {
  const submitted = await wire.post('/submit-tx', `{:tx-ops [${ops}]}`);
  if (submitted.status !== 202) throw new Error(`submit-tx answered ${submitted.status}: ${submitted.text}`);
  const receipt = readEdn(submitted.text) as { readonly 'xtdb.api/tx-id': number };
  const txId = receipt['xtdb.api/tx-id'];
  // A front with a short wait limit may need several requests.
  const deadline = Date.now() + 240_000;
  for (;;) {
    const done = await wire.get('/await-tx', { params: { 'tx-id': txId } });
    if (done.status === 200) return txId;
    if (!done.text.includes('TimeoutException') || Date.now() > deadline)
      throw new Error(`await-tx answered ${done.status}: ${done.text}`);
  }
}

/** Returns the `error-key` of an error map in XTDB's shape. */
export const errorKey = (answer: WireAnswer): unknown =>
  (readEdn(answer.text) as Record<string, unknown>)['xtdb.error/error-key'];

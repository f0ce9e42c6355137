import type { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { AwsV4Signer } from 'aws4fetch';
import { request } from 'undici';
import { defined } from '../values/defined.js';
import { messageOf } from '../values/thrown.js';
import { CheckpointError, type StoreEnvironment } from './checkpoint.js';

/** A request to a bucket. Its signature covers method, key, query, headers and body. */
export interface S3Request {
  readonly method: 'GET' | 'PUT' | 'DELETE';
  /** The object; the bucket itself if absent. */
  readonly key?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: S3Body;
}

/** A request body: its length and hash, which the store checks, and a new stream per attempt. */
export interface S3Body {
  readonly size: number;
  readonly sha256: string;
  open(): Readable | Buffer;
}

/** A store's answer. */
export interface S3Answer {
  readonly status: number;
  header(name: string): string | undefined;
  readonly body: Readable;
  text(): Promise<string>;
}

/** Maximum attempts of a request if the store is busy or the connection breaks. */
export const ATTEMPTS = 4;
const LIMIT_MS = 60_000;
/** SHA-256 of an empty body. */
const EMPTY = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
/**
 * Matches a bucket name with a dot. Such a name goes into the path, because no certificate covers
 * it as a host.
 */
const DOTTED = /\./;

/** Returns every value of an XML element in a store's answer, verbatim. */
export const valuesOf = (text: string, element: string): readonly string[] =>
  [...text.matchAll(new RegExp(`<${element}>([^<]*)</${element}>`, 'g'))].map(([, value = '']) => value);

/**
 * A bucket of an S3-compatible store, configured by the variables of AWS's own tools: endpoint,
 * region, key, secret and token.
 */
export class S3Requests {
  readonly bucket: string;
  readonly #base: string;
  readonly #credentials: {
    readonly accessKeyId: string;
    readonly secretAccessKey: string;
    readonly sessionToken?: string;
  };
  readonly #region: string;

  /** @throws {CheckpointError} io – credentials are missing, or the endpoint is invalid */
  constructor(bucket: string, environment: StoreEnvironment) {
    const said = (...names: readonly string[]): string | undefined =>
      names.map((name) => environment[name]).find((value) => value);
    const [accessKeyId, secretAccessKey] = [said('AWS_ACCESS_KEY_ID'), said('AWS_SECRET_ACCESS_KEY')];
    if (accessKeyId === undefined || secretAccessKey === undefined) {
      throw new CheckpointError(
        'io',
        `s3://${bucket} cannot be used: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not both set. ` +
          'To print them for a profile or role: aws configure export-credentials --format env',
      );
    }
    const endpoint = said('AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL');
    if (endpoint !== undefined && !/^https?:\/\/[^/?#@\s]+\/?$/.test(endpoint))
      throw new CheckpointError(
        'io',
        `s3://${bucket} cannot be used: AWS_ENDPOINT_URL must look like https://HOST:PORT`,
      );
    this.bucket = bucket;
    this.#region = said('AWS_REGION', 'AWS_DEFAULT_REGION') ?? 'us-east-1';
    const host = endpoint?.replace(/\/$/, '') ?? `https://s3.${this.#region}.amazonaws.com`;
    this.#base =
      endpoint !== undefined || DOTTED.test(bucket)
        ? `${host}/${bucket}`
        : `https://${bucket}.s3.${this.#region}.amazonaws.com`;
    this.#credentials = { accessKeyId, secretAccessKey, ...defined({ sessionToken: said('AWS_SESSION_TOKEN') }) };
  }

  /**
   * Sends a request and retries it if the store was busy or did not answer. Returns an answer whose
   * status is one of `expected`.
   * @throws {CheckpointError} io
   */
  async send(asked: S3Request, expected: readonly number[]): Promise<S3Answer> {
    const what = `${asked.method} s3://${this.bucket}/${asked.key ?? ''}`;
    for (let attempt = 1; ; attempt++) {
      const answer = await this.#sendOnce(asked).catch((error: unknown) => {
        if (attempt < ATTEMPTS) return undefined;
        throw new CheckpointError(
          'io',
          `${what} was not answered by ${new URL(this.#base).host}: ${messageOf(error)}`,
          { cause: error },
        );
      });
      if (answer !== undefined && expected.includes(answer.status)) return answer;
      const text = (await answer?.text().catch(() => '')) ?? '';
      if (answer !== undefined && (answer.status < 500 || attempt >= ATTEMPTS)) throw refusal(what, answer, text);
      await pause(100 * 2 ** attempt);
    }
  }

  async #sendOnce({ method, key, query = {}, headers = {}, body }: S3Request): Promise<S3Answer> {
    const path = key === undefined ? '' : `/${key.split('/').map(encodeURIComponent).join('/')}`;
    const search = new URLSearchParams(query).toString();
    const signer = new AwsV4Signer({
      method,
      url: `${this.#base}${path}${search === '' ? '' : `?${search}`}`,
      headers: { ...headers, 'x-amz-content-sha256': body?.sha256 ?? EMPTY },
      ...this.#credentials,
      service: 's3',
      region: this.#region,
    });
    const signed = await signer.sign();
    const answer = await request(signed.url, {
      method,
      headers: {
        ...Object.fromEntries(signed.headers),
        ...(body === undefined ? {} : { 'content-length': String(body.size) }),
      },
      body: body?.open() ?? null,
      headersTimeout: LIMIT_MS,
      bodyTimeout: LIMIT_MS,
    });
    const header = (name: string): string | undefined => [answer.headers[name]].flat()[0];
    const text = (): Promise<string> =>
      answer.body.text().catch((error: unknown) => {
        throw new CheckpointError('io', `an answer of ${signed.url.host} ended early: ${messageOf(error)}`, {
          cause: error,
        });
      });
    return { status: answer.statusCode, header, body: answer.body, text };
  }
}

function refusal(what: string, { status, header }: S3Answer, text: string): CheckpointError {
  const code = valuesOf(text, 'Code')[0] ?? '';
  const region = header('x-amz-bucket-region') ?? valuesOf(text, 'Region')[0];
  const why = [String(status), code, valuesOf(text, 'Message')[0] ?? ''].filter((part) => part !== '').join(' ');
  const next =
    status === 301 || code === 'AuthorizationHeaderMalformed'
      ? ` Set AWS_REGION to the region of the bucket${region === undefined ? '' : `, ${region}`}.`
      : status === 401 || status === 403
        ? ' Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, and their rights in this bucket.'
        : status === 404
          ? ' Create the bucket, or correct its name.'
          : '';
  return new CheckpointError('io', `${what} was answered with ${why}.${next}`);
}

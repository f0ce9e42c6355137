import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import * as z from 'zod';
import { isDeeperThan } from '../values/json-object.js';
import type { Refusal } from './http-contract.js';
import { ApiError, type ProblemPlace } from './problem.js';

const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '[::1]']);

function hostnameOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}

/** Compares two secrets in constant time. */
export function sameSecret(left: string, right: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(left), digest(right));
}

/** Returns the bearer token of a request; undefined for none. */
export function bearerOf({ authorization = '' }: IncomingMessage['headers']): string | undefined {
  return /^Bearer (.+)$/i.exec(authorization)?.[1]?.trim();
}

/** Returns the declared media type of a request's body. */
const mediaOf = ({ headers }: Pick<IncomingMessage, 'headers'>): string =>
  (headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? '';

/**
 * Whether a page of another origin can send this request without a CORS preflight: a POST that is
 * not JSON, even without a body.
 */
const isUnasked = ({
  method,
  headers,
}: Pick<IncomingMessage, 'headers'> & Partial<Pick<IncomingMessage, 'method'>>): boolean =>
  method === 'POST' &&
  headers.origin !== undefined &&
  headers.origin !== `http://${headers.host}` &&
  mediaOf({ headers }) !== 'application/json';

/**
 * Checks a request by its headers (decision H6). The Host must be this machine's loopback and occur
 * once. That stops pages that rebind their own name to 127.0.0.1. If there is an Origin, it must be
 * the loopback, too. If a bearer token is required, it must match. Rejects requests that a page of
 * another server can send without a preflight, unless they only read.
 */
export function refusal(
  {
    headers,
    headersDistinct,
    method,
  }: Pick<IncomingMessage, 'headers'> & Partial<Pick<IncomingMessage, 'headersDistinct' | 'method'>>,
  token: string | undefined,
): Refusal | undefined {
  const host = hostnameOf(`http://${headers.host ?? ''}`);
  const hosts = headersDistinct?.host?.length ?? 1;
  if (host === undefined || hosts > 1 || !LOOPBACK.has(host))
    return { status: 403, message: 'Forbidden: the Host header must name 127.0.0.1 or localhost' };
  const { origin } = headers;
  if (origin !== undefined && !LOOPBACK.has(hostnameOf(origin) ?? ''))
    return { status: 403, message: 'Forbidden: the Origin header must name 127.0.0.1 or localhost' };
  if (isUnasked({ headers, method }))
    return { status: 403, message: 'Forbidden: a page of another origin may post only application/json' };
  if (token === undefined) return undefined;
  const given = bearerOf(headers);
  if (given === undefined || !sameSecret(given, token))
    return { status: 401, message: 'Unauthorized: give the token as "Authorization: Bearer TOKEN"' };
  return undefined;
}

/**
 * Multiple of the limit up to which a too large body is read to its end, so that the sender gets
 * the answer.
 */
const DRAIN_FACTOR = 4;

const tooLarge = (most: number): ApiError =>
  new ApiError('body-too-large', `the body has more than ${most} bytes, which is the limit`);

async function bytesOf(request: IncomingMessage, most: number): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > most * DRAIN_FACTOR) throw tooLarge(most);
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes <= most) pieces.push(piece);
    else if (bytes > most * DRAIN_FACTOR) throw tooLarge(most);
    else pieces.length = 0;
  }
  if (bytes > most) throw tooLarge(most);
  return Buffer.concat(pieces);
}

/** Maximum nesting of a body. The limit protects code that recurses. */
const DEEPEST_BODY = 512;

/**
 * Reads a request's JSON body; an empty body is an empty object. Throws ApiError `not-json` for
 * another content type, `body-too-large` above the limit, and `invalid-request` for invalid JSON or
 * excessive nesting.
 */
export async function jsonBody(request: IncomingMessage, mostBytes: number): Promise<unknown> {
  const bytes = await bytesOf(request, mostBytes);
  if (bytes.length === 0) return {};
  if (mediaOf(request) !== 'application/json') throw new ApiError('not-json', 'send the body as application/json');
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    if (!isDeeperThan(value, DEEPEST_BODY)) return value;
  } catch {
    throw new ApiError('invalid-request', 'the body is not valid JSON');
  }
  throw new ApiError('invalid-request', `the body nests deeper than ${DEEPEST_BODY} levels; send deeper data as text`);
}

/** Maximum number of places in one problem. */
const MOST_PLACES = 20;

const pointer = (path: readonly PropertyKey[]): string =>
  path.map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');

/** Returns a place for each error; each unknown field has its own place. */
function placesOf(issue: z.core.$ZodIssue): readonly ProblemPlace[] {
  if (issue.code !== 'unrecognized_keys') return [{ pointer: pointer(issue.path), detail: issue.message }];
  return issue.keys.map((key) => ({ pointer: pointer([...issue.path, key]), detail: issue.message }));
}

/** Returns a message that lists the known names, if a name is unknown. */
function wording({ code, inst }: z.core.$ZodRawIssue, kind: string): string | undefined {
  if (code !== 'unrecognized_keys') return undefined;
  const known = inst instanceof z.ZodObject ? Object.keys(inst.shape) : [];
  return `unknown ${kind}; known here: ${known.length === 0 ? 'none' : known.join(', ')}`;
}

/**
 * Validates a request's input by a schema. `kind` is the word for a member in messages. Throws
 * ApiError `invalid-request` with a JSON pointer to each error, including unknown fields.
 */
export function readInput<S extends z.ZodType>(schema: S, input: unknown, kind: 'field' | 'parameter'): z.output<S> {
  const parsed = schema.safeParse(input, { error: (issue) => wording(issue, kind) });
  if (parsed.success) return parsed.data;
  const places = parsed.error.issues.flatMap(placesOf).slice(0, MOST_PLACES);
  const whole = kind === 'field' ? 'the body' : 'the parameters';
  const detail = places.map((place) => `${place.pointer === '' ? whole : place.pointer}: ${place.detail}`).join('; ');
  throw new ApiError('invalid-request', detail.slice(0, 1_000), places);
}

/** Validates the query parameters of a URL. Throws as `readInput`, and for a repeated parameter. */
export function readParameters<S extends z.ZodType>(schema: S, query: URLSearchParams): z.output<S> {
  const given = new Map<string, string>();
  for (const [name, value] of query) {
    if (given.has(name)) throw new ApiError('invalid-request', `the parameter ${name.slice(0, 200)} is given twice`);
    given.set(name, value);
  }
  return readInput(schema, Object.fromEntries(given), 'parameter');
}

import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import * as z from 'zod';
import { isDeeperThan } from '../values/json-depth.js';
import { ApiError, type ProblemPlace } from './problem.js';

/** Why a request is refused before anything reads it. */
export interface Refusal {
  readonly status: 401 | 403;
  readonly message: string;
}

const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '[::1]']);

function hostnameOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}

/** Equality that takes the same time wherever the difference is. */
export function sameSecret(left: string, right: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(left), digest(right));
}

/** The bearer token that a request brings; undefined where it brings none. */
export function bearerOf({ authorization = '' }: IncomingMessage['headers']): string | undefined {
  return /^Bearer (.+)$/i.exec(authorization)?.[1]?.trim();
}

/** What the body of a request is said to be. */
const mediaOf = ({ headers }: Pick<IncomingMessage, 'headers'>): string =>
  (headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? '';

/** Whether a page of another origin sends this without its browser asking the server first: a POST that is no JSON, and may have no body at all. */
const isUnasked = ({
  method,
  headers,
}: Pick<IncomingMessage, 'headers'> & Partial<Pick<IncomingMessage, 'method'>>): boolean =>
  method === 'POST' &&
  headers.origin !== undefined &&
  headers.origin !== `http://${headers.host}` &&
  mediaOf({ headers }) !== 'application/json';

/**
 * Judges a request by its headers: the Host must be this machine's loopback (a page that rebinds its own name to 127.0.0.1 is refused) and the only one, an
 * Origin likewise, and the bearer token must be right where one is asked for (decision H6). What another server's page on this machine can send unasked changes nothing.
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
    return { status: 403, message: 'Forbidden: this Origin is not allowed' };
  if (isUnasked({ headers, method }))
    return { status: 403, message: 'Forbidden: a page of another origin may post application/json alone' };
  if (token === undefined) return undefined;
  const given = bearerOf(headers);
  if (given === undefined || !sameSecret(given, token))
    return { status: 401, message: 'Unauthorized: give the token as "Authorization: Bearer TOKEN"' };
  return undefined;
}

/** A body over the limit is read to its end, up to this many times the limit, so that its sender sees the answer. */
const DRAIN_FACTOR = 4;

const tooLarge = (most: number): ApiError =>
  new ApiError('body-too-large', `the body has more than ${most} bytes, which is the most that is taken`);

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

/** The deepest nesting of a body: whatever walks it may recurse. */
const DEEPEST_BODY = 512;

/**
 * Reads a request's JSON body. Throws ApiError `not-json` for another content type, `body-too-large` above the limit, `invalid-request` for what is no
 * JSON or nests too deep; an empty body is an empty object.
 */
export async function jsonBody(request: IncomingMessage, mostBytes: number): Promise<unknown> {
  const bytes = await bytesOf(request, mostBytes);
  if (bytes.length === 0) return {};
  if (mediaOf(request) !== 'application/json') throw new ApiError('not-json', 'send the body as application/json');
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    if (!isDeeperThan(value, DEEPEST_BODY)) return value;
  } catch {
    throw new ApiError('invalid-request', 'the body is no JSON');
  }
  throw new ApiError('invalid-request', `the body nests deeper than ${DEEPEST_BODY} levels; send deeper data as text`);
}

/** Places that one problem names. */
const MOST_PLACES = 20;

const pointer = (path: readonly PropertyKey[]): string =>
  path.map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');

/** One place for each thing that is wrong; a field that is not known is a place of its own. */
function placesOf(issue: z.core.$ZodIssue): readonly ProblemPlace[] {
  if (issue.code !== 'unrecognized_keys') return [{ pointer: pointer(issue.path), detail: issue.message }];
  return issue.keys.map((key) => ({ pointer: pointer([...issue.path, key]), detail: issue.message }));
}

/** Says which names are known where one is not. */
function wording({ code, inst }: z.core.$ZodRawIssue, kind: string): string | undefined {
  if (code !== 'unrecognized_keys') return undefined;
  const known = inst instanceof z.ZodObject ? Object.keys(inst.shape) : [];
  return `unknown ${kind}; known here: ${known.length === 0 ? 'none' : known.join(', ')}`;
}

/**
 * Reads what a request brought as its schema says. `kind` is what a member is called in messages. Throws ApiError `invalid-request` that names each place
 * by a JSON pointer, fields that are not known among them.
 */
export function readInput<S extends z.ZodType>(schema: S, input: unknown, kind: 'field' | 'parameter'): z.output<S> {
  const parsed = schema.safeParse(input, { error: (issue) => wording(issue, kind) });
  if (parsed.success) return parsed.data;
  const places = parsed.error.issues.flatMap(placesOf).slice(0, MOST_PLACES);
  const whole = kind === 'field' ? 'the body' : 'the parameters';
  const detail = places.map((place) => `${place.pointer === '' ? whole : place.pointer}: ${place.detail}`).join('; ');
  throw new ApiError('invalid-request', detail.slice(0, 1_000), places);
}

/** Reads the parameters of an address. Throws as `readInput` does, and for a parameter that stands twice. */
export function readParameters<S extends z.ZodType>(schema: S, query: URLSearchParams): z.output<S> {
  const given = new Map<string, string>();
  for (const [name, value] of query) {
    if (given.has(name)) throw new ApiError('invalid-request', `the parameter ${name.slice(0, 200)} stands twice`);
    given.set(name, value);
  }
  return readInput(schema, Object.fromEntries(given), 'parameter');
}

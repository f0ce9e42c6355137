import { randomBytes } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { extname, join } from 'node:path';
import * as z from 'zod';
import type { Refusal, ServedPage } from '../../http/http-contract.js';
import { ApiError, problemOf, sendProblem } from '../../http/problem.js';
import { bearerOf, jsonBody, readInput, sameSecret } from '../../http/request-checks.js';
import { unlessMissing } from '../../process/system-error.js';
import { ownMember } from '../../values/own-member.js';

/** The path of the page; each view has an address below it. */
const PAGE_PATH = '/review';

const ENTER_PATH = `${PAGE_PATH}/enter`;
const ASSETS_PATH = `${PAGE_PATH}/assets/`;

/**
 * The content security policy. The page uses only its own scripts and styles, requests only its own
 * origin, and turns no text into code or markup.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const HEADERS = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
} as const;

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
};

/**
 * The built files of the page by name. Names are known in advance, so a request's path never
 * reaches the disk.
 */
type Files = ReadonlyMap<string, Buffer>;

/** @throws {ApiError} `not-found` – the page was not built */
async function readFiles(folder: string): Promise<Files> {
  const names = await unlessMissing(readdir(folder, { recursive: true }));
  if (names === undefined)
    throw new ApiError('not-found', `the review page is not built: ${folder} does not exist; run npm run build`);
  const known = names
    .map((name) => name.split('\\').join('/'))
    .filter((name) => ownMember(TYPES, extname(name)) !== undefined);
  return new Map(await Promise.all(known.map(async (name) => [name, await readFile(join(folder, name))] as const)));
}

/** Changes that a visitor of the page may make: those that are recorded as done by a person. */
const DONE_BY_PERSON = /^\/v1\/sessions\/[^/]+\/(sets|undo|fork|restore|notes)$/;

const ENTER = z.strictObject({ token: z.string().min(1).max(1_000) });
const MOST_BODY_BYTES = 4_096;

const pathOf = ({ url = '/' }: Pick<IncomingMessage, 'url'>): string => url.split(/[?#]/, 1)[0] ?? '/';

/**
 * The review page of a server: its files, which contain no session data, and the admission of
 * visitors. A link has a token after its `#`, which browsers never send. The page exchanges the
 * token for a secret, and sends the secret as a bearer token with each question. A cookie would
 * also reach every other server of this machine, because cookies ignore ports.
 *
 * The token of a link works while the server runs, so a printed address opens in a second browser.
 * The page removes it from the address bar.
 */
export class ReviewPage implements ServedPage {
  readonly #folder: string;
  /** The server's own token, which a visitor may exchange at any time. */
  readonly #token: string | undefined;
  /** The data folder, if commands need to name it. */
  readonly #data: string | undefined;
  readonly #secret = randomBytes(32).toString('base64url');
  /** The token of every link. */
  readonly #link = randomBytes(24).toString('base64url');
  #files: Promise<Files> | undefined;

  constructor(folder: string, token: string | undefined, data?: string) {
    this.#folder = folder;
    this.#token = token;
    this.#data = data;
  }

  /**
   * Returns a link to a view of the page. The link works while the server runs. `view` is a path
   * below the page, with its parameters.
   */
  link(origin: string, view = ''): string {
    return `${origin}${PAGE_PATH}/${view}#token=${this.#link}`;
  }

  /** Whether a request is for the page itself. */
  owns(request: Pick<IncomingMessage, 'url'>): boolean {
    const path = pathOf(request);
    return path === PAGE_PATH || path.startsWith(`${PAGE_PATH}/`);
  }

  /**
   * Whether a request comes from an admitted visitor with the page's secret. It must be a question,
   * or a permitted change from the page's own origin.
   */
  admits(request: Pick<IncomingMessage, 'method' | 'headers' | 'url'>): boolean {
    const { method, headers } = request;
    const isMeant =
      method === 'GET' ||
      (method === 'POST' && DONE_BY_PERSON.test(pathOf(request)) && headers.origin === `http://${headers.host}`);
    const given = isMeant ? bearerOf(headers) : undefined;
    return given !== undefined && sameSecret(given, this.#secret);
  }

  /** Answers a request for the page that the common checks rejected. */
  refuse(response: ServerResponse, { message }: Refusal): void {
    sendProblem(response, problemOf(new ApiError('forbidden', message)));
  }

  /** Answers a request for the page; never rejects. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await (pathOf(request) === ENTER_PATH ? this.#enter(request, response) : this.#file(request, response));
    } catch (error) {
      sendProblem(response, problemOf(error), HEADERS);
    }
  }

  async #enter(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST')
      throw new ApiError('method-not-allowed', `${request.method ?? ''} is not allowed here; allowed: POST`);
    const { token } = readInput(ENTER, await jsonBody(request, MOST_BODY_BYTES), 'field');
    if (![this.#link, this.#token].some((known) => known !== undefined && sameSecret(token, known)))
      throw new ApiError(
        'unauthorized',
        'this address belongs to a server that has ended, or its token is wrong: run palimpsest review for a new one',
      );
    response.writeHead(200, { ...HEADERS, 'content-type': 'application/json', 'cache-control': 'no-store' });
    response.end(JSON.stringify({ secret: this.#secret, data: this.#data ?? null }));
  }

  async #file(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      throw new ApiError('method-not-allowed', `${request.method ?? ''} is not allowed here; allowed: GET, HEAD`);
    }
    const path = pathOf(request);
    const isAsset = path.startsWith(ASSETS_PATH);
    // Every other address is a view, which the page resolves itself.
    const name = isAsset ? path.slice(PAGE_PATH.length + 1) : 'index.html';
    const body = (await this.#read()).get(name);
    if (body === undefined) throw new ApiError('not-found', `the page has no file ${path.slice(0, 200)}`);
    const kept = isAsset ? 'public, max-age=31536000, immutable' : 'no-cache';
    response.writeHead(200, {
      ...HEADERS,
      'content-type': ownMember(TYPES, extname(name)) ?? 'application/octet-stream',
      'content-length': body.length,
      'cache-control': kept,
    });
    response.end(request.method === 'HEAD' ? undefined : body);
  }

  #read(): Promise<Files> {
    this.#files ??= readFiles(this.#folder).catch((error: unknown) => {
      this.#files = undefined;
      throw error;
    });
    return this.#files;
  }
}

import type { ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import * as z from 'zod';
import type { DisplayPaths } from '../assembly/metadata.js';
import type { ContextClient } from '../client/session/context-client.js';
import { requireSession } from '../history/rebuild/find-session.js';
import { HistoryError } from '../history/rebuild/history-error.js';
import { parseReference } from '../history/rebuild/moment.js';
import { PresentTimeline, Timeline } from '../history/rebuild/timeline.js';
import { SessionError } from '../session/errors.js';
import type { AskedPast, ContractQuestion, FollowRequest, HttpContract } from './http-contract.js';
import { goneSignal } from './question-queue.js';
import { readParameters } from './request-checks.js';
import { ReviewAccess } from './review-access.js';

/** A question and the parameters in its path. */
interface FoundQuestion extends ContractQuestion {
  readonly inPath: { readonly id?: string };
}

/** Returns the questions of contracts. */
export function allQuestions(contracts: readonly HttpContract[]): readonly ContractQuestion[] {
  return contracts.flatMap(({ questions = {} }) => Object.values(questions));
}

/** Decodes a name in a path; undefined if it is invalid. */
function named(part: string): string | undefined {
  if (part === '' || part.includes('/')) return undefined;
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}

/** Returns the question at a path; undefined for none. */
export function questionAt(questions: readonly ContractQuestion[], path: string): FoundQuestion | undefined {
  for (const question of questions) {
    if (question.path === path) return { ...question, inPath: {} };
    const [before = '', after] = question.path.split('{id}');
    if (after === undefined || !path.startsWith(before) || !path.endsWith(after)) continue;
    const rest = named(path.slice(before.length, path.length - after.length));
    if (rest !== undefined) return { ...question, inPath: { id: rest } };
  }
  return undefined;
}

/** The parameters of following a session. */
export const EVENTS_PARAMETERS = z.strictObject({
  after: z.coerce
    .number()
    .int()
    .nonnegative()
    .optional()
    .describe('A transaction: changes after it are sent first; default: only new changes'),
});

interface ClientPresent {
  readonly timelines: PresentTimeline;
  readonly paths: DisplayPaths;
}

const presents = new WeakMap<ContextClient, ClientPresent>();

/**
 * Returns how paths are shown and read. As on the command line, the owner of the data folder may
 * also ask about files outside of the server's folders.
 */
function pathsOf({ files }: ContextClient, all: boolean): DisplayPaths {
  if (!all) return files;
  return {
    display: (source) => files.display(source),
    here: (path) => files.here(path),
    sourcesAt: (path) => files.sourcesAt(path),
  };
}

/**
 * Returns the timeline of everything that a client has acknowledged, or a timeline at an earlier
 * transaction.
 */
async function timelineOf(
  client: ContextClient,
  { all, txId }: { readonly all: boolean; readonly txId: number | undefined },
): Promise<Timeline> {
  const known = presents.get(client) ?? { timelines: new PresentTimeline(), paths: pathsOf(client, all) };
  presents.set(client, known);
  const present = await known.timelines.open(await client.delivered(), known.paths);
  return txId === undefined ? present : known.timelines.at(present, txId);
}

/** Returns the transaction at which a question must be answered; undefined for the newest. */
function pinned(question: ContractQuestion, asked: object): number | undefined {
  const { tx, at, valid_time: validTime } = asked as Readonly<Record<string, unknown>>;
  if (question.pins !== true && (at !== undefined || validTime !== undefined)) return undefined;
  const text = typeof tx === 'number' ? String(tx) : tx;
  return typeof text === 'string' && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/**
 * Returns the error for a question about an unknown session. If another process has acknowledged
 * the session, the error says that it appears once the database is available.
 */
async function whyUnknown(client: ContextClient, reference: string | undefined, error: unknown): Promise<unknown> {
  if (reference === undefined || !(error instanceof HistoryError) || error.code !== 'unknown-session') return error;
  const { name } = parseReference(reference);
  if (!(await client.isOnItsWay(name))) return error;
  const why =
    `session ${name} was acknowledged, but the database does not have it yet, because its node is ` +
    'starting or away; retry';
  return new SessionError('node-unavailable', why, { cause: error });
}

/**
 * A JSON replacer that leaves out the time of a requested transaction. That time is known only
 * while the transaction is the newest one, so an answer with the time would change later.
 */
const pinnedMember =
  (txId: number) =>
  (name: string, value: unknown): unknown => {
    const isPinned = name === 'basis' && (value as { readonly tx_id?: unknown } | null)?.tx_id === txId;
    return isPinned ? { ...(value as object), tx_time: null } : value;
  };

/** Minimum UTF-16 units of an answer that is compressed, for clients that accept it. */
const LEAST_PACKED = 8_192;
const gzipped = promisify(gzip);

/**
 * Answers a question about the past. Everything in the answer has the basis that the request got.
 * Throws the errors of the question. Sends nothing if the client has disconnected.
 */
export async function answerReviewRequest(
  question: ContractQuestion,
  { client, query, all, ...more }: Omit<AskedPast, 'timeline' | 'access'> & { readonly query: URLSearchParams },
  response: ServerResponse,
): Promise<void> {
  const { answer, media, parameters, ask } = question;
  const asked = readParameters(parameters, query);
  const txId = pinned(question, asked);
  const timeline = await timelineOf(client, { all, txId });
  const signal = goneSignal(response);
  const access = new ReviewAccess(client, timeline, all);
  const { session } = asked as { readonly session?: string };
  let body: unknown;
  try {
    if (session !== undefined) await access.requireNamed(session);
    body = await ask({ timeline, access, client, all, ...more }, asked as never, signal);
  } catch (error) {
    if (signal.aborted) return;
    throw await whyUnknown(client, session, error);
  }
  if (media !== undefined) {
    const { sendStream } = await import('./stream-lines.js');
    return sendStream(response, { media, lines: body as AsyncIterable<string>, signal });
  }
  const type = answer === null ? 'text/plain; charset=utf-8' : 'application/json';
  const text =
    answer === null ? String(body) : JSON.stringify(body, txId === undefined ? undefined : pinnedMember(txId));
  const isPacked = text.length > LEAST_PACKED && /\bgzip\b/.test(String(response.req.headers['accept-encoding'] ?? ''));
  const sent = isPacked ? await gzipped(text, { level: 1 }) : text;
  if (signal.aborted) return;
  // Never let a browser render recorded text as HTML.
  response.writeHead(200, {
    'content-type': type,
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
    vary: 'accept-encoding',
    ...(isPacked ? { 'content-encoding': 'gzip' } : {}),
  });
  response.end(sent);
}

/**
 * Prepares following a session, which must exist and be visible here.
 * @throws {HistoryError} `unknown-session`, `ambiguous`
 * @throws {SessionError} `other-roots`
 */
export async function followRequest(
  client: ContextClient,
  name: string,
  query: URLSearchParams,
): Promise<FollowRequest> {
  const { after } = readParameters(EVENTS_PARAMETERS, query);
  const timeline = await Timeline.open(client.store, client.files);
  const session = await requireSession(timeline.present, name).catch(async (error: unknown) => {
    throw await whyUnknown(client, name, error);
  });
  await new ReviewAccess(client, timeline).requireSession(session);
  return { session, after, store: client.store, paths: client.files };
}

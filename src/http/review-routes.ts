import type { ServerResponse } from 'node:http';
import * as z from 'zod';
import type { ContextClient } from '../client/session/context-client.js';
import { parseReference } from '../history/ask/reference.js';
import { noteOf, reviewRecord } from '../history/ask/review-notes.js';
import { requireSession } from '../history/rebuild/find-session.js';
import { HistoryError } from '../history/rebuild/history-error.js';
import { PresentTimeline, Timeline } from '../history/rebuild/timeline.js';
import { SessionError } from '../session/errors.js';
import type { AnswerBody, RequestBody } from './api-schemas.js';
import type { AskedPast, ContractQuestion, FollowRequest, HttpContract } from './http-contract.js';
import { goneSignal } from './question-queue.js';
import { readParameters } from './request-checks.js';
import { ReviewAccess } from './review-access.js';
import { notesAnswer } from './review-answers.js';
import { QUESTIONS } from './review-questions.js';

/** A question and the parameters in its path. */
interface FoundQuestion extends ContractQuestion {
  readonly inPath: { readonly id?: string };
}

/** Returns the questions of the server and of contracts. */
export function allQuestions(contracts: readonly HttpContract[]): readonly ContractQuestion[] {
  return [QUESTIONS, ...contracts.map(({ questions = {} }) => questions)].flatMap((table) => Object.values(table));
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

const presents = new WeakMap<ContextClient, PresentTimeline>();

/** Returns the timeline of everything that a client has acknowledged. */
async function presentOf(client: ContextClient): Promise<Timeline> {
  const present = presents.get(client) ?? new PresentTimeline();
  presents.set(client, present);
  return present.open(await client.delivered(), client.files);
}

/**
 * Returns the error of a question about a session. A session that another process has acknowledged
 * appears once the database is available.
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
 * Answers a question about the past from one timeline, pinned at the request. Throws the errors of
 * the question. Sends nothing if the client has disconnected.
 */
export async function answerReviewRequest(
  { answer, media, parameters, ask }: ContractQuestion,
  { client, query, all, hiddenTexts }: Omit<AskedPast, 'timeline' | 'access'> & { readonly query: URLSearchParams },
  response: ServerResponse,
): Promise<void> {
  const asked = readParameters(parameters, query);
  const timeline = await presentOf(client);
  const signal = goneSignal(response);
  const access = new ReviewAccess(client, timeline, all);
  const { session } = asked as { readonly session?: string };
  let body: unknown;
  try {
    if (session !== undefined) await access.requireNamed(session);
    body = await ask({ timeline, access, client, all, hiddenTexts }, asked as never, signal);
  } catch (error) {
    if (signal.aborted) return;
    throw await whyUnknown(client, session, error);
  }
  if (media !== undefined) {
    const { sendStream } = await import('./stream-lines.js');
    return sendStream(response, { media, lines: body as AsyncIterable<string>, signal });
  }
  const type = answer === null ? 'text/plain; charset=utf-8' : 'application/json';
  // Never let a browser render recorded text as HTML.
  response.writeHead(200, {
    'content-type': type,
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
  });
  response.end(answer === null ? String(body) : JSON.stringify(body));
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

/**
 * Stores a reviewer's note on an open or closed session.
 * @throws {HistoryError} unknown session, moment or object; `empty-note`
 * @throws {SessionError} `other-roots`
 * @throws {SourceError} `outside-roots` – a file that is not visible here
 */
export async function addNote(
  client: ContextClient,
  session: string,
  said: RequestBody<'Note'>,
): Promise<AnswerBody<'NoteAdded'>> {
  const store = await client.delivered();
  const timeline = await Timeline.open(store, client.files);
  const access = new ReviewAccess(client, timeline);
  await access.requireNamed(session);
  const record = await reviewRecord(timeline, { session, ...said }, client.now());
  if (record.body.object !== undefined)
    await access.requireObject(record.body.object as Parameters<typeof access.requireObject>[0]);
  await store.putRecords([record]);
  const [note] = notesAnswer([noteOf(record, session as never)]).said;
  if (note === undefined) throw new Error('BUG: a note without an answer');
  return { note };
}

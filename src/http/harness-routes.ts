import type { IncomingMessage, ServerResponse } from 'node:http';
import * as z from 'zod';
import type { ContextClient } from '../client/session/context-client.js';
import type { SessionSummary } from '../client/session/open-session.js';
import type { HarnessSession } from '../harness/harness-session.js';
import type { FindHiddenTexts } from '../history/ask/hidden-texts.js';
import type { Backend } from '../host/backend.js';
import { importedSessions } from '../host/imported-sessions.js';
import type { Logger } from '../host/log.js';
import { SessionTitles } from '../host/session-titles.js';
import type { ServerSettings } from '../host/settings.js';
import type { Verb } from '../session/verb-outcome.js';
import type { Tell } from '../telemetry/telemetry.js';
import { parseTraceparent } from '../telemetry/trace.js';
import { defined } from '../values/defined.js';
import {
  contextAnswer,
  messagesAnswer,
  sessionAnswer,
  sessionsAnswer,
  toolCallsAnswer,
  verbAnswer,
} from './api-answers.js';
import { type AnswerBody, REQUESTS, type RequestBody, type RequestName } from './api-schemas.js';
import { ApiSessions } from './api-sessions.js';
import type { HttpContract, ServedPaths } from './http-contract.js';
import { openApiDocument } from './openapi-document.js';
import { type ApiOperation, OPENAPI_PATH, OPERATIONS, type OperationId } from './operations.js';
import { changeSets, copyFiles, forkOne, type PersonSettings, undoOneStep } from './person-routes.js';
import { ApiError, problemOf, sendProblem } from './problem.js';
import { goneSignal, QUESTION_CAPACITY, QuestionQueue } from './question-queue.js';
import { jsonBody, readInput, readParameters } from './request-checks.js';
import { addNote, allQuestions, answerReviewRequest, followRequest, questionAt } from './review-routes.js';

/** The harness interface below `/v1`. */
export interface HarnessRoutes extends ServedPaths {
  /** Pauses sessions that were idle for long. */
  forgetIdle(idleMs: number): Promise<void>;
  close(): Promise<void>;
}

interface Exchange {
  readonly sessions: ApiSessions;
  /** The session of the path; empty for none. */
  readonly id: string;
  readonly body: unknown;
  readonly person: PersonSettings;
  /** Returns the titles of sessions that the reader may see. */
  readonly titlesOf: (
    client: ContextClient,
    sessions: readonly SessionSummary[],
  ) => Promise<ReadonlyMap<string, string>>;
}

type Answered<Id extends OperationId> = Promise<{
  readonly status?: number;
  readonly body: AnswerBody<(typeof OPERATIONS)[Id]['answer']>;
}>;

type Handlers = { readonly [Id in OperationId]: (exchange: Exchange) => Answered<Id> };

const read = <N extends RequestName>(name: N, body: unknown): RequestBody<N> =>
  readInput(REQUESTS[name], body, 'field') as RequestBody<N>;

const turnOf = ({ turn }: { readonly turn?: string | undefined }) => (turn === undefined ? {} : { turnRef: turn });

const onSession =
  <N extends RequestName, B>(name: N, work: (session: HarnessSession, body: RequestBody<N>) => Promise<B>) =>
  ({ sessions, id, body }: Exchange) =>
    sessions.use(id, async (session) => ({ body: await work(session, read(name, body)) }));

const verb = (name: Verb) =>
  onSession('Verb', async (session, { ids, call_id: callId, ...rest }) =>
    verbAnswer(await session.verb(name, ids, { ...turnOf(rest), ...defined({ callId }) })),
  );

const HANDLERS: Handlers = {
  openSession: async ({ sessions, body }) => {
    const request = read('OpenSession', body);
    const session = await sessions.open(request);
    const fork = request.fork !== undefined;
    const resumed = !fork && session.session.state.seq > 0;
    if (request.system_prompt !== undefined) await session.setSystemPrompt(request.system_prompt);
    return { status: resumed ? 200 : 201, body: sessionAnswer(session, resumed) };
  },
  listSessions: async ({ sessions, titlesOf }) => {
    const client = await sessions.client();
    const listed = await client.listSessions();
    return { body: sessionsAnswer(listed, await titlesOf(client, listed)) };
  },
  getSession: ({ sessions, id }) =>
    sessions.use(id, async (session) => ({ body: sessionAnswer(session, session.session.state.seq > 0) })),
  closeSession: async ({ sessions, id, body }) => {
    read('Nothing', body);
    await sessions.close(id);
    return { body: { id, closed: true } };
  },
  changeSets: async ({ body, ...open }) => ({ body: await changeSets({ ...open, body: read('PersonVerb', body) }) }),
  undoStep: async ({ body, ...open }) => ({ body: await undoOneStep({ ...open, body: read('Undo', body) }) }),
  forkSession: async ({ body, ...open }) => ({
    status: 201,
    body: await forkOne({ ...open, body: read('Fork', body) }),
  }),
  copyFiles: async ({ body, person, ...open }) => ({
    status: 201,
    body: await copyFiles({ ...open, body: read('FileCopies', body) }, person),
  }),
  addNote: async ({ sessions, id, body }) => ({
    status: 201,
    body: await addNote(await sessions.client(), id, read('Note', body)),
  }),
  setSystemPrompt: onSession('SystemPrompt', async (session, { text }) => {
    await session.setSystemPrompt(text);
    return sessionAnswer(session, session.session.state.seq > 0);
  }),
  reportMessages: onSession('Messages', async (session, { messages, mode = 'append', ...rest }) =>
    messagesAnswer(session, await session.reportMessages(messages, { mode, ...turnOf(rest) })),
  ),
  reportToolCalls: onSession('ToolCalls', async (session, { calls, ...rest }) => {
    const reported = [];
    for (const call of calls) reported.push(await session.reportToolCall(call, turnOf(rest)));
    return toolCallsAnswer(session, reported);
  }),
  beginTurn: onSession('Context', async (session, { short_ids: shortIds, turn, mode = 'append', ...rest }) => {
    const options = { mode, ...turnOf({ turn }), ...defined({ ...rest, shortIds }) };
    const { report, ...context } = await session.beginTurn(options);
    return contextAnswer(context, report);
  }),
  activate: verb('activate'),
  deactivate: verb('deactivate'),
  pin: verb('pin'),
  unpin: verb('unpin'),
};

/** An operation that the router answers. */
interface Route {
  readonly operation: Pick<ApiOperation, 'method' | 'path' | 'kind'> & { readonly request?: string };
  handle(exchange: Exchange): Promise<{ readonly status?: number; readonly body: unknown }>;
}

/** Returns the routes of a contract's operations, which run on an open session. */
function contractRoutes({ requests = {}, operations = {} }: HttpContract): readonly Route[] {
  return Object.values(operations).map((operation) => {
    const schema = operation.request === undefined ? REQUESTS.Nothing : requests[operation.request];
    if (schema === undefined) throw new Error(`BUG: ${operation.path} has no schema ${operation.request}`);
    return {
      operation,
      handle: ({ sessions, id, body }) =>
        sessions.use(id, async (session) => {
          const client = await sessions.client();
          return { body: await operation.handle({ client, session }, readInput(schema, body ?? {}, 'field') as never) };
        }),
    };
  });
}

/** Returns the routes of the server and of contracts. */
function allRoutes(contracts: readonly HttpContract[]): readonly Route[] {
  const own = (Object.entries(OPERATIONS) as [OperationId, ApiOperation][]).map(([id, operation]) => ({
    operation,
    handle: HANDLERS[id],
  }));
  return [...own, ...contracts.flatMap(contractRoutes)];
}

interface Match extends Route {
  readonly session: string;
}

function sessionIn(path: string, template: string): string | undefined {
  const found = new RegExp(`^${template.replace('{id}', '([^/]*)')}$`).exec(path);
  try {
    return found === null ? undefined : decodeURIComponent(found[1] ?? '');
  } catch {
    return undefined;
  }
}

/** Returns the operations at a path, for all methods. */
function operationsAt(routes: readonly Route[], path: string): readonly Match[] {
  return routes.flatMap((route) => {
    const session = sessionIn(path, route.operation.path);
    return session === undefined ? [] : [{ ...route, session }];
  });
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

function sendNotAllowed(response: ServerResponse, method: string | undefined, allowed: string): void {
  const problem = problemOf(
    new ApiError('method-not-allowed', `${method ?? ''} is not allowed here; allowed: ${allowed}`),
  );
  sendProblem(response, problem, { allow: allowed });
}

/** POST routes take no query parameters; they reject them rather than ignore them. */
const NO_PARAMETERS = z.strictObject({});

/** Dependencies of the harness interface. */
interface HarnessRoutesOptions {
  readonly backend: Backend;
  readonly settings: ServerSettings;
  readonly log: Logger;
  readonly mostBodyBytes: number;
  /**
   * Whether to answer questions about every session and file of the database; `settings` then share
   * sessions.
   */
  readonly reviewsAll?: boolean;
  /** The folder for copies of files; default: the folders of `settings`. */
  readonly copiesBelow?: string;
  /** The contracts to serve beside the interface's own operations. */
  readonly contracts: readonly HttpContract[];
  /** Finds what the redaction rules of a session hide. */
  readonly hiddenTexts: FindHiddenTexts;
}

/** Creates the harness interface over a backend. */
export function harnessRoutes({
  backend,
  settings,
  log,
  mostBodyBytes,
  reviewsAll = false,
  copiesBelow,
  contracts,
  hiddenTexts,
}: HarnessRoutesOptions): HarnessRoutes {
  const { strict = false, shortIds = false } = settings.tools;
  const sessions = new ApiSessions(backend, { strict, shortIds });
  const titles = new SessionTitles();
  // A title is recorded text, so only the owner of the data folder sees those of all sessions.
  const titlesOf: Exchange['titlesOf'] = async (client, listed) =>
    reviewsAll
      ? titles.of(listed, await client.store.latest(), await importedSessions(settings.node.dataDir))
      : new Map<string, string>();
  const person = { all: reviewsAll, copyRoots: copiesBelow === undefined ? settings.roots : [copiesBelow] };
  const streams = contracts
    .flatMap(({ events = {} }) => Object.values(events))
    .map(({ path, open }) => ({ path, events: open(log) }));
  const routes = allRoutes(contracts);
  const asked = allQuestions(contracts);
  /** The first parts of all paths. */
  const owned = new Set([...routes.map(({ operation }) => operation), ...asked].map(({ path }) => path.split('/')[1]));
  const questions = {
    short: new QuestionQueue(QUESTION_CAPACITY.short),
    long: new QuestionQueue(QUESTION_CAPACITY.long),
    stream: new QuestionQueue(QUESTION_CAPACITY.stream),
  };

  const answer = async (request: IncomingMessage, response: ServerResponse, tell: Tell): Promise<void> => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
    if (pathname === OPENAPI_PATH) tell({ 'http.route': pathname });
    if (pathname === OPENAPI_PATH && request.method === 'GET')
      return sendJson(response, 200, openApiDocument(settings.version, contracts));
    const question = questionAt(asked, pathname);
    if (question !== undefined) {
      tell({ 'http.route': question.path });
      if (request.method !== 'GET') return sendNotAllowed(response, request.method, 'GET');
      for (const [name, value] of Object.entries(question.inPath)) searchParams.append(name, value);
      const ask = async () =>
        answerReviewRequest(
          question,
          { client: await sessions.client(), query: searchParams, all: reviewsAll, hiddenTexts },
          response,
        );
      return questions[question.kind ?? 'short'].run(ask, goneSignal(response));
    }
    for (const { path, events } of streams) {
      const followed = sessionIn(pathname, path);
      if (followed === undefined) continue;
      if (request.method !== 'GET') return sendNotAllowed(response, request.method, 'GET');
      const last = request.headers['last-event-id'];
      if (typeof last === 'string') searchParams.set('after', last);
      return events.follow(await followRequest(await sessions.client(), followed, searchParams), response);
    }
    const there = operationsAt(routes, pathname);
    if (there.length === 0)
      throw new ApiError('not-found', `not found: ${pathname.slice(0, 200)}; GET ${OPENAPI_PATH} lists all operations`);
    const match = there.find(({ operation }) => operation.method === request.method);
    if (match === undefined) {
      return sendNotAllowed(response, request.method, there.map(({ operation }) => operation.method).join(', '));
    }
    tell({ 'http.route': match.operation.path });
    readParameters(NO_PARAMETERS, searchParams);
    const body = match.operation.request === undefined ? undefined : await jsonBody(request, mostBodyBytes);
    const work = () => match.handle({ sessions, id: match.session, body, person, titlesOf });
    const { kind } = match.operation;
    const answered = await (kind === undefined
      ? work()
      : questions[kind].run<Awaited<ReturnType<typeof work>>>(work, goneSignal(response)));
    if (answered === undefined) return;
    // Only an existing session's id goes to telemetry.
    if (match.session !== '') tell({ 'gen_ai.conversation.id': match.session });
    sendJson(response, answered.status ?? 200, answered.body);
  };

  return {
    owns: ({ url = '/' }) => owned.has(/^\/([^/?]*)/.exec(url)?.[1]),
    refuse: (response, { status, message }) => {
      const code = status === 401 ? 'unauthorized' : 'forbidden';
      sendProblem(
        response,
        problemOf(new ApiError(code, message)),
        status === 401 ? { 'www-authenticate': 'Bearer' } : {},
      );
    },
    handle: (request, response) => {
      const facts = defined({ 'http.request.method': request.method });
      const parent = parseTraceparent(request.headers.traceparent);
      return backend.telemetry.observe({ activity: 'request', facts, parent }, async (tell) => {
        try {
          await answer(request, response, tell);
        } catch (error) {
          const problem = problemOf(error, contracts);
          tell({ 'error.type': problem.code });
          if (problem.status >= 500) log.error({ err: error, url: request.url }, 'a request failed');
          // Breaks a started response off, so that a client never takes it for complete.
          if (response.headersSent) response.destroy();
          else sendProblem(response, problem, problem.status === 413 ? { connection: 'close' } : {});
        }
        tell({ 'http.response.status_code': response.statusCode });
      });
    },
    forgetIdle: (idleMs) => sessions.forgetIdle(idleMs),
    close: () => {
      for (const { events } of streams) events.close();
      return sessions.closeAll();
    },
  };
}

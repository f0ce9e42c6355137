import type { IncomingMessage, ServerResponse } from 'node:http';
import * as z from 'zod';
import type { FindHiddenTexts } from '../history/rebuild/hidden-texts.js';
import type { Backend } from '../host/backend.js';
import { importedSessions } from '../host/imported-sessions.js';
import type { Logger } from '../host/log.js';
import { SessionTitles } from '../host/session-titles.js';
import type { ServerSettings } from '../host/settings.js';
import { clientFolder } from '../process/data-folder.js';
import type { Tell } from '../telemetry/telemetry.js';
import { parseTraceparent } from '../telemetry/trace.js';
import { defined } from '../values/defined.js';
import { REQUESTS } from './api-schemas.js';
import type { Exchange, HttpContract, Operation, ServedPaths } from './http-contract.js';
import { openApiDocument } from './openapi-document.js';
import { OPENAPI_PATH, OPERATIONS } from './operations.js';
import { ApiError, problemOf, sendProblem } from './problem.js';
import { goneSignal, QUESTION_CAPACITY, QuestionQueue } from './question-queue.js';
import { jsonBody, readInput, readParameters } from './request-checks.js';
import { allQuestions, answerReviewRequest, followRequest, questionAt } from './review-routes.js';
import { withinRequest } from './within-request.js';

/** The interface below `/v1`. */
export interface ApiRoutes extends ServedPaths {
  /** Closes sessions and objects that were idle for this long. */
  forgetIdle(idleMs: number): Promise<void>;
  close(): Promise<void>;
}

/** An operation, and the check of its body. */
interface Route {
  readonly operation: Operation;
  readonly schema: z.ZodType;
}

/** Returns the routes of the server and of contracts. */
function allRoutes(contracts: readonly HttpContract[]): readonly Route[] {
  return [...contracts, { requests: REQUESTS, operations: OPERATIONS }].flatMap(
    ({ requests = {}, operations = {} }: Pick<HttpContract, 'requests' | 'operations'>) =>
      Object.values(operations).map((operation) => {
        const schema = operation.request === undefined ? REQUESTS.Nothing : requests[operation.request];
        if (schema === undefined) throw new Error(`BUG: ${operation.path} has no schema ${operation.request}`);
        return { operation, schema };
      }),
  );
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

/** Dependencies of the interface. */
interface ApiRoutesOptions {
  readonly backend: Backend;
  readonly settings: ServerSettings;
  readonly log: Logger;
  readonly mostBodyBytes: number;
  /**
   * Whether to answer questions about every session and file of the database. If so, `settings`
   * must share sessions.
   */
  readonly reviewsAll?: boolean;
  /** The folder for copies of files; default: the folders of `settings`. */
  readonly copiesBelow?: string;
  /** The contracts to serve beside the interface's own operations. */
  readonly contracts: readonly HttpContract[];
  /** Finds the texts that the redaction rules of a session hide. */
  readonly hiddenTexts: FindHiddenTexts;
}

/** Creates the interface over a backend. */
export function apiRoutes({
  backend,
  settings,
  log,
  mostBodyBytes,
  reviewsAll = false,
  copiesBelow,
  contracts,
  hiddenTexts,
}: ApiRoutesOptions): ApiRoutes {
  const client: Exchange['client'] = () => withinRequest(backend.ready());
  const held = contracts.flatMap((contract) => contract.hold?.(backend, settings) ?? []);
  const titles = new SessionTitles();
  const { dataDir } = settings.node;
  const folders = { dataDir, clientDir: clientFolder(dataDir, settings.nodeUrl) };
  // A title is recorded text, so only the owner of the data folder sees the titles of all sessions.
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
  /** The first path component of every route. */
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
          {
            client: await client(),
            query: searchParams,
            all: reviewsAll,
            hiddenTexts,
            ...(reviewsAll ? { folders } : {}),
          },
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
      return events.follow(await followRequest(await client(), followed, searchParams), response);
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
    const { operation, schema, session: id } = match;
    const body = operation.request === undefined ? {} : await jsonBody(request, mostBodyBytes);
    const work = () =>
      operation.handle({ backend, client, id, person, titlesOf }, readInput(schema, body, 'field') as never);
    const { kind, statuses } = operation;
    const answered = await (kind === undefined ? work() : questions[kind].run(work, goneSignal(response)));
    if (answered === undefined) return;
    // Only an existing session's id goes to telemetry.
    if (id !== '') tell({ 'gen_ai.conversation.id': id });
    sendJson(response, operation.statusOf?.(answered as never) ?? statuses?.[0] ?? 200, answered);
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
          // Breaks off a started response, so that no client mistakes it for a complete one.
          if (response.headersSent) response.destroy();
          else sendProblem(response, problem, problem.status === 413 ? { connection: 'close' } : {});
        }
        tell({ 'http.response.status_code': response.statusCode });
      });
    },
    forgetIdle: async (idleMs) => {
      await Promise.all(held.map((one) => one.forgetIdle(idleMs)));
    },
    close: async () => {
      for (const { events } of streams) events.close();
      await Promise.all(held.map((one) => one.close()));
    },
  };
}

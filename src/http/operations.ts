import { z } from 'zod';
import { defined } from '../values/defined.js';
import { ANSWERS, type AnswerName, REQUESTS, type RequestName } from './api-schemas.js';
import type { QuestionKind } from './question-queue.js';
import { REVIEW_ANSWERS, REVIEW_PARAMETERS, type ReviewAnswerName, type ReviewVerb } from './review-schemas.js';

/** One operation of the interface: what the router matches and the OpenAPI document lists. */
export interface ApiOperation {
  readonly method: 'GET' | 'POST' | 'PUT';
  /** `{id}` stands for a session. */
  readonly path: string;
  readonly summary: string;
  readonly request?: RequestName;
  readonly answer: AnswerName;
  /** Statuses of success; the first is the usual one. */
  readonly statuses: readonly number[];
  /** For what only asks, whatever session is open: waits for its turn. */
  readonly kind?: QuestionKind;
}

const verb = (name: string, summary: string) =>
  ({ method: 'POST', path: `/v1/sessions/{id}/${name}`, summary, request: 'Verb', answer: 'VerbReport', statuses: [200] }) as const;

/** All operations by their OpenAPI ids. */
export const OPERATIONS = {
  openSession: {
    method: 'POST',
    path: '/v1/sessions',
    summary: 'Open, resume or fork a session',
    request: 'OpenSession',
    answer: 'Session',
    statuses: [201, 200],
  },
  listSessions: { method: 'GET', path: '/v1/sessions', summary: 'List all sessions', answer: 'Sessions', statuses: [200], kind: 'short' },
  getSession: { method: 'GET', path: '/v1/sessions/{id}', summary: 'An open session', answer: 'Session', statuses: [200] },
  closeSession: {
    method: 'POST',
    path: '/v1/sessions/{id}/close',
    summary: 'Close a session, which pauses it',
    request: 'Nothing',
    answer: 'Closed',
    statuses: [200],
  },
  setSystemPrompt: {
    method: 'PUT',
    path: '/v1/sessions/{id}/system-prompt',
    summary: 'Set the system prompt',
    request: 'SystemPrompt',
    answer: 'Session',
    statuses: [200],
  },
  reportMessages: {
    method: 'POST',
    path: '/v1/sessions/{id}/messages',
    summary: 'Report messages, with their tool calls and results',
    request: 'Messages',
    answer: 'MessagesReport',
    statuses: [200],
  },
  reportToolCalls: {
    method: 'POST',
    path: '/v1/sessions/{id}/tool-calls',
    summary: 'Report finished tool calls',
    request: 'ToolCalls',
    answer: 'ToolCallsReport',
    statuses: [200],
  },
  beginTurn: {
    method: 'POST',
    path: '/v1/sessions/{id}/context',
    summary: 'Begin a turn or step: the context of the next model call',
    request: 'Context',
    answer: 'TurnContext',
    statuses: [200],
  },
  activate: verb('activate', 'Load objects into the active set'),
  deactivate: verb('deactivate', 'Remove objects from the active set'),
  pin: verb('pin', 'Exempt objects from auto-collapse'),
  unpin: verb('unpin', 'Let pinned objects collapse again'),
} as const satisfies Readonly<Record<string, ApiOperation>>;

/** An operation by its OpenAPI id. */
export type OperationId = keyof typeof OPERATIONS;

/** Where the description of the interface itself is served. */
export const OPENAPI_PATH = '/v1/openapi.json';

/** A question about the past: a GET whose parameters stand in the query of its address. */
export interface ReviewOperation {
  readonly path: string;
  readonly summary: string;
  readonly parameters: ReviewVerb;
  /** The JSON that is answered; null for plain text. */
  readonly answer: ReviewAnswerName | null;
  /** Which queue it waits in. */
  readonly kind: QuestionKind;
}

/** All questions by their OpenAPI ids; the command line has the same by the same names. */
export const REVIEW_OPERATIONS = {
  log: {
    path: '/v1/log',
    summary: 'The turns of a session, or the latest of all, or the versions of an object',
    parameters: 'log',
    answer: 'Log',
    kind: 'short',
  },
  show: { path: '/v1/show', summary: 'An object at a moment', parameters: 'show', answer: 'Show', kind: 'short' },
  cat: { path: '/v1/cat', summary: "An object's text at a moment, as it is", parameters: 'cat', answer: null, kind: 'short' },
  diff: {
    path: '/v1/diff',
    summary: 'How an object or a session changed between two moments',
    parameters: 'diff',
    answer: 'Diff',
    kind: 'short',
  },
  pastContext: {
    path: '/v1/context',
    summary: 'The context of a session as it was handed out, or as it stood at a moment',
    parameters: 'context',
    answer: 'PastContext',
    kind: 'short',
  },
  who: { path: '/v1/who', summary: 'Which sessions saw an object, and when', parameters: 'who', answer: 'Who', kind: 'short' },
  query: { path: '/v1/query', summary: 'A Datalog query, read-only and limited', parameters: 'query', answer: 'Query', kind: 'short' },
  verify: {
    path: '/v1/verify',
    summary: 'Whether what was handed out of a session can be made again from the database, byte for byte; stops when its client goes away',
    parameters: 'verify',
    answer: 'Verify',
    kind: 'long',
  },
  reportList: {
    path: '/v1/report/list',
    summary: 'The contexts of a session with their sizes',
    parameters: 'report',
    answer: 'ReportList',
    kind: 'long',
  },
  reportDetail: {
    path: '/v1/report/detail',
    summary: 'One context by section and object',
    parameters: 'report',
    answer: 'ReportDetail',
    kind: 'short',
  },
} as const satisfies Readonly<Record<string, ReviewOperation>>;

/** A question by its OpenAPI id. */
export type ReviewOperationId = keyof typeof REVIEW_OPERATIONS;

type JsonMap = { readonly [key: string]: unknown };

const ref = (name: string): JsonMap => ({ $ref: `#/components/schemas/${name}` });
const json = (name: string, type = 'application/json'): JsonMap => ({ [type]: { schema: ref(name) } });

/** The JSON Schema of one body, by itself: neither dialect nor id of its own. */
function schemaOf(schema: z.ZodType, io: 'input' | 'output'): JsonMap {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { target: 'draft-2020-12', io });
  return rest;
}

function schemas(): JsonMap {
  const requests = Object.entries(REQUESTS).map(([name, schema]) => [name, schemaOf(schema, 'input')]);
  const answers = Object.entries(ANSWERS).map(([name, schema]) => [name, schemaOf(schema, 'output')]);
  const past = Object.entries(REVIEW_ANSWERS).map(([name, schema]) => [name, schemaOf(schema, 'output')]);
  return Object.fromEntries([...requests, ...answers, ...past]);
}

function operation(id: string, { path, summary, request, answer, statuses }: ApiOperation): JsonMap {
  const successes = statuses.map((status) => [status, { description: summary, content: json(answer) }]);
  const problem = { description: 'A problem', content: json('Problem', 'application/problem+json') };
  return {
    operationId: id,
    summary,
    ...(path.includes('{id}')
      ? { parameters: [{ name: 'id', in: 'path', required: true, description: 'The session', schema: { type: 'string' } }] }
      : {}),
    ...(request === undefined ? {} : { requestBody: { required: !REQUESTS[request].safeParse({}).success, content: json(request) } }),
    responses: { ...Object.fromEntries(successes), default: problem },
  };
}

/** One parameter for each member of a schema of parameters. */
function queryParameters(schema: z.ZodType): readonly JsonMap[] {
  const { properties = {}, required = [] } = schemaOf(schema, 'input') as { properties?: Record<string, JsonMap>; required?: string[] };
  return Object.entries(properties).map(([name, { description, ...given }]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    ...defined({ description }),
    schema: given,
  }));
}

function question(id: string, { summary, parameters, answer }: ReviewOperation): JsonMap {
  const content = answer === null ? { 'text/plain': { schema: { type: 'string' } } } : json(answer);
  return {
    operationId: id,
    summary,
    parameters: queryParameters(REVIEW_PARAMETERS[parameters]),
    responses: {
      200: { description: summary, content },
      default: { description: 'A problem', content: json('Problem', 'application/problem+json') },
    },
  };
}

/** The OpenAPI 3.1 document of the interface, made from the schemas that requests and answers are checked with. */
export function openApiDocument(version: string): JsonMap {
  const paths: Record<string, Record<string, JsonMap>> = {};
  for (const [id, given] of Object.entries(OPERATIONS)) {
    paths[given.path] = { ...paths[given.path], [given.method.toLowerCase()]: operation(id, given) };
  }
  for (const [id, given] of Object.entries(REVIEW_OPERATIONS)) paths[given.path] = { ...paths[given.path], get: question(id, given) };
  return {
    openapi: '3.1.0',
    info: {
      title: 'Palimpsest',
      version,
      description:
        'A bitemporal context service for LLM agents: what a harness reports and asks, and what its reviewers ask about the past.',
    },
    jsonSchemaDialect: 'https://json-schema.org/draft/2020-12/schema',
    security: [{ bearer: [] }],
    paths,
    components: { schemas: schemas(), securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
  };
}

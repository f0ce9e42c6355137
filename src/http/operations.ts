import * as z from 'zod';
import { defined } from '../values/defined.js';
import { ANSWERS, type AnswerName, REQUESTS, type RequestName } from './api-schemas.js';
import type { QuestionKind } from './question-queue.js';
import { EVENTS_PARAMETERS, REVIEW_ANSWERS, REVIEW_PARAMETERS, type ReviewAnswerName } from './review-schemas.js';

interface ListedOperation {
  /** `{id}` is a placeholder for a session. */
  readonly path: string;
  readonly summary: string;
  /** The JSON schema of the answer; null for plain text. */
  readonly answer: AnswerName | ReviewAnswerName | null;
  /** The media type of a file, which is streamed. */
  readonly media?: string;
  /** Success statuses, the usual one first; default: only 200. */
  readonly statuses?: readonly number[];
  /** The queue of the operation. */
  readonly kind?: QuestionKind;
}

/**
 * One operation of the interface: the router matches it and the OpenAPI document lists it. Only
 * operations that may be abandoned have a queue, because their client may have gone.
 */
export interface ApiOperation extends ListedOperation {
  readonly method: 'GET' | 'POST' | 'PUT';
  readonly request?: RequestName;
  readonly answer: AnswerName;
}

const verb = (name: string, summary: string) =>
  ({ method: 'POST', path: `/v1/sessions/{id}/${name}`, summary, request: 'Verb', answer: 'VerbReport' }) as const;

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
  listSessions: {
    method: 'GET',
    path: '/v1/sessions',
    summary: 'List all sessions',
    answer: 'Sessions',
    kind: 'short',
  },
  announceTools: {
    method: 'PUT',
    path: '/v1/sessions/{id}/tools',
    summary: 'Announce the tools of the model, for the sizes in context reports',
    request: 'Tools',
    answer: 'ToolsAnnounced',
  },
  promptOfTyrum: {
    method: 'POST',
    path: '/v1/sessions/{id}/tyrum/prompt',
    summary:
      "The conversation's checkpoint and the messages after it, with old tool results pruned as Tyrum does; " +
      'stored data ' +
      'does not change',
    request: 'TyrumPrompt',
    answer: 'TyrumPromptMessages',
    kind: 'short',
  },
  getTyrumState: {
    method: 'GET',
    path: '/v1/sessions/{id}/tyrum/state',
    summary: "The conversation's state in Tyrum's fields: its checkpoint, pending items, and later messages",
    answer: 'TyrumConversationState',
    kind: 'short',
  },
  keepTyrumObligations: {
    method: 'POST',
    path: '/v1/sessions/{id}/tyrum/obligations',
    summary: 'Report pending approvals and calls, and facts that checkpoints must state',
    request: 'TyrumObligations',
    answer: 'TyrumObligationsKept',
  },
  changeTyrumMemory: {
    method: 'POST',
    path: '/v1/sessions/{id}/tyrum/memory',
    summary:
      "Change an agent's memory: write, correct, forget, consolidate within a budget; without any of these, only " +
      'list it',
    request: 'TyrumMemory',
    answer: 'TyrumMemoryChanged',
  },
  recallTyrumMemory: {
    method: 'POST',
    path: '/v1/sessions/{id}/tyrum/memory/recall',
    summary:
      "Recall from an agent's memory, as a tool call of the session (memory.search, or memory.seed without a query)",
    request: 'TyrumRecall',
    answer: 'TyrumRecalled',
  },
  compactTyrumConversation: {
    method: 'POST',
    path: '/v1/sessions/{id}/tyrum/compact',
    summary:
      'Compact the conversation to a token limit: replace old turns with a summary; pending calls and approvals ' +
      'are kept',
    request: 'TyrumCompaction',
    answer: 'TyrumCompacted',
  },
  getSession: { method: 'GET', path: '/v1/sessions/{id}', summary: 'An open session', answer: 'Session' },
  closeSession: {
    method: 'POST',
    path: '/v1/sessions/{id}/close',
    summary: 'Pause a session by closing it',
    request: 'Nothing',
    answer: 'Closed',
  },
  addNote: {
    method: 'POST',
    path: '/v1/sessions/{id}/notes',
    summary:
      "Add a reviewer's note to a session, a step or an object; the session need not be open, and no context shows it",
    request: 'Note',
    answer: 'NoteAdded',
    statuses: [201],
  },
  changeSets: {
    method: 'POST',
    path: '/v1/sessions/{id}/sets',
    summary:
      'Activate, deactivate, pin or unpin objects as a person, by a step with `by: person`; opens the session if ' +
      'needed',
    request: 'PersonVerb',
    answer: 'SetsChanged',
  },
  undoStep: {
    method: 'POST',
    path: '/v1/sessions/{id}/undo',
    summary: "Revert one step's changes to the sets by a new step, or preview that",
    request: 'Undo',
    answer: 'StepUndone',
  },
  forkSession: {
    method: 'POST',
    path: '/v1/sessions/{id}/fork',
    summary: 'Create a session that starts from this one at a moment; it is not left open',
    request: 'Fork',
    answer: 'Forked',
    statuses: [201],
  },
  copyFiles: {
    method: 'POST',
    path: '/v1/sessions/{id}/restore',
    summary: "Write a session's files as its agent had them at a moment into a new folder",
    request: 'FileCopies',
    answer: 'FilesCopied',
    statuses: [201],
  },
  setSystemPrompt: {
    method: 'PUT',
    path: '/v1/sessions/{id}/system-prompt',
    summary: 'Set the system prompt',
    request: 'SystemPrompt',
    answer: 'Session',
  },
  reportMessages: {
    method: 'POST',
    path: '/v1/sessions/{id}/messages',
    summary: 'Report messages, with their tool calls and results',
    request: 'Messages',
    answer: 'MessagesReport',
  },
  reportToolCalls: {
    method: 'POST',
    path: '/v1/sessions/{id}/tool-calls',
    summary: 'Report finished tool calls',
    request: 'ToolCalls',
    answer: 'ToolCallsReport',
  },
  beginTurn: {
    method: 'POST',
    path: '/v1/sessions/{id}/context',
    summary: 'Begin a turn or step: the context of the next model call',
    request: 'Context',
    answer: 'TurnContext',
  },
  activate: verb('activate', 'Load objects into the active set'),
  deactivate: verb('deactivate', 'Remove objects from the active set'),
  pin: verb('pin', 'Exempt objects from auto-collapse'),
  unpin: verb('unpin', 'Let pinned objects collapse again'),
  addAmplifierMessages: {
    method: 'POST',
    path: '/v1/sessions/{id}/amplifier/messages',
    summary: "Add messages to the list of Amplifier's context manager",
    request: 'AmplifierMessages',
    answer: 'AmplifierAdded',
  },
  getAmplifierMessages: {
    method: 'GET',
    path: '/v1/sessions/{id}/amplifier/messages',
    summary: 'The whole list, as it was given',
    answer: 'AmplifierMessageList',
    kind: 'short',
  },
  setAmplifierMessages: {
    method: 'PUT',
    path: '/v1/sessions/{id}/amplifier/messages',
    summary:
      'Set a whole list: import, extend or ignore it; rejects a list that does not fit ours unless it replaces ours',
    request: 'AmplifierList',
    answer: 'AmplifierListSet',
  },
  clearAmplifierMessages: {
    method: 'POST',
    path: '/v1/sessions/{id}/amplifier/clear',
    summary: 'Clear the list; the session keeps its content',
    request: 'Nothing',
    answer: 'AmplifierCleared',
  },
  viewAmplifierMessages: {
    method: 'POST',
    path: '/v1/sessions/{id}/amplifier/view',
    summary: 'The list within a token limit; the list itself does not change',
    request: 'AmplifierView',
    answer: 'AmplifierMessagesView',
    kind: 'short',
  },
} as const satisfies Readonly<Record<string, ApiOperation>>;

/** An operation's OpenAPI id. */
export type OperationId = keyof typeof OPERATIONS;

/** The path of the OpenAPI document. */
export const OPENAPI_PATH = '/v1/openapi.json';

/** The path of a session's server-sent events; `{id}` is a placeholder for the session. */
export const EVENTS_PATH = '/v1/sessions/{id}/events';

/**
 * A question about the past: a GET whose parameters are in the query; `{id}` in its path is one of
 * them.
 */
export interface ReviewOperation extends ListedOperation {
  readonly answer: ReviewAnswerName | null;
}

/**
 * All questions by their OpenAPI ids. The command line has the same questions under the same names.
 */
export const REVIEW_OPERATIONS = {
  log: {
    path: '/v1/log',
    summary: 'The turns of a session, or the latest of all, or the versions of an object',
    answer: 'Log',
  },
  show: { path: '/v1/show', summary: 'An object at a moment', answer: 'Show' },
  cat: { path: '/v1/cat', summary: "An object's exact text at a moment", answer: null },
  diff: { path: '/v1/diff', summary: 'How an object or a session changed between two moments', answer: 'Diff' },
  diffPrefix: {
    path: '/v1/diff/prefix',
    summary: 'Where the requests of a session diverge from the previous ones, why, and at what cost',
    answer: 'PrefixDiff',
    kind: 'long',
  },
  pastContext: {
    path: '/v1/context',
    summary: 'The delivered context of a session, or the session as of a moment',
    answer: 'PastContext',
  },
  bundle: {
    path: '/v1/sessions/{id}/bundle',
    summary: 'A session as one file for other databases, as gzipped lines; an error breaks the connection off',
    answer: null,
    media: 'application/gzip',
    kind: 'stream',
  },
  notes: { path: '/v1/notes', summary: "Reviewers' notes on a session, its steps and objects", answer: 'Notes' },
  strip: {
    path: '/v1/strip',
    summary: 'A session call by call: the contents of its contexts, and the events between them',
    answer: 'Strip',
  },
  request: {
    path: '/v1/request',
    summary: 'One delivered request, part by part, rebuilt and verified',
    answer: 'Request',
  },
  changes: {
    path: '/v1/changes',
    summary: 'Objects that came, left, changed or moved between two requests, with the actor and the cost',
    answer: 'Changes',
  },
  search: {
    path: '/v1/search',
    summary: 'Search all messages and versions of a session for a text, with the contexts that contained it',
    answer: 'Search',
    kind: 'long',
  },
  verbPrice: {
    path: '/v1/price',
    summary: 'The cost of a verb on an object for the next requests of a session',
    answer: 'VerbPrice',
  },
  restorePlan: {
    path: '/v1/restore',
    summary: "How a session's files on disk differ from those its agent had at a moment",
    answer: 'RestorePlan',
  },
  who: { path: '/v1/who', summary: 'Sessions that saw an object, and when', answer: 'Who' },
  query: { path: '/v1/query', summary: 'A Datalog query, read-only and limited', answer: 'Query' },
  verify: {
    path: '/v1/verify',
    summary:
      'Verify that the database can rebuild every delivered context of a session, byte for byte; stops if the client ' +
      'disconnects',
    answer: 'Verify',
    kind: 'long',
  },
  reportList: {
    path: '/v1/report/list',
    summary: 'The contexts of a session with their sizes',
    answer: 'ReportList',
    kind: 'long',
  },
  reportDetail: { path: '/v1/report/detail', summary: 'One context by section and object', answer: 'ReportDetail' },
  lastContextReport: {
    path: '/context',
    summary: "The last context's report in Tyrum's fields",
    answer: 'TyrumReport',
    kind: 'long',
  },
  listContextReports: {
    path: '/context/list',
    summary: "Reports of contexts in Tyrum's fields",
    answer: 'TyrumReports',
    kind: 'long',
  },
  getContextReport: {
    path: '/context/detail/{id}',
    summary: "One report in Tyrum's fields",
    answer: 'TyrumReport',
    kind: 'long',
  },
  listContextTools: {
    path: '/context/tools',
    summary: 'The tools of a session with the sizes of their schemas',
    answer: 'TyrumTools',
  },
} as const satisfies Readonly<Record<string, ReviewOperation>>;

/** A question's OpenAPI id. */
export type ReviewOperationId = keyof typeof REVIEW_OPERATIONS;

type JsonMap = { readonly [key: string]: unknown };

const ref = (name: string): JsonMap => ({ $ref: `#/components/schemas/${name}` });
const json = (name: string, type = 'application/json'): JsonMap => ({ [type]: { schema: ref(name) } });

/** Returns the JSON Schema of one body, without `$schema` and `$id`. */
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

/** Builds the document's part for an operation; `more` is its request part. */
function operation(id: string, { summary, answer, media, statuses = [200] }: ListedOperation, more: JsonMap): JsonMap {
  const plain =
    media === undefined
      ? { 'text/plain': { schema: { type: 'string' } } }
      : { [media]: { schema: { type: 'string', format: 'binary' } } };
  const content = answer === null ? plain : json(answer);
  const successes = Object.fromEntries(statuses.map((status) => [status, { description: summary, content }]));
  const problem = { description: 'A problem', content: json('Problem', 'application/problem+json') };
  return { operationId: id, summary, ...more, responses: { ...successes, default: problem } };
}

function requestOf({ path, request }: ApiOperation): JsonMap {
  return {
    ...(path.includes('{id}')
      ? {
          parameters: [
            { name: 'id', in: 'path', required: true, description: 'The session', schema: { type: 'string' } },
          ],
        }
      : {}),
    ...(request === undefined
      ? {}
      : { requestBody: { required: !REQUESTS[request].safeParse({}).success, content: json(request) } }),
  };
}

/**
 * Builds one parameter for each member of a schema. Parameters are in the query, except those in
 * the path.
 */
function parametersOf(path: string, schema: z.ZodType): readonly JsonMap[] {
  const { properties = {}, required = [] } = schemaOf(schema, 'input') as {
    properties?: Record<string, JsonMap>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, { description, ...given }]) => ({
    name,
    in: path.includes(`{${name}}`) ? 'path' : 'query',
    required: required.includes(name),
    ...defined({ description }),
    schema: given,
  }));
}

function eventsOperation(): JsonMap {
  const summary =
    'Changes of a session after a transaction, as server-sent events: `change`, with the transaction as id and a ' +
    'StripChange as data';
  const parameters = [
    { name: 'id', in: 'path', required: true, description: 'The session', schema: { type: 'string' } },
    ...parametersOf(EVENTS_PATH, EVENTS_PARAMETERS),
    {
      name: 'Last-Event-ID',
      in: 'header',
      required: false,
      description: 'As `after`, and takes precedence over it',
      schema: { type: 'string' },
    },
  ];
  const problem = { description: 'A problem', content: json('Problem', 'application/problem+json') };
  const responses = {
    200: { description: summary, content: { 'text/event-stream': { schema: { type: 'string' } } } },
    default: problem,
  };
  return { operationId: 'followSession', summary, parameters, responses };
}

/** Builds the OpenAPI 3.1 document from the schemas that validate requests and answers. */
export function openApiDocument(version: string): JsonMap {
  const paths: Record<string, Record<string, JsonMap>> = {};
  for (const [id, given] of Object.entries(OPERATIONS)) {
    paths[given.path] = { ...paths[given.path], [given.method.toLowerCase()]: operation(id, given, requestOf(given)) };
  }
  for (const [id, given] of Object.entries(REVIEW_OPERATIONS)) {
    const parameters = parametersOf(given.path, REVIEW_PARAMETERS[id as ReviewOperationId]);
    paths[given.path] = { ...paths[given.path], get: operation(id, given, { parameters }) };
  }
  paths[EVENTS_PATH] = { get: eventsOperation() };
  return {
    openapi: '3.1.0',
    info: {
      title: 'Palimpsest',
      version,
      description:
        'A bitemporal context service for LLM agents: reports and requests of harnesses, and questions of ' +
        'reviewers about ' +
        'the past.',
    },
    jsonSchemaDialect: 'https://json-schema.org/draft/2020-12/schema',
    security: [{ bearer: [] }],
    paths,
    components: { schemas: schemas(), securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
  };
}

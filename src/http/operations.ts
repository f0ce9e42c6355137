import * as z from 'zod';
import { defined } from '../values/defined.js';
import { ANSWERS, type AnswerName, REQUESTS, type RequestName } from './api-schemas.js';
import type { QuestionKind } from './question-queue.js';
import { EVENTS_PARAMETERS, REVIEW_ANSWERS, REVIEW_PARAMETERS, type ReviewAnswerName } from './review-schemas.js';

interface ListedOperation {
  /** `{id}` stands for a session. */
  readonly path: string;
  readonly summary: string;
  /** The JSON that is answered; null for plain text. */
  readonly answer: AnswerName | ReviewAnswerName | null;
  /** What is answered where it is a file, which comes as it is made. */
  readonly media?: string;
  /** Statuses of success, the usual one first; 200 alone where absent. */
  readonly statuses?: readonly number[];
  /** The queue in which it waits for its turn. */
  readonly kind?: QuestionKind;
}

/** One operation of the interface: what the router matches and the OpenAPI document lists. Only one that may be left undone has a queue: nobody waits for its answer any more. */
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
    summary: 'Tell which tools the model is offered, for the sizes in context reports',
    request: 'Tools',
    answer: 'ToolsAnnounced',
  },
  promptOfTyrum: {
    method: 'POST',
    path: '/v1/sessions/{id}/tyrum/prompt',
    summary:
      "The conversation's checkpoint and the messages behind it, with old tool results pruned as Tyrum does; nothing stored changes",
    request: 'TyrumPrompt',
    answer: 'TyrumPromptMessages',
    kind: 'short',
  },
  getTyrumState: {
    method: 'GET',
    path: '/v1/sessions/{id}/tyrum/state',
    summary: "The conversation's state in the fields of Tyrum: its checkpoint, what waits, what came since",
    answer: 'TyrumConversationState',
    kind: 'short',
  },
  keepTyrumObligations: {
    method: 'POST',
    path: '/v1/sessions/{id}/tyrum/obligations',
    summary: 'Tell which approvals and calls wait, and what checkpoints must say',
    request: 'TyrumObligations',
    answer: 'TyrumObligationsKept',
  },
  changeTyrumMemory: {
    method: 'POST',
    path: '/v1/sessions/{id}/tyrum/memory',
    summary:
      'What an agent remembers: write, correct, forget, consolidate within a budget; without any of these only list',
    request: 'TyrumMemory',
    answer: 'TyrumMemoryChanged',
  },
  recallTyrumMemory: {
    method: 'POST',
    path: '/v1/sessions/{id}/tyrum/memory/recall',
    summary:
      'Recall what an agent remembers, as a tool call of the session (memory.search, or memory.seed without a query)',
    request: 'TyrumRecall',
    answer: 'TyrumRecalled',
  },
  compactTyrumConversation: {
    method: 'POST',
    path: '/v1/sessions/{id}/tyrum/compact',
    summary:
      'The conversation within a limit of tokens: old turns give way to a checkpoint, never at or behind what waits',
    request: 'TyrumCompaction',
    answer: 'TyrumCompacted',
  },
  getSession: { method: 'GET', path: '/v1/sessions/{id}', summary: 'An open session', answer: 'Session' },
  closeSession: {
    method: 'POST',
    path: '/v1/sessions/{id}/close',
    summary: 'Close a session, which pauses it',
    request: 'Nothing',
    answer: 'Closed',
  },
  addNote: {
    method: 'POST',
    path: '/v1/sessions/{id}/notes',
    summary:
      'Say what a reviewer holds of a session, a step or an object; the session need not be open, and no context shows it',
    request: 'Note',
    answer: 'NoteAdded',
    statuses: [201],
  },
  changeSets: {
    method: 'POST',
    path: '/v1/sessions/{id}/sets',
    summary:
      'Activate, deactivate, pin or unpin objects as a person, by a step with `by: person`; the session is opened for it where it is not open here',
    request: 'PersonVerb',
    answer: 'SetsChanged',
  },
  undoStep: {
    method: 'POST',
    path: '/v1/sessions/{id}/undo',
    summary: 'Take back what one step did to the sets, by a step of its own, or tell what that would be',
    request: 'Undo',
    answer: 'StepUndone',
  },
  forkSession: {
    method: 'POST',
    path: '/v1/sessions/{id}/fork',
    summary: 'Make a new session that begins where this one stood at a moment; it is not left open',
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
      'Set a whole list: imported, extended or ignored; refused where it does not fit, unless it is to replace ours',
    request: 'AmplifierList',
    answer: 'AmplifierListSet',
  },
  clearAmplifierMessages: {
    method: 'POST',
    path: '/v1/sessions/{id}/amplifier/clear',
    summary: 'Begin the list anew; the session keeps what it has',
    request: 'Nothing',
    answer: 'AmplifierCleared',
  },
  viewAmplifierMessages: {
    method: 'POST',
    path: '/v1/sessions/{id}/amplifier/view',
    summary: 'The list within a limit of tokens; nothing of the list changes',
    request: 'AmplifierView',
    answer: 'AmplifierMessagesView',
    kind: 'short',
  },
} as const satisfies Readonly<Record<string, ApiOperation>>;

/** An operation by its OpenAPI id. */
export type OperationId = keyof typeof OPERATIONS;

/** Where the description of the interface itself is served. */
export const OPENAPI_PATH = '/v1/openapi.json';

/** What happens in a session, as server-sent events; `{id}` stands for it. */
export const EVENTS_PATH = '/v1/sessions/{id}/events';

/** A question about the past: a GET whose parameters stand in the query of its address; `{id}` in its path is one of them. */
export interface ReviewOperation extends ListedOperation {
  readonly answer: ReviewAnswerName | null;
}

/** All questions by their OpenAPI ids; the command line has the same by the same names. */
export const REVIEW_OPERATIONS = {
  log: {
    path: '/v1/log',
    summary: 'The turns of a session, or the latest of all, or the versions of an object',
    answer: 'Log',
  },
  show: { path: '/v1/show', summary: 'An object at a moment', answer: 'Show' },
  cat: { path: '/v1/cat', summary: "An object's text at a moment, as it is", answer: null },
  diff: { path: '/v1/diff', summary: 'How an object or a session changed between two moments', answer: 'Diff' },
  diffPrefix: {
    path: '/v1/diff/prefix',
    summary: 'Where the requests of a session part from the ones before them, why, and what that costs',
    answer: 'PrefixDiff',
    kind: 'long',
  },
  pastContext: {
    path: '/v1/context',
    summary: 'The context of a session as it was handed out, or as it stood at a moment',
    answer: 'PastContext',
  },
  bundle: {
    path: '/v1/sessions/{id}/bundle',
    summary:
      'A session as one file for other databases, gzip of lines; one that ends before its end breaks the connection off',
    answer: null,
    media: 'application/gzip',
    kind: 'stream',
  },
  notes: { path: '/v1/notes', summary: 'What reviewers said of a session, its steps and objects', answer: 'Notes' },
  strip: {
    path: '/v1/strip',
    summary: 'A session call by call: what its contexts were made of, and what happened between them',
    answer: 'Strip',
  },
  request: {
    path: '/v1/request',
    summary: 'One request as it was handed out, part by part, made again and checked',
    answer: 'Request',
  },
  changes: {
    path: '/v1/changes',
    summary: 'What came, left, changed and moved from one request to another, who brought it about, and what it costs',
    answer: 'Changes',
  },
  search: {
    path: '/v1/search',
    summary: 'A text in every message and every version of a session, and in which contexts it stood',
    answer: 'Search',
    kind: 'long',
  },
  verbPrice: {
    path: '/v1/price',
    summary: 'What a verb on an object would cost the next requests of a session',
    answer: 'VerbPrice',
  },
  restorePlan: {
    path: '/v1/restore',
    summary: "How a session's files on disk differ from what its agent had at a moment",
    answer: 'RestorePlan',
  },
  who: { path: '/v1/who', summary: 'Which sessions saw an object, and when', answer: 'Who' },
  query: { path: '/v1/query', summary: 'A Datalog query, read-only and limited', answer: 'Query' },
  verify: {
    path: '/v1/verify',
    summary:
      'Whether what was handed out of a session can be made again from the database, byte for byte; stops when its client goes away',
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
    summary: "The last context's report in the fields of Tyrum",
    answer: 'TyrumReport',
    kind: 'long',
  },
  listContextReports: {
    path: '/context/list',
    summary: 'Reports of contexts in the fields of Tyrum',
    answer: 'TyrumReports',
    kind: 'long',
  },
  getContextReport: {
    path: '/context/detail/{id}',
    summary: 'One report in the fields of Tyrum',
    answer: 'TyrumReport',
    kind: 'long',
  },
  listContextTools: {
    path: '/context/tools',
    summary: 'The tools of a session with the sizes of their schemas',
    answer: 'TyrumTools',
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

/** What the document says of any operation; `more` is what it is asked with. */
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

/** One parameter for each member of a schema of parameters; in the query, but for one that the path names. */
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
    'What happens in a session from a transaction on, as server-sent events: `change`, whose id is the transaction and whose data is a StripChange';
  const parameters = [
    { name: 'id', in: 'path', required: true, description: 'The session', schema: { type: 'string' } },
    ...parametersOf(EVENTS_PATH, EVENTS_PARAMETERS),
    {
      name: 'Last-Event-ID',
      in: 'header',
      required: false,
      description: 'As `after`, which it goes before',
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

/** The OpenAPI 3.1 document of the interface, made from the schemas that requests and answers are checked with. */
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
        'A bitemporal context service for LLM agents: what a harness reports and asks, and what its reviewers ask about the past.',
    },
    jsonSchemaDialect: 'https://json-schema.org/draft/2020-12/schema',
    security: [{ bearer: [] }],
    paths,
    components: { schemas: schemas(), securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
  };
}

import type { AnswerName, RequestName } from './api-schemas.js';
import type { QuestionKind } from './question-queue.js';

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

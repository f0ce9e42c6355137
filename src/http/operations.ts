import type { AnswerName, RequestName } from './api-schemas.js';
import type { QuestionKind } from './http-contract.js';

/**
 * One operation of the interface: the router matches it and the OpenAPI document lists it. Only
 * operations that may be abandoned have a queue, because their client may have gone.
 */
export interface ApiOperation {
  readonly method: 'GET' | 'POST' | 'PUT';
  /** `{id}` is a placeholder for a session. */
  readonly path: string;
  readonly summary: string;
  readonly request?: RequestName;
  /** One body. */
  readonly example?: Readonly<Record<string, unknown>>;
  readonly answer: AnswerName;
  /** Success statuses, the usual one first; default: only 200. */
  readonly statuses?: readonly number[];
  /** The queue of the operation. */
  readonly kind?: QuestionKind;
}

const verb = (name: string, summary: string) =>
  ({
    method: 'POST',
    path: `/v1/sessions/{id}/${name}`,
    summary,
    request: 'Verb',
    example: { ids: ['src/cart.ts'] },
    answer: 'VerbReport',
  }) as const;

/** All operations by their OpenAPI ids. */
export const OPERATIONS = {
  openSession: {
    method: 'POST',
    path: '/v1/sessions',
    summary: 'Open, resume or fork a session',
    request: 'OpenSession',
    example: { id: 'fix-cart', system_prompt: 'You are careful.' },
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
  getSession: { method: 'GET', path: '/v1/sessions/{id}', summary: 'An open session', answer: 'Session' },
  closeSession: {
    method: 'POST',
    path: '/v1/sessions/{id}/close',
    summary: 'Pause a session by closing it',
    request: 'Nothing',
    example: {},
    answer: 'Closed',
  },
  addNote: {
    method: 'POST',
    path: '/v1/sessions/{id}/notes',
    summary:
      "Add a reviewer's note to a session, a step or an object; the session need not be open, and no context shows it",
    request: 'Note',
    example: { at: 'turn:7', verdict: 'wrong', text: 'It had not read src/cart.ts.', by: 'Ada' },
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
    example: { verb: 'pin', ids: ['src/cart.ts'] },
    answer: 'SetsChanged',
  },
  undoStep: {
    method: 'POST',
    path: '/v1/sessions/{id}/undo',
    summary: "Revert one step's changes to the sets by a new step, or preview that",
    request: 'Undo',
    example: { step: 41, plan: true },
    answer: 'StepUndone',
  },
  forkSession: {
    method: 'POST',
    path: '/v1/sessions/{id}/fork',
    summary: 'Create a session that starts from this one at a moment; it is not left open',
    request: 'Fork',
    example: { at: 'turn:7', id: 'other-way' },
    answer: 'Forked',
    statuses: [201],
  },
  copyFiles: {
    method: 'POST',
    path: '/v1/sessions/{id}/restore',
    summary: "Write a session's files as its agent had them at a moment into a new folder",
    request: 'FileCopies',
    example: { at: 'turn:7', to: 'restored' },
    answer: 'FilesCopied',
    statuses: [201],
  },
  setSystemPrompt: {
    method: 'PUT',
    path: '/v1/sessions/{id}/system-prompt',
    summary: 'Set the system prompt',
    request: 'SystemPrompt',
    example: { text: 'You are careful.' },
    answer: 'Session',
  },
  reportMessages: {
    method: 'POST',
    path: '/v1/sessions/{id}/messages',
    summary: 'Report messages, with their tool calls and results',
    request: 'Messages',
    example: { messages: [{ role: 'user', content: 'Why does the cart round up?' }] },
    answer: 'MessagesReport',
  },
  reportToolCalls: {
    method: 'POST',
    path: '/v1/sessions/{id}/tool-calls',
    summary: 'Report finished tool calls',
    request: 'ToolCalls',
    example: {
      calls: [{ id: 'call_1', name: 'read', args: { path: 'src/cart.ts' }, content: 'sum = Math.ceil(sum);' }],
    },
    answer: 'ToolCallsReport',
  },
  beginTurn: {
    method: 'POST',
    path: '/v1/sessions/{id}/context',
    summary: 'Begin a turn or step: the context of the next model call',
    request: 'Context',
    example: { format: 'messages', layout: 'epoch', model: 'claude-sonnet-4-5' },
    answer: 'TurnContext',
  },
  activate: verb('activate', 'Load objects into the active set'),
  deactivate: verb('deactivate', 'Remove objects from the active set'),
  pin: verb('pin', 'Exempt objects from auto-collapse'),
  unpin: verb('unpin', 'Let pinned objects collapse again'),
} as const satisfies Readonly<Record<string, ApiOperation>>;

/** An operation's OpenAPI id. */
export type OperationId = keyof typeof OPERATIONS;

/** The path of the OpenAPI document. */
export const OPENAPI_PATH = '/v1/openapi.json';

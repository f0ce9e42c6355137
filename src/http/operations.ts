import type { AnswerName, RequestName } from './api-schemas.js';
import type { QuestionKind } from './question-queue.js';
import type { ReviewAnswerName } from './review-schemas.js';

/** The entry of an operation in the OpenAPI document. */
export interface ListedOperation {
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

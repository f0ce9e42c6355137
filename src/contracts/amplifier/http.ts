import { sessionEntries } from '../../harness/http/session-entries.js';
import type { HttpContract } from '../../http/http-contract.js';
import { AmplifierError, type AmplifierErrorCode } from './amplifier-error.js';
import {
  addAmplifierMessages,
  amplifierMessages,
  clearAmplifierMessages,
  setAmplifierMessages,
  viewAmplifierMessages,
} from './http-handlers.js';
import { AMPLIFIER_ANSWERS, AMPLIFIER_REQUESTS } from './http-schemas.js';

const { onStored } = sessionEntries({ requests: AMPLIFIER_REQUESTS, answers: AMPLIFIER_ANSWERS });

const STATUS: Readonly<Record<AmplifierErrorCode, number>> = { 'other-history': 409 };

/** The operations of Amplifier's context manager over HTTP, by OpenAPI id. */
export const AMPLIFIER_OPERATIONS = {
  addAmplifierMessages: onStored({
    method: 'POST',
    path: '/v1/sessions/{id}/amplifier/messages',
    summary: "Add messages to the list of Amplifier's context manager",
    request: 'AmplifierMessages',
    example: { messages: [{ id: 'm1', message: { role: 'user', content: 'Why does the cart round up?' } }] },
    answer: 'AmplifierAdded',
    handle: addAmplifierMessages,
  }),
  getAmplifierMessages: onStored({
    method: 'GET',
    path: '/v1/sessions/{id}/amplifier/messages',
    summary: 'The whole list, as it was given',
    answer: 'AmplifierMessageList',
    kind: 'short',
    handle: amplifierMessages,
  }),
  setAmplifierMessages: onStored({
    method: 'PUT',
    path: '/v1/sessions/{id}/amplifier/messages',
    summary:
      'Set the whole list: it is imported, extends the stored list, or changes nothing; a list that does not fit ' +
      'the stored one needs replace',
    request: 'AmplifierList',
    example: { messages: [{ id: 'm1', message: { role: 'user', content: 'Start again.' } }], replace: true },
    answer: 'AmplifierListSet',
    handle: setAmplifierMessages,
  }),
  clearAmplifierMessages: onStored({
    method: 'POST',
    path: '/v1/sessions/{id}/amplifier/clear',
    summary: 'Clear the list; the session keeps its content',
    request: 'Nothing',
    example: {},
    answer: 'AmplifierCleared',
    handle: clearAmplifierMessages,
  }),
  viewAmplifierMessages: onStored({
    method: 'POST',
    path: '/v1/sessions/{id}/amplifier/view',
    summary: 'The list within a token limit; the list itself does not change',
    request: 'AmplifierView',
    example: { budget: 32_000, protected_tool_results: 3 },
    answer: 'AmplifierMessagesView',
    kind: 'short',
    handle: viewAmplifierMessages,
  }),
};

/** The HTTP interface of Amplifier's contract. */
export const AMPLIFIER_HTTP: HttpContract = {
  requests: AMPLIFIER_REQUESTS,
  answers: AMPLIFIER_ANSWERS,
  operations: AMPLIFIER_OPERATIONS,
  statusOf: (error) =>
    error instanceof AmplifierError ? { status: STATUS[error.code], title: 'The list does not fit' } : undefined,
};

import * as z from 'zod';
import { sessionEntries } from '../../harness/http/session-entries.js';
import { contractEntries, type HttpContract } from '../../http/http-contract.js';
import {
  announceTools,
  compactTyrumConversation,
  keepTyrumObligations,
  promptOfTyrum,
  tyrumState,
} from './http-handlers.js';
import { changeTyrumMemory, recallTyrumMemory } from './http-memory.js';
import { announcedTools, lastReport, reportDetail, reportList } from './http-reports.js';
import { TYRUM_ANSWERS, TYRUM_REQUESTS } from './http-schemas.js';
import { TyrumError, type TyrumErrorCode } from './tyrum-error.js';

const { question } = contractEntries({ requests: {}, answers: TYRUM_ANSWERS });
const { onStored } = sessionEntries({ requests: TYRUM_REQUESTS, answers: TYRUM_ANSWERS });

/** The HTTP status of each error, and Tyrum's own code for it. */
const STATUS: Readonly<Record<TyrumErrorCode, readonly [number, string]>> = {
  'invalid-settings': [400, 'invalid_request'],
  'unknown-report': [404, 'not_found'],
  'checkpoint-refused': [409, 'checkpoint_refused'],
  'invalid-memory': [400, 'invalid_request'],
  'unknown-memory': [404, 'not_found'],
};

/** Tyrum's operations, by OpenAPI id. */
export const TYRUM_OPERATIONS = {
  announceTools: onStored({
    method: 'PUT',
    path: '/v1/sessions/{id}/tools',
    summary: 'Announce the tools of the model, for the sizes in context reports',
    request: 'Tools',
    example: { tools: [{ id: 'shell', chars: 812 }], skills: ['review'] },
    answer: 'ToolsAnnounced',
    handle: announceTools,
  }),
  promptOfTyrum: onStored({
    method: 'POST',
    path: '/v1/sessions/{id}/tyrum/prompt',
    summary:
      "The conversation's checkpoint and the messages after it, with old tool results pruned as Tyrum does; " +
      'stored data does not change',
    request: 'TyrumPrompt',
    example: { max_messages: 40 },
    answer: 'TyrumPromptMessages',
    kind: 'short',
    handle: promptOfTyrum,
  }),
  getTyrumState: onStored({
    method: 'GET',
    path: '/v1/sessions/{id}/tyrum/state',
    summary: "The conversation's state in Tyrum's fields: its checkpoint, pending items, and later messages",
    answer: 'TyrumConversationState',
    kind: 'short',
    handle: tyrumState,
  }),
  keepTyrumObligations: onStored({
    method: 'POST',
    path: '/v1/sessions/{id}/tyrum/obligations',
    summary: 'Report pending approvals and calls, and facts that checkpoints must state',
    request: 'TyrumObligations',
    example: { notes: [{ name: 'currency', note: 'constraint', text: 'Amounts are in cents.' }] },
    answer: 'TyrumObligationsKept',
    handle: keepTyrumObligations,
  }),
  changeTyrumMemory: onStored({
    method: 'POST',
    path: '/v1/sessions/{id}/tyrum/memory',
    summary:
      "Change an agent's memory: write, correct, forget, consolidate within a budget; without any of these, only " +
      'list it',
    request: 'TyrumMemory',
    example: { agent: 'ada', put: [{ kind: 'note', title: 'Rounding', body_md: 'Amounts are in cents.' }] },
    answer: 'TyrumMemoryChanged',
    handle: changeTyrumMemory,
  }),
  recallTyrumMemory: onStored({
    method: 'POST',
    path: '/v1/sessions/{id}/tyrum/memory/recall',
    summary:
      "Recall from an agent's memory, as a tool call of the session (memory.search, or memory.seed without a query)",
    request: 'TyrumRecall',
    example: { agent: 'ada', query: 'rounding', limit: 5 },
    answer: 'TyrumRecalled',
    handle: recallTyrumMemory,
  }),
  compactTyrumConversation: onStored({
    method: 'POST',
    path: '/v1/sessions/{id}/tyrum/compact',
    summary:
      'Compact the conversation to a token limit: replace old turns with a summary; pending calls and approvals ' +
      'are kept',
    request: 'TyrumCompaction',
    example: { max_tokens: 32_000, reason: 'manual', preview: true },
    answer: 'TyrumCompacted',
    handle: compactTyrumConversation,
  }),
};

const sessionName = z.string().min(1).max(600).describe('Id of a session, or a unique prefix of it');
const inConversation = sessionName
  .optional()
  .describe('A session. Default: the most recently used one; for a list, all sessions');

/** Tyrum's read-only routes about contexts, by OpenAPI id. */
export const TYRUM_QUESTIONS = {
  lastContextReport: question({
    path: '/context',
    summary: "The last context's report in Tyrum's fields",
    parameters: z.strictObject({ conversation_id: inConversation }),
    example: { conversation_id: 'fix-cart' },
    answer: 'TyrumReport',
    kind: 'long',
    ask: lastReport,
  }),
  listContextReports: question({
    path: '/context/list',
    summary: "Reports of contexts in Tyrum's fields",
    parameters: z.strictObject({
      conversation_id: inConversation,
      turn_id: z.string().min(1).max(700).optional().describe('A turn, as the list names it: SESSION@turn:7'),
      limit: z.coerce.number().int().min(1).max(500).optional().describe('Default 50'),
    }),
    example: { conversation_id: 'fix-cart', limit: '20' },
    answer: 'TyrumReports',
    kind: 'long',
    ask: reportList,
  }),
  getContextReport: question({
    path: '/context/detail/{id}',
    summary: "One report in Tyrum's fields",
    parameters: z.strictObject({
      id: z.uuid().describe('The context_report_id'),
      conversation_id: inConversation.describe('The searched session; default: all'),
    }),
    example: { id: '5f0c6c3e-58a5-4f6b-9d3a-0d4f7a1c2b3e' },
    answer: 'TyrumReport',
    kind: 'long',
    ask: reportDetail,
  }),
  listContextTools: question({
    path: '/context/tools',
    summary: 'The tools of a session with the sizes of their schemas',
    parameters: z.strictObject({ conversation_id: inConversation }),
    example: { conversation_id: 'fix-cart' },
    answer: 'TyrumTools',
    ask: announcedTools,
  }),
};

/** The HTTP interface of Tyrum's contract. */
export const TYRUM_HTTP = {
  requests: TYRUM_REQUESTS,
  answers: TYRUM_ANSWERS,
  operations: TYRUM_OPERATIONS,
  questions: TYRUM_QUESTIONS,
  problem: { error: z.string().optional().describe("Tyrum's code for it, if Tyrum has one") },
  statusOf: (error: unknown) => {
    if (!(error instanceof TyrumError)) return undefined;
    const [status, word] = STATUS[error.code];
    return { status, title: 'Not possible in Tyrum terms', members: { error: word } };
  },
} satisfies HttpContract;

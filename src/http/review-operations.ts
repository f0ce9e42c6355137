import type { ListedOperation } from './operations.js';
import type { ReviewAnswerName } from './review-schemas.js';

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
    example: { session: 'fix-cart', limit: '20' },
    answer: 'Log',
  },
  show: {
    path: '/v1/show',
    summary: 'An object at a moment',
    example: { object: 'src/cart.ts', at: 'turn:7', session: 'fix-cart' },
    answer: 'Show',
  },
  cat: {
    path: '/v1/cat',
    summary: "An object's exact text at a moment",
    example: { object: 'src/cart.ts@2026-11-20T09:00:00Z' },
    answer: null,
  },
  diff: {
    path: '/v1/diff',
    summary: 'How an object or a session changed between two moments',
    example: { object: 'src/cart.ts', session: 'fix-cart', range: '3..7' },
    answer: 'Diff',
  },
  diffPrefix: {
    path: '/v1/diff/prefix',
    summary: 'Where the requests of a session diverge from the previous ones, why, and at what cost',
    example: { session: 'fix-cart' },
    answer: 'PrefixDiff',
    kind: 'long',
  },
  pastContext: {
    path: '/v1/context',
    summary: 'The delivered context of a session, or the session as of a moment',
    example: { session: 'fix-cart@turn:7' },
    answer: 'PastContext',
  },
  bundle: {
    path: '/v1/sessions/{id}/bundle',
    summary: 'A session as one file for other databases, as gzipped lines; an error breaks the connection off',
    example: { id: 'fix-cart' },
    answer: null,
    media: 'application/gzip',
    kind: 'stream',
  },
  notes: {
    path: '/v1/notes',
    summary: "Reviewers' notes on a session, its steps and objects",
    example: { session: 'fix-cart' },
    answer: 'Notes',
  },
  strip: {
    path: '/v1/strip',
    summary: 'A session call by call: the contents of its contexts, and the events between them',
    example: { session: 'fix-cart' },
    answer: 'Strip',
  },
  request: {
    path: '/v1/request',
    summary: 'One delivered request, part by part, rebuilt and verified',
    example: { session: 'fix-cart', at: 'turn:7' },
    answer: 'Request',
  },
  changes: {
    path: '/v1/changes',
    summary: 'Objects that came, left, changed or moved between two requests, with the actor and the cost',
    example: { session: 'fix-cart', range: 'turn:6..turn:7' },
    answer: 'Changes',
  },
  search: {
    path: '/v1/search',
    summary: 'Search all messages and versions of a session for a text, with the contexts that contained it',
    example: { session: 'fix-cart', text: 'Math.ceil' },
    answer: 'Search',
    kind: 'long',
  },
  verbPrice: {
    path: '/v1/price',
    summary: 'The cost of a verb on an object for the next requests of a session',
    example: { session: 'fix-cart', verb: 'deactivate', object: 'src/cart.ts' },
    answer: 'VerbPrice',
  },
  restorePlan: {
    path: '/v1/restore',
    summary: "How a session's files on disk differ from those its agent had at a moment",
    example: { session: 'fix-cart', at: 'turn:7' },
    answer: 'RestorePlan',
  },
  who: {
    path: '/v1/who',
    summary: 'Sessions that saw an object, and when',
    example: { object: 'src/cart.ts' },
    answer: 'Who',
  },
  query: {
    path: '/v1/query',
    summary: 'A Datalog query, read-only and limited',
    example: { query: '[:find ?e :where [?e :tool "bash"]]', limit: '20' },
    answer: 'Query',
  },
  verify: {
    path: '/v1/verify',
    summary:
      'Verify that the database can rebuild every delivered context of a session, byte for byte; stops if the client ' +
      'disconnects',
    example: { session: 'fix-cart' },
    answer: 'Verify',
    kind: 'long',
  },
  reportList: {
    path: '/v1/report/list',
    summary: 'The contexts of a session with their sizes',
    example: { session: 'fix-cart' },
    answer: 'ReportList',
    kind: 'long',
  },
  reportDetail: {
    path: '/v1/report/detail',
    summary: 'One context by section and object',
    example: { session: 'fix-cart@turn:7' },
    answer: 'ReportDetail',
  },
} as const satisfies Readonly<Record<string, ReviewOperation>>;

/** A question's OpenAPI id. */
export type ReviewOperationId = keyof typeof REVIEW_OPERATIONS;

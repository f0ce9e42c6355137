import type { QuestionKind } from './question-queue.js';
import type { ReviewAnswerName, ReviewVerb } from './review-schemas.js';

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

import type { ServerResponse } from 'node:http';
import { SourceError, type SourceErrorCode } from '../filesystem/access/errors.js';
import { HistoryError, type HistoryErrorCode } from '../history/rebuild/history-error.js';
import { JournalError, type JournalErrorCode } from '../journal/errors.js';
import { NodeError } from '../node/errors.js';
import { DocumentError } from '../objects/errors.js';
import { SessionError, type SessionErrorCode } from '../session/errors.js';
import { CodedError } from '../values/coded-error.js';
import { codeOf, messageOf } from '../values/thrown.js';
import { XtdbError, type XtdbErrorCode } from '../xtdb/errors.js';
import type { AnswerBody } from './api-schemas.js';

/** The HTTP answer to an error of a contract. */
export interface ErrorStatus {
  readonly status: number;
  readonly title: string;
  /** Members of the problem beyond RFC 9457, as `problem` of the contract declares them. */
  readonly members?: Readonly<Record<string, string>>;
}

/** Knows the status of some errors. */
interface ErrorStatuses {
  statusOf?(error: unknown): ErrorStatus | undefined;
}

/** An error in one place of a request. */
export interface ProblemPlace {
  /** JSON pointer into the body. */
  readonly pointer: string;
  readonly detail: string;
}

/** The problem of an answer [RFC 9457]; callers branch on `code`. */
export type Problem = AnswerBody<'Problem'>;

/**
 * Status and title of the interface's own codes. All other codes come from errors of lower layers.
 */
const OWN = {
  'invalid-request': [400, 'The request is invalid'],
  unauthorized: [401, 'A token is required'],
  forbidden: [403, 'The request is not allowed'],
  'not-found': [404, 'Not found'],
  'session-not-open': [404, 'The session is not open'],
  'method-not-allowed': [405, 'The method is not allowed here'],
  'body-too-large': [413, 'The body is too large'],
  'not-json': [415, 'The body is not JSON'],
  'too-many-questions': [503, 'Too many questions at once'],
  'node-starting': [503, 'The database is still starting'],
  internal: [500, 'Internal error'],
} as const satisfies Readonly<Record<string, readonly [number, string]>>;

/** Codes of requests that the interface itself rejects. */
export type ApiErrorCode = keyof typeof OWN;

/** Thrown for requests that the interface itself rejects. */
export class ApiError extends CodedError<ApiErrorCode> {
  override readonly name = 'ApiError';
  readonly places: readonly ProblemPlace[];

  constructor(code: ApiErrorCode, message: string, places: readonly ProblemPlace[] = []) {
    super(code, message);
    this.places = places;
  }
}

const SESSION: Readonly<Record<SessionErrorCode, number>> = {
  'sequence-gap': 409,
  'out-of-order': 409,
  'wrong-session': 409,
  'unknown-object': 404,
  'infrastructure-object': 400,
  'repeated-call': 409,
  'invalid-message': 400,
  'unknown-session': 404,
  erased: 410,
  'session-exists': 409,
  'turn-running': 409,
  closed: 409,
  'other-roots': 403,
  'lease-held': 409,
  'nothing-to-undo': 409,
  'changed-since': 409,
  'taken-over': 409,
  'not-kept': 409,
  'node-unavailable': 503,
};

const XTDB: Readonly<Record<XtdbErrorCode, number>> = {
  unreachable: 503,
  timeout: 504,
  aborted: 503,
  'bad-request': 500,
  'out-of-sync': 503,
  unauthorised: 502,
  forbidden: 502,
  'too-large': 413,
  busy: 503,
  'server-error': 502,
  'ingester-failed': 503,
  'cut-off': 502,
  'bad-response': 502,
  closed: 503,
};

const JOURNAL: Readonly<Record<JournalErrorCode, number>> = {
  full: 503,
  'no-space': 507,
  io: 500,
  unwritable: 500,
  corrupt: 500,
  'newer-format': 500,
  'bad-payload': 500,
  closed: 503,
};

const SOURCE: Readonly<Partial<Record<SourceErrorCode, number>>> = {
  'not-found': 404,
  'outside-roots': 403,
  'no-permission': 403,
};

const HISTORY: Readonly<Record<HistoryErrorCode, number>> = {
  'unknown-session': 404,
  'unknown-object': 404,
  erased: 410,
  ambiguous: 409,
  'beyond-end': 404,
  'malformed-moment': 400,
  'which-session': 400,
  'not-yet': 404,
  'not-seen': 404,
  'foreign-session': 409,
  'no-content': 409,
  'wrong-kind': 400,
  'empty-note': 400,
  'malformed-pattern': 400,
  'malformed-query': 400,
  'query-refused': 403,
  'query-too-wide': 413,
  'query-timeout': 504,
  'verify-timeout': 504,
  'newer-renderer': 501,
  'other-steps': 409,
};

function statusOf(error: unknown): readonly [number, string] | undefined {
  if (error instanceof ApiError) return OWN[error.code];
  if (error instanceof SessionError) return [SESSION[error.code], 'The session does not allow it'];
  if (error instanceof DocumentError) return [400, 'A value cannot be stored'];
  if (error instanceof SourceError) return [SOURCE[error.code] ?? 400, 'A file cannot be used'];
  if (error instanceof JournalError) return [JOURNAL[error.code], 'Nothing can be acknowledged'];
  if (error instanceof HistoryError) return [HISTORY[error.code], 'The question cannot be answered'];
  if (error instanceof NodeError) return [503, 'The database cannot be started'];
  if (error instanceof XtdbError) return [XTDB[error.code], 'The database does not answer as it should'];
  return undefined;
}

/**
 * Converts an error to a problem. Each contract knows its own errors. The problem of an unknown
 * error reveals no internals.
 */
export function problemOf(error: unknown, contracts: readonly ErrorStatuses[] = []): Problem {
  const own = statusOf(error);
  const known =
    own === undefined
      ? contracts.flatMap((contract) => contract.statusOf?.(error) ?? [])[0]
      : { status: own[0], title: own[1], members: undefined };
  const [status, title] = known === undefined ? OWN.internal : [known.status, known.title];
  const [code, detail] =
    known === undefined
      ? ['internal', "See the server's log for details."]
      : [codeOf(error) ?? 'internal', messageOf(error)];
  const problem = { type: `urn:palimpsest:problem:${code}`, title, status, detail, code, ...known?.members };
  return error instanceof ApiError && error.places.length > 0 ? { ...problem, errors: [...error.places] } : problem;
}

/** Sends a problem. */
export function sendProblem(
  response: ServerResponse,
  problem: Problem,
  headers: Readonly<Record<string, string>> = {},
): void {
  const retry = problem.status === 503 ? { 'retry-after': '5' } : {};
  response.writeHead(problem.status, { 'content-type': 'application/problem+json', ...retry, ...headers });
  response.end(JSON.stringify(problem));
}

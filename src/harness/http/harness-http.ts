import type { HttpContract } from '../../http/http-contract.js';
import { showsShortIds } from '../../session/object-reference.js';
import { HarnessError, type HarnessErrorCode } from '../harness-error.js';
import { holdSessions } from './session-entries.js';
import { SESSION_OPERATIONS } from './session-operations.js';
import { SESSION_ANSWERS, SESSION_REQUESTS } from './session-schemas.js';

const STATUS: Readonly<Record<HarnessErrorCode, number>> = {
  'unknown-call': 409,
  'no-such-session': 404,
  'not-in-epochs': 400,
  'not-available': 501,
};

/** The HTTP interface for harnesses. It keeps their sessions open between requests. */
export const HARNESS_HTTP: HttpContract = {
  requests: SESSION_REQUESTS,
  answers: SESSION_ANSWERS,
  operations: SESSION_OPERATIONS,
  hold: (backend, { tools }) =>
    holdSessions(backend, { strict: tools.strict ?? false, shortIds: showsShortIds(tools) }),
  statusOf: (error) =>
    error instanceof HarnessError ? { status: STATUS[error.code], title: 'The report does not fit' } : undefined,
};

import { CodedError } from '../values/coded-error.js';
import { defined } from '../values/defined.js';

/** Failures between us and the database. */
export type XtdbErrorCode =
  /**
   * No connection, or a broken one: the node is not running or went away during the request. Also
   * used if a server behind the node is unreachable, such as PostgreSQL.
   */
  | 'unreachable'
  /** The request exceeded its time limit. */
  | 'timeout'
  /** The caller's AbortSignal fired. */
  | 'aborted'
  /** The request is invalid: rejected by us before it was sent, or by the node. */
  | 'bad-request'
  /** The requested basis is ahead of the node's index. */
  | 'out-of-sync'
  | 'unauthorised'
  /** Rejected by policy, such as a write to a read-only node. */
  | 'forbidden'
  /** The request or the answer is larger than allowed. */
  | 'too-large'
  /** The node is at its limit of concurrent work; the same request may succeed later. */
  | 'busy'
  | 'server-error'
  /**
   * The node's indexer has stopped: it answers stale data and accepts no transaction until it is
   * restarted.
   */
  | 'ingester-failed'
  /**
   * The connection ended in the middle of an answer: the node was killed, or could not read or send
   * the rest.
   */
  | 'cut-off'
  /**
   * The answer is neither EDN nor transit, or does not fit the request. Also used if its body
   * arrived completely but its last form is incomplete.
   */
  | 'bad-response'
  /** The client was closed. */
  | 'closed';

/** Further details of an XtdbError. */
export interface XtdbErrorDetails {
  /** The HTTP status, if there was an answer. */
  readonly status?: number;
  /** XTDB's own `:xtdb.error/error-key`; its namespace is not interpreted. */
  readonly errorKey?: string;
  /** True if the node may have accepted a transaction whose outcome is unknown. */
  readonly outcomeUnknown?: boolean;
  /** The id of that transaction, if its receipt arrived. */
  readonly txId?: number;
  readonly cause?: unknown;
}

/**
 * A failed request to the database.
 *
 * Callers match `code`. Messages contain the request's method and path and the database's own error
 * key and message, cut to a bounded length. They never contain a document, a query argument or a
 * token.
 *
 * @example
 * ```ts
 * if (error instanceof XtdbError && error.code === 'busy') show('try again');
 * ```
 */
export class XtdbError extends CodedError<XtdbErrorCode> {
  override readonly name = 'XtdbError';
  readonly status: number | undefined;
  readonly errorKey: string | undefined;
  /**
   * True if the node may have accepted a submission whose outcome is unknown. With a `txId`, query
   * its outcome again. Without it, the receipt was lost: search the transaction log before you
   * resend.
   */
  readonly outcomeUnknown: boolean;
  readonly txId: number | undefined;

  constructor(code: XtdbErrorCode, message: string, details: XtdbErrorDetails = {}) {
    super(code, message, details);
    this.status = details.status;
    this.errorKey = details.errorKey;
    this.outcomeUnknown = details.outcomeUnknown ?? false;
    this.txId = details.txId;
  }

  /** Returns the same failure, marked with an unknown outcome of the submission. */
  withUnknownOutcome(txId?: number): XtdbError {
    const open =
      txId === undefined
        ? 'It is unknown whether the node accepted the transaction.'
        : `The outcome of transaction ${txId} is unknown.`;
    return new XtdbError(this.code, `${this.message} ${open}`, {
      ...defined({ status: this.status, errorKey: this.errorKey, txId }),
      outcomeUnknown: true,
      cause: this.cause,
    });
  }
}

/** Codes of a temporary outage. */
const OUTAGE: ReadonlySet<XtdbErrorCode> = new Set(['unreachable', 'timeout', 'busy']);

/**
 * Returns whether a failure only means that the database does not answer now. Work that does not
 * need it continues.
 */
export const isOutage = (error: unknown): error is XtdbError => error instanceof XtdbError && OUTAGE.has(error.code);

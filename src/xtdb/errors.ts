import { CodedError } from '../values/coded-error.js';
import { defined } from '../values/defined.js';

/** What can go wrong between us and the database. */
export type XtdbErrorCode =
  /** No connection, or it broke: the node is not there, or went away during the request; or so is what the node would have to ask, such as a PostgreSQL. */
  | 'unreachable'
  /** The time limit of the request passed. */
  | 'timeout'
  /** The caller's AbortSignal fired. */
  | 'aborted'
  /** The request is wrong: refused by us before anything was sent, or by the node. */
  | 'bad-request'
  /** The basis asked for lies ahead of what the node has indexed. */
  | 'out-of-sync'
  | 'unauthorised'
  /** Refused as a matter of policy, such as a write to a read-only node. */
  | 'forbidden'
  /** The request or the answer is larger than allowed. */
  | 'too-large'
  /** The node has as much running as it allows; the same request may succeed later. */
  | 'busy'
  | 'server-error'
  /** The node's indexer has stopped: it answers stale data and takes no transaction until it is restarted. */
  | 'ingester-failed'
  /** An answer had begun, and its connection ended before it did: the node was killed, or could not get or give the rest. */
  | 'cut-off'
  /** The answer is no EDN or transit, is whole but ends too early, or is not what this request is answered with. */
  | 'bad-response'
  /** The client was closed. */
  | 'closed';

/** What an XtdbError knows beside its code and message. */
export interface XtdbErrorDetails {
  /** The HTTP status, where there was an answer. */
  readonly status?: number;
  /** XTDB's own `:xtdb.error/error-key`, without its namespace's meaning being interpreted. */
  readonly errorKey?: string;
  /** True if a transaction may have been taken and nobody knows what became of it. */
  readonly outcomeUnknown?: boolean;
  /** The id of that transaction, if its receipt did arrive. */
  readonly txId?: number;
  readonly cause?: unknown;
}

/**
 * A failed request to the database.
 *
 * Callers match `code`. Messages hold the request's method and path and the database's own error key and message, cut to a bounded length; never
 * a document, a query argument or a token.
 */
export class XtdbError extends CodedError<XtdbErrorCode> {
  override readonly name = 'XtdbError';
  readonly status: number | undefined;
  readonly errorKey: string | undefined;
  /**
   * True if the node may have taken a submission whose outcome was not learned. With a `txId`, ask for its outcome again; without, the receipt was
   * lost: look for it in the transaction log before sending it again.
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

  /** The same failure, marked as one that leaves open what became of a submission. */
  withUnknownOutcome(txId?: number): XtdbError {
    const open = txId === undefined ? 'Whether the transaction was taken is unknown.' : `What became of transaction ${txId} is unknown.`;
    return new XtdbError(this.code, `${this.message} ${open}`, {
      ...defined({ status: this.status, errorKey: this.errorKey, txId }),
      outcomeUnknown: true,
      cause: this.cause,
    });
  }
}

/** Codes of a database that is away for now. */
const OUTAGE: ReadonlySet<XtdbErrorCode> = new Set(['unreachable', 'timeout', 'busy']);

/** Whether a failure says nothing against a database but that it does not answer now: what can be done without it goes on. */
export const isOutage = (error: unknown): error is XtdbError => error instanceof XtdbError && OUTAGE.has(error.code);

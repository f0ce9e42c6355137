import { CodedError } from '../values/coded-error.js';

/** Reason why the gateway cannot start. */
export type GatewayErrorCode =
  | 'bad-upstream'
  | 'port-taken'
  | 'unknown-agent'
  | 'agent-missing'
  /** An erasure cannot remove a log that a gateway writes. */
  | 'log-in-use'
  | 'unknown-session'
  | 'not-steered';

/** Thrown when the gateway or an agent behind it cannot be started as asked. */
export class GatewayError extends CodedError<GatewayErrorCode> {
  override readonly name = 'GatewayError';

  override get isUsage(): boolean {
    return true;
  }
}

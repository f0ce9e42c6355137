import { CodedError } from '../values/coded-error.js';

/** Why the gateway cannot start, or cannot do what a command asks. */
export type GatewayErrorCode =
  | 'bad-upstream'
  | 'port-taken'
  | 'unknown-agent'
  | 'agent-missing'
  /** An erasure cannot remove a log file that a gateway still writes. */
  | 'log-in-use'
  | 'unknown-session'
  | 'not-steered';

/** Thrown if the gateway or an agent behind it cannot start, or a gateway's command fails. */
export class GatewayError extends CodedError<GatewayErrorCode> {
  override readonly name = 'GatewayError';

  override get isUsage(): boolean {
    return true;
  }
}

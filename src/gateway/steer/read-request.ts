import { anthropicRequest, nothingSeen, type SeenByGateway } from './anthropic-request.js';
import { noItemsSeen, responsesRequest, type SeenItems } from './responses-request.js';
import type { SteerableRequest, UnsteerableRequest } from './wire-request.js';

/** The lists that were seen in one session, by wire. */
export interface SeenOfSession {
  readonly anthropic: SeenByGateway;
  readonly responses: SeenItems;
}

/** Returns the state of a session before its first request. */
export const noneSeen = (): SeenOfSession => ({ anthropic: nothingSeen(), responses: noItemsSeen() });

/** The session of a request, and the lists that were seen in it. */
interface OfSession {
  readonly session: string;
  readonly seen: SeenOfSession;
}

/** Reads a request for steering in a session. */
export type ReadRequest = (of: OfSession) => SteerableRequest | UnsteerableRequest;

/** The wires whose requests can be steered. */
export type SteerableWire = 'anthropic' | 'responses';

/** Returns whether requests of a wire can be steered. */
export const isSteerable = (wire: string): wire is SteerableWire => wire === 'anthropic' || wire === 'responses';

/** Returns the text of a body and its parsed value. Undefined if it is not JSON in UTF-8. */
export function parsedText(body: Buffer): { readonly text: string; readonly value: unknown } | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
    return { text, value: JSON.parse(text) as unknown };
  } catch {
    return undefined;
  }
}

/** Returns the reader for a request on its wire. `text` must be JSON, and `value` its value. */
export const readerOf =
  (wire: SteerableWire, { text, value }: { readonly text: string; readonly value: unknown }): ReadRequest =>
  ({ session, seen }) =>
    wire === 'anthropic'
      ? anthropicRequest(text, value, { session, seen: seen.anthropic })
      : responsesRequest(text, value, { session, seen: seen.responses });

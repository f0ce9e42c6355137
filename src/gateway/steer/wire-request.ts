import type { HarnessList } from '../../extensions/sidecar/composed-list.js';

/** A block or item of a provider's wire, parsed. */
export type WireBlock = Readonly<Record<string, unknown>>;

/**
 * A message of a request as it is compared and hashed: blocks without cache marks, a bare text as
 * one block. Its bytes are kept apart, so that it goes out as it came.
 */
export interface WireMessage {
  readonly role: string;
  readonly content: readonly WireBlock[];
}

/** A request whose list of messages may be replaced. */
export interface SteerableRequest {
  readonly list: HarnessList<WireMessage>;
  /** Hash of the parts before the messages that do not change with each call, such as tools. */
  readonly frame: string;
  /**
   * Returns the body with another list. Messages of the client go out byte for byte, and everything
   * outside the list stays. The client's own list returns the client's own body.
   */
  readonly write: (messages: readonly WireMessage[]) => string;
}

/** A request that cannot be steered, with the reason for people. */
export interface UnsteerableRequest {
  readonly why: string;
}

import type { HarnessList } from '../../extensions/sidecar/composed-list.js';

/** A block or item of a provider's wire, parsed. */
export type WireBlock = Readonly<Record<string, unknown>>;

/**
 * An entry of a request's list, in the form that is compared and hashed. It is a message of
 * Anthropic's wire or an item of the Responses wire. Its original bytes are kept separately, so
 * that it can be sent unchanged.
 */
export type WireEntry = WireBlock;

/** A request whose list of messages may be replaced. */
export interface SteerableRequest {
  readonly list: HarnessList<WireEntry>;
  /** Why the client's own list must be sent. The session is recorded anyway. */
  readonly left?: string;
  /** Hash of the rarely changing parts before the messages, such as the tools. */
  readonly frame: string;
  /**
   * Returns the body with another list. The client's messages stay byte for byte, and so does
   * everything outside the list. For the client's own list, returns the client's own body.
   */
  readonly write: (messages: readonly WireEntry[]) => string;
}

/** A request that cannot be steered, with the reason in words. */
export interface UnsteerableRequest {
  readonly why: string;
}

/**
 * Why a list with an item that the provider compacted is not steered. Only the provider can read
 * the item, and our text would repeat the same turns.
 */
export const BY_PROVIDER = 'the provider compacted the conversation';

/** Explains our messages to a model without our tools. It precedes our first message. */
export const NOTICE = [
  'Palimpsest, which runs beside this program, shortened the earlier part of this conversation.',
  'It is not said by the user.',
  'A line "toolcall_ref id=... tool=... status=... args=..." stands for a call whose result is not shown.',
  'A block that begins with ACTIVE_CONTENT shows a file, or a result, of an edit with its arguments.',
  'If you need a result that is not shown, read the file or run the command again.',
].join(' ');

import type { HarnessList } from '../../extensions/sidecar/composed-list.js';

/** A block or item of a provider's wire, parsed. */
export type WireBlock = Readonly<Record<string, unknown>>;

/**
 * An entry of a request's list as it is compared and hashed: a message of Anthropic's wire, or an
 * item of the Responses wire. Its bytes are kept apart, so that it goes out as it came.
 */
export type WireEntry = WireBlock;

/** A request whose list of messages may be replaced. */
export interface SteerableRequest {
  readonly list: HarnessList<WireEntry>;
  /** The reason why the client's own list goes out. The session is recorded anyway. */
  readonly left?: string;
  /** Hash of the parts before the messages that do not change with each call, such as tools. */
  readonly frame: string;
  /**
   * Returns the body with another list. Messages of the client go out byte for byte, and everything
   * outside the list stays. The client's own list returns the client's own body.
   */
  readonly write: (messages: readonly WireEntry[]) => string;
}

/** A request that cannot be steered, with the reason for people. */
export interface UnsteerableRequest {
  readonly why: string;
}

/**
 * The reason for a list with an item that the provider compacted. Only the provider can read it,
 * and our text of the same turns would stand beside it.
 */
export const BY_PROVIDER = 'the provider compacted the conversation';

/**
 * Says to a model without our tools what it finds in place of the earlier conversation. It stands
 * before our first message.
 */
export const NOTICE = [
  'Palimpsest, which runs beside this program, shortened the earlier part of this conversation.',
  'It is not said by the user.',
  'A line "toolcall_ref id=... tool=... status=... args=..." stands for a call whose result is not shown.',
  'A block that begins with ACTIVE_CONTENT shows a file, or a result, of an edit with its arguments.',
  'If you need a result that is not shown, read the file or run the command again.',
].join(' ');

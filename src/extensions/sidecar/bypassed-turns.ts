import { beginsWith } from '../../harness/history-item.js';
import type { ReportedMessage } from '../../harness/message-schema.js';
import { sameData } from '../../values/plain-data.js';
import type { HarnessList } from './composed-list.js';

/** A harness's own list that went out in place of ours. */
interface SentOwnList {
  /** As it was reported. */
  readonly reported: readonly ReportedMessage[];
  /** As it went out, in copies that do not change. */
  readonly messages: readonly unknown[];
}

/**
 * Remembers, per session, the harness's own list that a model call was sent instead of ours. Until the next message of the user our list would give the
 * request another beginning: the provider's cache would miss, and thoughts of the model that are bound to that beginning would be lost.
 */
export class BypassedTurns {
  readonly #sent = new Map<string, SentOwnList>();

  /** Notes the list that a call was sent. */
  sent({ list }: Pick<HarnessList<unknown>, 'list'>, messages: readonly unknown[]): void {
    this.#sent.set(list.session, { reported: list.messages, messages });
  }

  /** Forgets the session's list: ours went out. */
  end(session: string): void {
    this.#sent.delete(session);
  }

  /**
   * Whether our list may go out: it begins with every message of the list that was sent, or the sent one is no longer the beginning of the harness's list
   * (compaction, undo), or the user has said something since.
   */
  allows({ list }: Pick<HarnessList<unknown>, 'list'>, ours: readonly unknown[]): boolean {
    const sent = this.#sent.get(list.session);
    if (sent === undefined || !beginsWith(list.messages, sent.reported)) return true;
    if (list.messages.slice(sent.reported.length).some(({ role }) => role === 'user')) return true;
    return sent.messages.every((message, i) => sameData(message, ours[i]));
  }
}

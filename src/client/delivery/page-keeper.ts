import type { SessionId } from '../../objects/ids.js';
import type { ObjectStore } from '../../store/object-store.js';
import { PAGE_STEPS } from '../../store/step-page.js';
import type { Outbox } from './outbox.js';

/**
 * Packs the steps of a client's sessions into pages in the background (decision 0015). It runs when
 * the last step of a page is in the database, and when a session is opened. The opening also packs
 * steps of earlier program versions and of processes that died. No caller waits for a page, and a
 * missing page harms nothing. After a failure, the next opening retries.
 */
export class PageKeeper {
  readonly #store: ObjectStore;
  readonly #outbox: Outbox;

  constructor(store: ObjectStore, outbox: Outbox) {
    this.#store = store;
    this.#outbox = outbox;
    outbox.listen((writes) => {
      for (const { write } of writes) {
        const { step } = write;
        if (step !== undefined && step.seq % PAGE_STEPS === 0) this.keep(step.session, step.seq);
      }
    });
  }

  /** Writes the complete pages of a session's steps up to `upto`, as soon as no model waits. */
  keep(session: SessionId, upto: number): void {
    if (upto < PAGE_STEPS) return;
    this.#store.keepPages(session, { upto, ready: () => this.#outbox.gate.passed() }).catch(() => undefined);
  }
}

import type { SessionId } from '../../objects/ids.js';
import type { ObjectStore } from '../../store/object-store.js';
import { PAGE_STEPS } from '../../store/step-page.js';
import type { Outbox } from './outbox.js';

/**
 * Has the steps of a client's sessions put into pages too (decision 0015), in the background: when the last step of a page is in the database, and those that are due when a
 * session is opened, so that what an earlier version wrote, or a process that died before, gets its pages then. Nobody waits for a page, and none is missed where it
 * is not there: what goes wrong here is left to the next opening.
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

  /** Has the pages put that a session's steps up to one make up, as soon as no model waits. */
  keep(session: SessionId, upto: number): void {
    if (upto < PAGE_STEPS) return;
    this.#store.keepPages(session, { upto, ready: () => this.#outbox.gate.passed() }).catch(() => undefined);
  }
}

import pLimit from 'p-limit';
import { isSaid } from '../history/rebuild/said-text.js';
import { sessionId } from '../objects/ids.js';
import type { StoreSnapshot } from '../store/store-snapshot.js';
import type { ImportedSession } from './imported-sessions.js';

/** Maximum steps read to find a first prompt. A harness's texts may come before it. */
const FIRST_STEPS = 16;
const AT_ONCE = 8;
/** Maximum number of first prompts read per list. Imported sessions bring their titles. */
const MOST_READ = 200;
const TITLE_CHARS = 400;

/** A session by its id and its number of steps. */
interface TitledSession {
  readonly id: string;
  readonly steps: number;
}

/** Finds titles of sessions: the recording's title, or otherwise a person's first prompt. */
export class SessionTitles {
  /** First prompts, which never change. Empty if no prompt is among the first steps. */
  readonly #prompts = new Map<string, string>();

  /** Returns the titles of sessions by their ids. */
  async of(
    sessions: readonly TitledSession[],
    snapshot: StoreSnapshot,
    imported: ReadonlyMap<string, ImportedSession> = new Map(),
  ): Promise<ReadonlyMap<string, string>> {
    const titles = new Map<string, string>();
    const unread: TitledSession[] = [];
    for (const session of sessions) {
      const { id } = session;
      const title = imported.get(id)?.title || this.#prompts.get(id);
      if (title === undefined) unread.push(session);
      else if (title !== '') titles.set(id, title);
    }
    await pLimit(AT_ONCE).map(unread.slice(0, MOST_READ), async (session) => {
      const title = await this.#firstPrompt(session, snapshot);
      if (title !== undefined) titles.set(session.id, title);
    });
    return titles;
  }

  async #firstPrompt({ id, steps }: TitledSession, snapshot: StoreSnapshot): Promise<string | undefined> {
    for (let seq = 1; seq <= Math.min(FIRST_STEPS, steps); seq += 1) {
      const message = (await snapshot.step(sessionId(id), seq))?.message;
      if (message === undefined || !isSaid(message)) continue;
      const title = message.text.slice(0, TITLE_CHARS).replace(/\s+/g, ' ').trim().toWellFormed();
      this.#prompts.set(id, title);
      return title;
    }
    if (steps >= FIRST_STEPS) this.#prompts.set(id, '');
    return undefined;
  }
}

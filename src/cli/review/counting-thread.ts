import { Worker } from 'node:worker_threads';
import type { CountTexts } from '../../history/ask/tokenizer.js';
import { messageOf } from '../../values/thrown.js';

/** Somebody who waits for the counts of some texts. */
interface Asker {
  readonly resolve: (counts: readonly number[]) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Counts tokens in a thread of its own, which begins at once: its vocabulary takes as long to load as a node takes to say what is to be counted. The thread keeps
 * no process alive unless somebody waits for a count. Whoever starts it ends it.
 */
export class CountingThread {
  readonly #worker: Worker;
  readonly #askers: Asker[] = [];
  /** What was counted: the contexts of a session share most of their pieces. */
  readonly #known = new Map<string, number>();
  #failed: Error | undefined;

  /** `program` is the built file of the thread. */
  constructor(program: string) {
    this.#worker = new Worker(program);
    this.#worker.unref();
    this.#worker.on('message', (counts: readonly number[]) => {
      this.#askers.shift()?.resolve(counts);
      if (this.#askers.length === 0) this.#worker.unref();
    });
    this.#worker.on('error', (error) => this.#fail(messageOf(error)));
    this.#worker.on('exit', () => this.#fail('the thread that counts has ended'));
  }

  /** Counts some texts, none a second time; rejects where the thread has failed. */
  readonly count: CountTexts = async (texts) => {
    const fresh = [...new Set(texts)].filter((text) => !this.#known.has(text));
    const counts = fresh.length === 0 ? [] : await this.#ask(fresh);
    for (const [i, text] of fresh.entries()) this.#known.set(text, counts[i] ?? 0);
    return texts.map((text) => this.#known.get(text) ?? 0);
  };

  /** Ends the thread; what is being counted is not. */
  end(): void {
    void this.#worker.terminate();
  }

  #ask(texts: readonly string[]): Promise<readonly number[]> {
    return new Promise((resolve, reject) => {
      if (this.#failed !== undefined) {
        reject(this.#failed);
        return;
      }
      this.#askers.push({ resolve, reject });
      this.#worker.ref();
      this.#worker.postMessage(texts);
    });
  }

  #fail(why: string): void {
    this.#failed ??= new Error(`tokens cannot be counted: ${why}`);
    for (const { reject } of this.#askers.splice(0)) reject(this.#failed);
  }
}

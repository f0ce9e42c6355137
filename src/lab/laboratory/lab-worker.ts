import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { errorOf } from '../../values/thrown.js';
import type { LabConfig } from './lab-config.js';
import type { FromWorker, ToWorker } from './lab-threads.js';
import { policiesOf } from './policy-table.js';
import { type LabHost, RecordingScorer } from './score-recording.js';

type Reply = Extract<ToWorker, { readonly reply: number }>;

/** A worker's access to its run, which is in the main thread. */
class MainThread implements LabHost {
  readonly #port: MessagePort;
  readonly #waiting = new Map<number, (reply: Reply) => void>();
  #asked = 0;

  constructor(port: MessagePort) {
    this.#port = port;
  }

  readonly open: LabHost['open'] = async () => {
    const reply = await this.#ask({ open: true });
    if ('error' in reply) throw errorOf(reply.error);
    if (!('address' in reply)) throw new Error('BUG: a database without an address');
    // The main thread closes the database.
    return { address: reply.address, dataDir: undefined, close: async () => undefined };
  };

  async isNew(sha256: string): Promise<boolean> {
    const reply = await this.#ask({ isNew: sha256 });
    return 'isNew' in reply && reply.isNew;
  }

  renew(): void {
    this.say({ renew: true });
  }

  readonly found: LabHost['found'] = (_path, found) => this.say({ found });

  say(message: FromWorker): void {
    this.#port.postMessage(message);
  }

  take(reply: Reply): void {
    this.#waiting.get(reply.reply)?.(reply);
    this.#waiting.delete(reply.reply);
  }

  #ask(question: { readonly open: true } | { readonly isNew: string }): Promise<Reply> {
    this.#asked += 1;
    const ask = this.#asked;
    return new Promise((resolve) => {
      this.#waiting.set(ask, resolve);
      this.say({ ask, ...question });
    });
  }
}

/** Scores the recordings that the main thread sends, one after another. */
function work(port: MessagePort, config: LabConfig): void {
  const main = new MainThread(port);
  const scorer = new RecordingScorer(policiesOf(config.policies, main.open), config, main);
  port.on('message', async (message: ToWorker) => {
    if ('reply' in message) return main.take(message);
    await scorer.recording(message.path);
    main.say({ done: true });
  });
}

if (parentPort !== null) work(parentPort, workerData as LabConfig);

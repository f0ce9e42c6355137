import { PassThrough } from 'node:stream';
import {
  type Beginning,
  type CallName,
  type Calls,
  linesOf,
  type SentContext,
  type SidecarAnswer,
  withRepeats,
} from '../../src/extensions/sidecar/protocol.js';
import { serveSidecar } from '../../src/extensions/sidecar/serve-sidecar.js';
import type { SidecarProcess, WholeList } from '../../src/extensions/sidecar/sidecar-process.js';

/** A sidecar in a test's process, over the test's node. It gets the whole list at each call. */
export class InProcessSidecar implements Pick<SidecarProcess, 'call' | 'callWithList' | 'end'> {
  readonly #input = new PassThrough();
  readonly #waiting = new Map<number, (answer: SidecarAnswer) => void>();
  readonly #served: Promise<void>;
  #ids = 0;
  /** Each call of a trouble is answered with an error, or not at all. */
  trouble: 'fails' | 'waits' | undefined;

  constructor(beginning: Beginning, env: NodeJS.ProcessEnv) {
    const output = new PassThrough();
    this.#served = serveSidecar(this.#input, output, env);
    this.#input.write(`${JSON.stringify(beginning)}\n`);
    void this.#listen(output);
  }

  async call<N extends CallName>(call: N, params: Calls[N]['params']): Promise<Calls[N]['result']> {
    if (this.trouble === 'fails') throw new Error('the sidecar is in trouble');
    if (this.trouble === 'waits') return new Promise(() => undefined);
    this.#ids += 1;
    const id = this.#ids;
    const answer = new Promise<SidecarAnswer>((resolve) => this.#waiting.set(id, resolve));
    this.#input.write(`${JSON.stringify({ id, call, params })}\n`);
    const got = await answer;
    if ('error' in got) throw new Error(got.error.message);
    return got.result as Calls[N]['result'];
  }

  async callWithList<N extends 'context' | 'follow'>(call: N, list: WholeList): Promise<Calls[N]['result']> {
    const whole = { ...list, after: 0, number: this.#ids + 1, prefix: 0, forgotten: true };
    const result = await this.call(call, whole as Calls[N]['params']);
    if (call === 'follow' || result === null) return result;
    return withRepeats(result as unknown as SentContext, []).context as Calls[N]['result'];
  }

  async end(): Promise<void> {
    this.#input.end();
    await this.#served;
  }

  async #listen(output: PassThrough): Promise<void> {
    for await (const line of linesOf(output)) {
      const answer = JSON.parse(line) as SidecarAnswer;
      this.#waiting.get(answer.id)?.(answer);
      this.#waiting.delete(answer.id);
    }
  }
}

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { ReportedMessage } from '../../harness/message-schema.js';
import { CodedError } from '../../values/coded-error.js';
import { linesOf } from './lines.js';
import { patiently } from './patience.js';
import type { Beginning, BesideAnswer, BesideRequest, CallName, Calls, SentList } from './protocol.js';
import { type SentContext, withRepeats } from './sent-texts.js';

/** How the process beside a harness is started. */
export interface BesideOptions {
  /** A Node of version 20.19 or later. */
  readonly node: string;
  /** The program that `main.ts` is built into. */
  readonly program: string;
  readonly env: NodeJS.ProcessEnv;
  readonly beginning: Beginning;
}

/** Thrown when the process beside a harness fails, or is not there. */
export class BesideError extends CodedError<'failed' | 'gone' | 'resend'> {
  override readonly name = 'BesideError';
}

/** A whole list of messages with what belongs to it. */
export type WholeList = Omit<SentList, 'after' | 'number' | 'prefix'>;

interface Waiting {
  /** Of a context: its session. */
  readonly session: string | undefined;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

interface LastSent {
  readonly number: number;
  readonly lines: readonly string[];
}

/** Most that is kept of what the process writes to its error stream, characters. */
const LAST_WORDS = 2_000;

/**
 * The process beside a harness, in which everything of ours runs: what it does takes no time of the harness's own loop, and nothing that happens to it
 * happens to the harness. Started at the first call, and again by the next call after it ended. Of a list only what changed is sent.
 */
export class BesideProcess {
  readonly #options: BesideOptions;
  readonly #waiting = new Map<number, Waiting>();
  readonly #sent = new Map<string, LastSent>();
  /** The texts of the last context of each session: what the next one repeats is not sent again. */
  readonly #texts = new Map<string, readonly string[]>();
  #child: ChildProcessWithoutNullStreams | undefined;
  #lastWords = '';
  #ids = 0;
  #lists = 0;

  constructor(options: BesideOptions) {
    this.#options = options;
  }

  /** Starts the process, if it does not run, so that the first call need not wait for it. */
  start(): void {
    this.#running();
  }

  /** Asks something. Rejects with BesideError. */
  call<N extends Exclude<CallName, 'context' | 'follow'>>(call: N, params: Calls[N]['params']): Promise<Calls[N]['result']> {
    return this.#ask(call, params);
  }

  /** Asks something about a list of messages. Rejects with BesideError. */
  async callWithList<N extends 'context' | 'follow'>(call: N, list: WholeList): Promise<Calls[N]['result']> {
    try {
      return await this.#ask(call, this.#difference(list));
    } catch (error) {
      if (!(error instanceof BesideError) || error.code !== 'resend') throw error;
      this.#sent.delete(list.session);
      return this.#ask(call, this.#difference(list));
    }
  }

  /** Ends the process, which pauses its sessions and delivers what it can; waits for that within a limit, then leaves it to itself. Idempotent. */
  async end(limitMs: number): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    const ended = once(child, 'exit').then(() => undefined);
    child.stdin.end();
    await patiently(ended, limitMs).catch(() => undefined);
    child.unref();
  }

  #ask<N extends CallName>(call: N, params: Calls[N]['params']): Promise<Calls[N]['result']> {
    const child = this.#running();
    this.#ids += 1;
    const request = { id: this.#ids, call, params } as BesideRequest;
    return new Promise((resolve, reject) => {
      const session = call === 'context' ? (params as Calls['context']['params']).session : undefined;
      this.#waiting.set(request.id, { resolve: resolve as (result: unknown) => void, reject, session });
      child.stdin.write(`${JSON.stringify(request)}\n`);
    });
  }

  #difference({ session, messages, ...others }: WholeList): SentList {
    const before = this.#sent.get(session) ?? { number: 0, lines: [] };
    const lines = messages.map((message) => JSON.stringify(message));
    const changed = lines.findIndex((line, i) => line !== before.lines[i]);
    const prefix = changed < 0 ? Math.min(lines.length, before.lines.length) : changed;
    this.#lists += 1;
    this.#sent.set(session, { number: this.#lists, lines });
    const rest: readonly ReportedMessage[] = messages.slice(prefix);
    return { ...others, session, after: before.number, number: this.#lists, prefix, messages: rest };
  }

  /** In the order of the answers, also for whoever waits no more. */
  #whole(session: string | undefined, result: unknown): unknown {
    if (session === undefined || result === null) return result;
    const { context, texts } = withRepeats(result as SentContext, this.#texts.get(session) ?? []);
    this.#texts.set(session, texts);
    return context;
  }

  #running(): ChildProcessWithoutNullStreams {
    if (this.#child !== undefined) return this.#child;
    const { node, program, env, beginning } = this.#options;
    // A group of its own: what the terminal does to the harness's group must not cut off what is being delivered.
    const child = spawn(node, [program], { env, stdio: ['pipe', 'pipe', 'pipe'], detached: true });
    this.#child = child;
    this.#sent.clear();
    this.#texts.clear();
    this.#lastWords = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#lastWords = (this.#lastWords + text).slice(-LAST_WORDS);
    });
    child.stdin.on('error', () => undefined);
    child.once('error', (error) => this.#gone(child, error.message));
    child.once('exit', (code, signal) => this.#gone(child, `it ended with ${signal ?? `code ${code}`}`));
    // What cannot be read must not be the harness's trouble: the process ends, and the next call starts another.
    this.#listen(child).catch(() => child.kill());
    child.stdin.write(`${JSON.stringify(beginning)}\n`);
    // The harness may end whenever it likes.
    child.unref();
    for (const pipe of [child.stdin, child.stdout, child.stderr]) (pipe as { unref?: () => void }).unref?.();
    return child;
  }

  async #listen(child: ChildProcessWithoutNullStreams): Promise<void> {
    for await (const line of linesOf(child.stdout)) {
      const answer = JSON.parse(line) as BesideAnswer;
      const waiting = this.#waiting.get(answer.id);
      this.#waiting.delete(answer.id);
      if ('result' in answer) waiting?.resolve(this.#whole(waiting.session, answer.result));
      else waiting?.reject(new BesideError(answer.error.resend === true ? 'resend' : 'failed', answer.error.message));
    }
  }

  #gone(child: ChildProcessWithoutNullStreams, why: string): void {
    if (this.#child !== child) return;
    this.#child = undefined;
    const words = this.#lastWords.trim();
    const error = new BesideError('gone', `the process beside the harness is gone: ${why}${words === '' ? '' : `; it said: ${words}`}`);
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}

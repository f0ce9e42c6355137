import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { ReportedMessage } from '../../harness/message-schema.js';
import { withinLimit } from '../../process/within-limit.js';
import { CodedError } from '../../values/coded-error.js';
import { sameData } from '../../values/plain-data.js';
import { LatestSessions } from './latest-sessions.js';
import {
  type Beginning,
  type CallName,
  type Calls,
  linesOf,
  type SentContext,
  type SentList,
  type SidecarAnswer,
  type SidecarRequest,
  withRepeats,
} from './protocol.js';

/** The program of a sidecar, and how to start it. */
export interface SidecarOptions {
  /** The path of Node 20.19 or later. */
  readonly node: string;
  /** The path of the program built from `main.ts`. */
  readonly program: string;
  readonly env: NodeJS.ProcessEnv;
  readonly beginning: Beginning;
}

/**
 * Thrown if a request failed in the sidecar (`failed`), the sidecar has ended (`gone`), or it needs
 * the whole list again (`resend`).
 */
class SidecarError extends CodedError<'failed' | 'gone' | 'resend'> {
  override readonly name = 'SidecarError';
}

/** A whole list of messages with further facts. */
export type WholeList = Omit<SentList, 'after' | 'number' | 'prefix' | 'forgotten'>;

interface Waiting {
  /** The session whose context was requested; undefined for other requests. */
  readonly session: string | undefined;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

interface LastSent {
  readonly number: number;
  readonly messages: readonly ReportedMessage[];
}

/** Maximum number of characters that are kept of the error output. */
const LAST_WORDS = 2_000;

/**
 * The sidecar: a separate process for all our work, whose load and failures do not affect the
 * harness. The first call starts it. If it has ended, the next call starts it again. Only the
 * changes of a list are sent.
 */
export class SidecarProcess {
  readonly #options: SidecarOptions;
  readonly #waiting = new Map<number, Waiting>();
  readonly #sent = new LatestSessions<LastSent>();
  /** The texts of each session's last context. The sidecar does not send them again. */
  readonly #texts = new LatestSessions<readonly string[]>((session) =>
    [...this.#waiting.values()].some((one) => one.session === session),
  );
  #child: ChildProcessWithoutNullStreams | undefined;
  #lastWords = '';
  #ids = 0;
  #lists = 0;

  constructor(options: SidecarOptions) {
    this.#options = options;
  }

  /** Starts the process if it is not running, so that the first call need not wait for it. */
  start(): void {
    this.#running();
  }

  /** Sends a request. Rejects with SidecarError. */
  call<N extends Exclude<CallName, 'context' | 'follow'>>(
    call: N,
    params: Calls[N]['params'],
  ): Promise<Calls[N]['result']> {
    return this.#ask(call, params);
  }

  /** Sends a request with a list of messages. Rejects with SidecarError. */
  async callWithList<N extends 'context' | 'follow'>(call: N, list: WholeList): Promise<Calls[N]['result']> {
    try {
      return await this.#askOf(call, list);
    } catch (error) {
      if (!(error instanceof SidecarError) || error.code !== 'resend') throw error;
      this.#sent.delete(list.session);
      return this.#askOf(call, list);
    }
  }

  #askOf<N extends 'context' | 'follow'>(call: N, list: WholeList): Promise<Calls[N]['result']> {
    const forgotten = call === 'context' && this.#texts.get(list.session) === undefined;
    return this.#ask(call, { ...this.#difference(list), ...(forgotten ? { forgotten } : {}) });
  }

  /**
   * Ends the process, which pauses its sessions and delivers what it can. If that takes longer than
   * the limit, the process finishes without the harness. Idempotent.
   */
  async end(limitMs: number): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    const ended = once(child, 'exit').then(() => undefined);
    child.stdin.end();
    await withTimeout(ended, limitMs).catch(() => undefined);
    child.unref();
  }

  #ask<N extends CallName>(call: N, params: Calls[N]['params']): Promise<Calls[N]['result']> {
    const child = this.#running();
    this.#ids += 1;
    const request = { id: this.#ids, call, params } as SidecarRequest;
    return new Promise((resolve, reject) => {
      const session = call === 'context' ? (params as Calls['context']['params']).session : undefined;
      this.#waiting.set(request.id, { resolve: resolve as (result: unknown) => void, reject, session });
      child.stdin.write(`${JSON.stringify(request)}\n`);
    });
  }

  #difference({ session, messages, ...others }: WholeList): SentList {
    const before = this.#sent.get(session) ?? { number: 0, messages: [] };
    const changed = messages.findIndex((message, i) => !this.#isSame(message, before.messages[i]));
    const prefix = changed < 0 ? messages.length : changed;
    this.#lists += 1;
    this.#sent.set(session, { number: this.#lists, messages });
    const rest: readonly ReportedMessage[] = messages.slice(prefix);
    return { ...others, session, after: before.number, number: this.#lists, prefix, messages: rest };
  }

  #isSame(message: ReportedMessage, before: ReportedMessage | undefined): boolean {
    return before !== undefined && (message === before || sameData(message, before));
  }

  /**
   * Restores the texts that were not sent again. Must be called for every answer in order, even if
   * its caller has timed out.
   */
  #whole(session: string | undefined, result: unknown): unknown {
    if (session === undefined || result === null) return result;
    const { context, texts } = withRepeats(result as SentContext, this.#texts.get(session) ?? []);
    this.#texts.set(session, texts);
    return context;
  }

  #running(): ChildProcessWithoutNullStreams {
    if (this.#child !== undefined) return this.#child;
    const { node, program, env, beginning } = this.#options;
    // The sidecar has its own process group: a signal from the terminal must not interrupt
    // deliveries.
    const child = spawn(node, [program], { env, windowsHide: true, stdio: ['pipe', 'pipe', 'pipe'], detached: true });
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
    // An unreadable answer must not make the harness fail. The sidecar is killed, and the next call
    // starts another one.
    this.#listen(child).catch(() => child.kill());
    child.stdin.write(`${JSON.stringify(beginning)}\n`);
    // The harness may exit while the sidecar runs.
    child.unref();
    for (const pipe of [child.stdin, child.stdout, child.stderr]) (pipe as { unref?: () => void }).unref?.();
    return child;
  }

  async #listen(child: ChildProcessWithoutNullStreams): Promise<void> {
    for await (const line of linesOf(child.stdout)) {
      const answer = JSON.parse(line) as SidecarAnswer;
      const waiting = this.#waiting.get(answer.id);
      this.#waiting.delete(answer.id);
      if ('result' in answer) waiting?.resolve(this.#whole(waiting.session, answer.result));
      else waiting?.reject(new SidecarError(answer.error.resend === true ? 'resend' : 'failed', answer.error.message));
    }
  }

  #gone(child: ChildProcessWithoutNullStreams, why: string): void {
    if (this.#child !== child) return;
    this.#child = undefined;
    const words = this.#lastWords.trim();
    const error = new SidecarError(
      'gone',
      `the sidecar is gone: ${why}${words === '' ? '' : `; its last output: ${words}`}`,
    );
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}

/** Thrown if work exceeds the harness's time limit. */
class LateError extends Error {
  override readonly name = 'LateError';
}

/**
 * Returns the result of work, or rejects with LateError after the limit. Until then it keeps the
 * process alive, because a harness waits for the result.
 */
export function withTimeout<T>(work: Promise<T>, limitMs: number): Promise<T> {
  const late = (): never => {
    throw new LateError(`no answer within ${limitMs} ms`);
  };
  return withinLimit(work, { ms: limitMs, keepsAlive: true }, late);
}

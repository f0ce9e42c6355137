import { expect } from '@jest/globals';
import { Agent, request } from 'undici';
import type * as z from 'zod';
import { ALL_ANSWERS, ALL_OPERATIONS } from './contracts.js';
import type { Serve } from './mcp-clients.js';

export interface HttpAnswer {
  readonly status: number;
  readonly type: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: unknown;
}

export interface Sent {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly body?: unknown;
  readonly raw?: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

type OperationId = keyof typeof ALL_OPERATIONS;
type AnswerBody<Name extends keyof typeof ALL_ANSWERS> = z.input<(typeof ALL_ANSWERS)[Name]>;

/** A harness that uses a running `palimpsest serve` over HTTP. */
export class HarnessApi {
  readonly #serve: Pick<Serve, 'url' | 'token'>;
  readonly #dispatcher = new Agent();

  constructor(serve: Pick<Serve, 'url' | 'token'>) {
    this.#serve = serve;
  }

  async send(path: string, { method = 'POST', body, raw, headers = {} }: Sent = {}): Promise<HttpAnswer> {
    const answer = await request(new URL(path, this.#serve.url), {
      dispatcher: this.#dispatcher,
      method,
      headers: { authorization: `Bearer ${this.#serve.token}`, 'content-type': 'application/json', ...headers },
      ...(method === 'GET' ? {} : { body: raw ?? JSON.stringify(body ?? {}) }),
    });
    const type = String(answer.headers['content-type'] ?? '');
    return { status: answer.statusCode, type, headers: answer.headers, body: await answer.body.json() };
  }

  /**
   * Calls an operation that must succeed. Checks the answer against its schema, which refuses
   * unlisted members.
   */
  async call<Id extends OperationId>(
    id: Id,
    session?: string,
    body?: unknown,
  ): Promise<AnswerBody<(typeof ALL_OPERATIONS)[Id]['answer']>> {
    const operation = ALL_OPERATIONS[id];
    const { method, path, answer } = operation;
    const statuses: readonly number[] = 'statuses' in operation ? operation.statuses : [200];
    const {
      status,
      body: got,
      type,
    } = await this.send(path.replace('{id}', encodeURIComponent(session ?? '')), { method, body });
    if (!statuses.includes(status)) throw new Error(`${id} answered ${status}: ${JSON.stringify(got)}`);
    expect(type).toBe('application/json');
    const parsed = ALL_ANSWERS[answer].parse(got);
    expect(parsed).toEqual(got);
    return parsed as AnswerBody<(typeof ALL_OPERATIONS)[Id]['answer']>;
  }

  /** Sends a request that must be refused. The answer must be a problem. */
  async refused(
    path: string,
    sent: Sent = {},
  ): Promise<{ readonly status: number; readonly code: string; readonly problem: AnswerBody<'Problem'> }> {
    const { status, type, body } = await this.send(path, sent);
    expect(type).toBe('application/problem+json');
    const problem = ALL_ANSWERS.Problem.parse(body);
    expect(problem.status).toBe(status);
    return { status, code: problem.code, problem };
  }

  close(): Promise<void> {
    return this.#dispatcher.close();
  }
}

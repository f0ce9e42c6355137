import { once } from 'node:events';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { createServer } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import { kwMap } from '../../../src/edn/values.js';
import { CodedError } from '../../../src/values/coded-error.js';
import { XtdbError } from '../../../src/xtdb/errors.js';
import { type HttpRequest, XtdbHttp } from '../../../src/xtdb/http.js';
import { type EdgeServer, openEdgeServer } from './edge-server.js';

const OPTIONS = { connections: 2, maxRequestBytes: 1000, maxAnswerBytes: 100_000 };
const GET: HttpRequest = { method: 'GET', path: '/status', accept: 'application/edn', timeoutMs: 5_000 };
const SUBMIT: HttpRequest = {
  method: 'POST',
  path: '/submit-tx',
  body: { type: 'application/transit+json', text: '[]' },
  accept: 'application/edn',
  timeoutMs: 5_000,
  writes: true,
};

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const serve = async (listener: RequestListener): Promise<{ readonly http: XtdbHttp; readonly server: EdgeServer }> => {
  const server = await openEdgeServer(listener);
  const http = new XtdbHttp(server.address, OPTIONS);
  closers.push(server.close, () => http.close());
  return { http, server };
};

const answer =
  (status: number, body: string, type = 'application/edn'): RequestListener =>
  (_request, response) => {
    response.writeHead(status, { 'content-type': type }).end(body);
  };

const failureOf = async (promise: Promise<unknown>): Promise<XtdbError> => {
  const outcome = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(outcome instanceof XtdbError)) throw new Error(`expected an XtdbError, not ${String(outcome)}`);
  return outcome;
};

const cutOff = (head: string): RequestListener => {
  return (_request: IncomingMessage, response: ServerResponse) => {
    response.socket?.end(head);
  };
};

test('reports the reason for a missing node in the words of the address provider', async () => {
  class NoNode extends CodedError<'no-java'> {
    override readonly name = 'NoNode';
  }
  const http = new XtdbHttp(() => Promise.reject(new NoNode('no-java', 'There is no Java. Install one.')), OPTIONS);
  closers.push(() => http.close());
  const { code, message } = await failureOf(http.send(GET));
  expect([code, message]).toEqual(['unreachable', 'GET /_xtdb/status: There is no Java. Install one.']);
});

describe('a response with status 200', () => {
  test('is read if it is complete', async () => {
    const { http } = await serve(answer(200, '{:a 1}', 'application/edn; charset=utf-8'));
    expect(await http.send(GET)).toEqual(kwMap({ a: 1 }));
  });

  test.each([
    ['zero bytes', answer(200, '')],
    ['half a form', answer(200, '{:a [1 2')],
    ['a form and something behind it', answer(200, '{:a 1} {:b')],
    ['HTML', answer(200, '<html><body>proxy</body></html>', 'text/html')],
    [
      'no content type',
      (_request: IncomingMessage, response: ServerResponse) => void response.writeHead(200).end('{:a 1}'),
    ],
    [
      'bytes that are not UTF-8',
      (_request: IncomingMessage, response: ServerResponse) =>
        void response.writeHead(200, { 'content-type': 'application/edn' }).end(Buffer.from([0x22, 0xff, 0x22])),
    ],
    ['transit that is cut off', answer(200, '["~#list",[["a"', 'application/transit+json')],
    ['no HTTP at all', cutOff('SSH-2.0-OpenSSH\r\n\r\n')],
  ])('is a bad response with %s', async (_name, listener) => {
    const { http } = await serve(listener);
    expect((await failureOf(http.send(GET))).code).toBe('bad-response');
  });

  test('is refused during reading if it exceeds the limit', async () => {
    const { http } = await serve(answer(200, `"${'x'.repeat(200_000)}"`));
    expect((await failureOf(http.send(GET))).code).toBe('too-large');
  });
});

describe('mapping statuses and error maps to codes', () => {
  const errorMap = (type: string, key: string, message: string): string =>
    `{:xtdb.error/error-type :${type}, :xtdb.error/error-key :${key}, :xtdb.error/message "${message}", :op ` +
    '[:xtdb.api/put {:xt/id "secret-doc"}]}';

  test.each([
    [400, errorMap('illegal-argument', 'invalid-tx-op', 'invalid tx-op'), 'bad-request'],
    [400, errorMap('node-out-of-sync', 'x', 'y'), 'out-of-sync'],
    [400, errorMap('illegal-argument', 'too-many-rows', 'More than 10 rows'), 'too-large'],
    [400, '{:fn #object[clojure.core$a "0x1" "clojure', 'bad-request'],
    [401, 'unauthorized', 'unauthorised'],
    [403, 'forbidden: read-only HTTP node', 'forbidden'],
    [405, '', 'bad-request'],
    [413, '{:error "The body is larger than 10 bytes."}', 'too-large'],
    [500, '{:type "exception", :class "java.util.concurrent.TimeoutException"}', 'timeout'],
    [500, '{:type "exception", :class "java.lang.AssertionError"}', 'server-error'],
    [500, errorMap('x', 'ingester-error', 'Ingester failed'), 'ingester-failed'],
    [502, '<html>bad gateway</html>', 'server-error'],
    [500, '{:type "exception", :class "java.sql.SQLTransientConnectionException"}', 'unreachable'],
    [500, '{:type "exception", :class "org.postgresql.util.PSQLException"}', 'unreachable'],
    [302, '', 'bad-response'],
    [404, '', 'bad-response'],
  ])('%d %s', async (status, body, code) => {
    const { http } = await serve(answer(status, body));
    const failure = await failureOf(http.send(GET));
    expect(failure.code).toBe(code);
    expect(failure.status).toBe(status);
  });

  test('treats an HTML error page as a server error and does not repeat its text', async () => {
    const { http } = await serve(answer(500, '<html><h1>HTTP ERROR 500</h1> secret</html>', 'text/html'));
    const failure = await failureOf(http.send(GET));
    expect(failure.code).toBe('server-error');
    expect(failure.message).not.toContain('secret');
  });

  test('treats 404 with a body of the database as not found', async () => {
    const { http } = await serve(answer(404, '{:error "x entity not found"}'));
    expect(await http.send(GET)).toBeUndefined();
  });

  test('treats 404 with a foreign page as no answer', async () => {
    const { http } = await serve(answer(404, '<html>nginx</html>', 'text/html'));
    expect((await failureOf(http.send(GET))).code).toBe('bad-response');
  });

  test('shows the error key and a short message, never what the database echoed', async () => {
    const message = `wrong {:xt/id \\"secret-a\\"} and \\"${'secret-b'.repeat(10)}\\" ${'long '.repeat(200)}`;
    const { http } = await serve(answer(400, errorMap('illegal-argument', 'bad-op', message)));
    const failure = await failureOf(http.send(GET));
    expect(failure.errorKey).toBe('bad-op');
    expect(failure.message).toContain('bad-op, wrong');
    expect(failure.message).not.toContain('secret');
    expect(failure.message.length).toBeLessThan(400);
    expect(JSON.stringify(failure)).not.toContain('secret');
  });
});

describe('limits and aborts', () => {
  const silence: RequestListener = () => undefined;
  const halfAnswer: RequestListener = (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/edn' }).write('{:a ');
  };

  test.each([
    ['no answer', silence],
    ['an answer that stops in the middle', halfAnswer],
  ])('time out for %s', async (_name, listener) => {
    const { http } = await serve(listener);
    expect((await failureOf(http.send({ ...GET, timeoutMs: 50 }))).code).toBe('timeout');
  });

  test('let the caller abort during and before the answer', async () => {
    const controller = new AbortController();
    const { http } = await serve(() => controller.abort(new Error('enough')));
    const failure = await failureOf(http.send({ ...GET, signal: controller.signal }));
    expect(failure.code).toBe('aborted');
    expect(failure.cause).toEqual(new Error('enough'));
    expect((await failureOf(http.send({ ...GET, signal: controller.signal }))).code).toBe('aborted');
  });

  test('end running requests on close and refuse later ones; a second close is harmless', async () => {
    let reached = (): void => undefined;
    const arrived = new Promise<void>((resolve) => {
      reached = resolve;
    });
    const { http } = await serve(() => reached());
    const running = failureOf(http.send(GET));
    await arrived;
    await Promise.all([http.close(), http.close()]);
    expect((await running).code).toBe('closed');
    expect((await failureOf(http.send(GET))).code).toBe('closed');
    await http.close();
  });

  test('never send a request over the size limit', async () => {
    let requests = 0;
    const { http } = await serve((_request, response) => {
      requests += 1;
      response.end();
    });
    const failure = await failureOf(
      http.send({ ...SUBMIT, body: { type: 'application/transit+json', text: 'é'.repeat(501) } }),
    );
    expect(failure.code).toBe('too-large');
    expect(failure.outcomeUnknown).toBe(false);
    expect(requests).toBe(0);
  });
});

describe('connections', () => {
  test('are retried once for a read if they are dead', async () => {
    let requests = 0;
    const { http } = await serve((request, response) => {
      requests += 1;
      if (requests === 1) request.socket.destroy();
      else answer(200, '{:a 1}')(request, response as never);
    });
    expect(await http.send(GET)).toEqual(kwMap({ a: 1 }));
    expect(requests).toBe(2);
  });

  describe.each([
    ['a length that the body does not reach', 'Content-Length: 100\r\n\r\n{:a 1}'],
    ['chunks that do not end', 'Transfer-Encoding: chunked\r\n\r\n6\r\n{:a 1}\r\n'],
  ])('an answer that is cut off: %s', (_name, rest) => {
    const breaks = cutOff(`HTTP/1.1 200 OK\r\nContent-Type: application/edn\r\n${rest}`);

    test('is requested once more', async () => {
      let requests = 0;
      const { http } = await serve((request, response) => {
        requests += 1;
        if (requests === 1) breaks(request, response);
        else answer(200, '{:a 1}')(request, response as never);
      });
      expect(await http.send(GET)).toEqual(kwMap({ a: 1 }));
      expect(requests).toBe(2);
    });

    test('is reported as cut off if the next one ends there too', async () => {
      let requests = 0;
      const { http } = await serve((request, response) => {
        requests += 1;
        breaks(request, response);
      });
      const failure = await failureOf(http.send(GET));
      expect([failure.code, failure.status]).toEqual(['cut-off', 200]);
      expect(requests).toBe(2);
    });
  });

  test('retries a read on an overloaded node within its limit', async () => {
    let requests = 0;
    const { http } = await serve((request, response) => {
      requests += 1;
      answer(requests < 4 ? 503 : 200, '{:a 1}')(request, response as never);
    });
    expect(await http.send(GET)).toEqual(kwMap({ a: 1 }));
    expect(requests).toBe(4);
  });

  test('reports a node that stays overloaded as busy', async () => {
    const { http } = await serve(answer(503, '{:error "Too many queries are running; try again."}'));
    expect((await failureOf(http.send({ ...GET, timeoutMs: 1_000 }))).code).toBe('busy');
  });

  test('reports an unused socket as unreachable, with its place', async () => {
    const http = new XtdbHttp({ kind: 'unix', socketPath: '/nonexistent/socket' }, OPTIONS);
    closers.push(() => http.close());
    const failure = await failureOf(http.send(SUBMIT));
    expect(failure.code).toBe('unreachable');
    expect(failure.message).toContain('/nonexistent/socket');
    expect(failure.outcomeUnknown).toBe(false);
  });

  test('reports a refused TCP connection as unreachable, without the token', async () => {
    const probe = createServer().listen(0, '127.0.0.1');
    await once(probe, 'listening');
    const bound = probe.address();
    probe.close();
    const port = typeof bound === 'object' && bound !== null ? bound.port : 0;
    const http = new XtdbHttp({ kind: 'tcp', origin: `http://127.0.0.1:${port}`, token: 'tok-secret' }, OPTIONS);
    closers.push(() => http.close());
    const failure = await failureOf(http.send(GET));
    expect(failure.code).toBe('unreachable');
    expect(failure.message).not.toContain('tok-secret');
  });

  test('resolves the address once, and again after the node went away', async () => {
    const first = await openEdgeServer(answer(200, '{:n 1}'));
    const second = await openEdgeServer(answer(200, '{:n 2}'));
    closers.push(second.close);
    let asked = 0;
    let current = first;
    const http = new XtdbHttp(async () => {
      asked += 1;
      return current.address;
    }, OPTIONS);
    closers.push(() => http.close());
    expect(await Promise.all([http.send(GET), http.send(GET)])).toEqual([kwMap({ n: 1 }), kwMap({ n: 1 })]);
    expect(asked).toBe(1);
    await first.close();
    current = second;
    expect(await http.send(GET)).toEqual(kwMap({ n: 2 }));
    expect(asked).toBe(2);
  });

  test('reports an unresolvable address as unreachable with its cause, and resolves it once per request', async () => {
    let asked = 0;
    const cause = new Error('no Java');
    const http = new XtdbHttp(async () => {
      asked += 1;
      throw cause;
    }, OPTIONS);
    closers.push(() => http.close());
    const failure = await failureOf(http.send(GET));
    expect(failure.code).toBe('unreachable');
    expect(failure.message).toContain('no Java');
    expect(failure.cause).toBe(cause);
    expect(asked).toBe(1);
  });

  test('excludes resolving the address from the limit, and lets the caller abort it', async () => {
    const server = await openEdgeServer(answer(200, '{:n 1}'));
    closers.push(server.close);
    let found = (): void => undefined;
    const http = new XtdbHttp(
      () =>
        new Promise((resolve) => {
          found = () => resolve(server.address);
        }),
      OPTIONS,
    );
    closers.push(() => http.close());
    const controller = new AbortController();
    const patient = http.send({ ...GET, timeoutMs: 2_000 });
    const impatient = failureOf(http.send({ ...GET, signal: controller.signal }));
    controller.abort();
    expect((await impatient).code).toBe('aborted');
    found();
    expect(await patient).toEqual(kwMap({ n: 1 }));
  });

  test('sends the token, the media types and exact parameters', async () => {
    const seen: IncomingMessage[] = [];
    const { http } = await serve((request, response) => {
      seen.push(request);
      answer(200, '{}')(request, response as never);
    });
    await http.send({
      ...GET,
      path: '/entity',
      params: { eid: 'a b+c&d=é?', 'with-ops?': true, 'valid-time': new Date(5), gone: undefined },
    });
    expect(seen[0]?.url).toBe(
      '/_xtdb/entity?eid=a%20b%2Bc%26d%3D%C3%A9%3F&with-ops%3F=true&valid-time=1970-01-01T00%3A00%3A00.005Z',
    );
    expect(seen[0]?.headers.accept).toBe('application/edn');
  });
});

describe('a submission is sent once, and its failures report what is known', () => {
  test.each([
    ['the connection broke', (request: IncomingMessage) => void request.socket.destroy(), 'unreachable', true],
    [
      'the connection broke in the middle of the receipt',
      cutOff('HTTP/1.1 202 OK\r\nContent-Length: 100\r\n\r\n{:xtdb'),
      'cut-off',
      true,
    ],
    ['no answer in time', () => undefined, 'timeout', true],
    ['a receipt that is cut off', answer(202, '{:xtdb.api/tx-id 1'), 'bad-response', true],
    [
      'a database of the node that is away',
      answer(500, '{:type "exception", :class "org.postgresql.util.PSQLException"}'),
      'unreachable',
      true,
    ],
    ['a server error', answer(500, '{:type "exception", :class "java.io.IOException"}'), 'server-error', true],
    ['a bad operation', answer(400, '{:xtdb.error/error-type :illegal-argument}'), 'bad-request', false],
    ['a read-only node', answer(403, 'forbidden: read-only HTTP node'), 'forbidden', false],
    ['a wrong token', answer(401, ''), 'unauthorised', false],
    ['no room', answer(503, '{:error "busy"}'), 'busy', false],
    ['too large', answer(413, '{:error "large"}'), 'too-large', false],
  ] as const)('%s', async (_name, listener, code, unknown) => {
    let requests = 0;
    const { http } = await serve((request, response) => {
      requests += 1;
      listener(request, response as never);
    });
    const failure = await failureOf(http.send({ ...SUBMIT, timeoutMs: code === 'timeout' ? 1_000 : 5_000 }));
    expect(failure.code).toBe(code);
    expect(failure.outcomeUnknown).toBe(unknown);
    expect(requests).toBe(1);
  });
});

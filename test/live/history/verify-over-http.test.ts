import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { answerReviewRequest } from '../../../src/http/review-routes.js';
import { countRequests } from '../../support/context.js';
import { hiddenTexts, question } from '../../support/contracts.js';
import { type ReviewedSessions, reviewedSessions } from '../../support/reviewed-sessions.js';

describe('a verification over HTTP', () => {
  const name = `gone${randomUUID().slice(0, 8)}`;
  let made: ReviewedSessions;

  beforeAll(async () => {
    made = await reviewedSessions(name);
  });
  afterAll(() => made.close());

  test('ends when its client leaves, and reads nothing more', async () => {
    const { client } = made;
    let asked = 0;
    let answering: ServerResponse | undefined;
    let leave = async (): Promise<void> => undefined;
    let outcome: Promise<void> | undefined;
    const asOf = client.store.asOf.bind(client.store);
    client.store.asOf = async (basis) => {
      asked += 1;
      const snapshot = await asOf(basis);
      // The first query reads the request's present, the second that of the verification. Each
      // context would read more.
      if (asked === 2) await leave();
      return snapshot;
    };
    const server = createServer((request, response) => {
      answering = response;
      outcome = answerReviewRequest(
        question('/v1/verify'),
        { client, query: new URL(request.url ?? '/', 'http://localhost').searchParams, all: false, hiddenTexts },
        response,
      );
      outcome.catch(() => undefined);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const ask = async () => {
      asked = 0;
      const socket = connect(port, '127.0.0.1');
      const left = new Promise<void>((resolve) => {
        leave = async () => {
          if (answering === undefined) throw new Error('no request is being answered');
          const closed = once(answering, 'close');
          socket.destroy();
          await closed;
          resolve();
        };
      });
      socket.write(`GET /v1/verify?session=${name}-first HTTP/1.1\r\nhost: localhost\r\n\r\n`);
      await left;
      await outcome;
      return asked;
    };
    try {
      const gone = await countRequests(ask);
      expect(gone.result).toBe(2);
      leave = async () => undefined;
      const whole = await countRequests(async () => {
        const response = await fetch(`http://127.0.0.1:${port}/v1/verify?session=${name}-first`);
        expect(await response.json()).toMatchObject({ ok: true, contexts: { total: 1, equal: 1 } });
      });
      // These are queries in flight. Reading answers and contexts would take more.
      expect(gone.queries.size).toBeLessThanOrEqual(6);
      expect(whole.queries.size).toBeGreaterThan(gone.queries.size + 4);
    } finally {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    }
  });
});

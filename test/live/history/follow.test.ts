import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { createLog } from '../../../src/host/log.js';
import { sessionId } from '../../../src/objects/ids.js';
import { stripAnswer } from '../../../src/page/server/page-questions.js';
import { SessionEvents } from '../../../src/page/server/session-events.js';
import { sessionStrip } from '../../../src/page/server/session-strip.js';
import { eventsIn, withChange } from '../../../src/page/strip-changes.js';
import type { Strip, StripChange } from '../../../src/page/wire.js';
import { mentions, openClient, wholeRead } from '../../support/context.js';
import { temporaryRoot } from '../../support/mcp-clients.js';
import { until } from '../../support/until.js';

/** A follower: its events, and the strip built from them. */
class Reader {
  #text = '';
  events = 0;
  lastId = '';
  strip: Strip;
  readonly #answer: IncomingMessage;

  constructor(strip: Strip, answer: IncomingMessage) {
    this.strip = strip;
    this.#answer = answer;
  }

  read(): this {
    this.#answer.setEncoding('utf8');
    this.#answer.on('data', (text: string) => {
      const { events, rest } = eventsIn(this.#text + text);
      this.#text = rest;
      for (const { id, name, data } of events) {
        expect(name).toBe('change');
        this.events += 1;
        this.lastId = id;
        this.strip = withChange(this.strip, JSON.parse(data) as StripChange);
      }
    });
    // A client that leaves midway gets an error.
    this.#answer.on('error', () => undefined);
    return this;
  }

  leave(): void {
    this.#answer.destroy();
  }
}

describe('following a session', () => {
  const name = `follow${randomUUID().slice(0, 8)}`;
  const responses: ServerResponse[] = [];
  /** The agent's side and the server's share only the database. */
  let agent: ContextClient;
  let watcher: ContextClient;
  let events: SessionEvents;
  let server: Server;
  let socketPath: string;
  let root: string;
  let remove: () => Promise<void>;

  beforeAll(async () => {
    ({ root, remove } = await temporaryRoot());
    [agent, watcher] = [await openClient(root), await openClient(root)];
    events = new SessionEvents(createLog('silent'));
    server = createServer((message, response) => {
      responses.push(response);
      const [, session = '', after] = (message.url ?? '').split('/');
      const asked = { session: sessionId(session), after: after === undefined ? undefined : Number(after) };
      events.follow({ ...asked, store: watcher.store, paths: watcher.files }, response).catch((error: unknown) => {
        response.writeHead(500).end(String(error));
      });
    });
    socketPath = join(root, 's');
    await once(server.listen(socketPath), 'listening');
  });
  afterAll(async () => {
    events.close();
    server.closeAllConnections();
    server.close();
    await agent.close();
    await watcher.close();
    await remove();
  });

  const strip = async (session: string): Promise<Strip> => {
    const timeline = await Timeline.open(watcher.store, watcher.files);
    return stripAnswer(await sessionStrip(timeline, session, {}));
  };
  const follow = async (session: string, from: Strip, after = String(from.basis.tx_id)): Promise<Reader> => {
    const asked = request({ socketPath, path: `/${session}/${after}` }).end();
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    expect([answer.statusCode, answer.headers['content-type']]).toEqual([200, 'text/event-stream']);
    return new Reader(from, answer);
  };
  const step = async (session: ContextSession, text: string): Promise<void> =>
    session.reportMessage({ role: 'user', text });
  const arrived = (reader: Reader, session: ContextSession) =>
    until(
      () => reader.strip.last_step,
      (last) => last === session.state.seq,
    );
  const gone = () =>
    until(
      () => events.status.streams,
      (streams) => streams === 0,
    );
  const begun = async (id: string): Promise<ContextSession> => {
    const session = await agent.openSession({ id });
    await step(session, 'Begin');
    expect(await session.isDelivered(10_000)).toBe(true);
    return session;
  };
  /** A strip without its transaction, which other tests move, and with sorted marks. */
  const told = ({ basis: _, marks, ...rest }: Strip) => ({
    ...rest,
    marks: marks.map((mark) => JSON.stringify(mark)).sort(),
  });

  test('reports every step, context and verb as it happens, and its events rebuild the strip', async () => {
    const session = await begun(`${name}-a`);
    const reader = (await follow(session.id, await strip(session.id))).read();
    await writeFile(join(root, 'a.ts'), 'one\n');
    await session.recordCall({
      tool: 'read',
      args: { path: 'a.ts' },
      status: 'ok',
      content: 'one\n',
      answer: () => 'one\n',
      readings: [await wholeRead(agent, 'a.ts')],
    });
    await arrived(reader, session);
    expect(reader.strip.bands.map(({ name: own }) => own).sort()).toEqual([
      expect.stringContaining('a.ts'),
      'read a.ts',
    ]);
    expect(reader.strip.calls.map(({ chars }) => chars)).toEqual([null]);
    await session.assemble({ deliver: 'library' });
    await until(
      () => reader.strip.calls,
      (calls) => calls.some(({ chars }) => chars !== null),
    );
    await session.reportMessage({ role: 'assistant', text: 'Seen' }, undefined, { input: 7, cacheRead: 5 });
    const { id } = await agent.files.locate('a.ts');
    const plan = await session.planVerb('pin', [id]);
    await session.recordCall({
      tool: 'pin',
      args: { ids: [id] },
      status: 'ok',
      content: 'pinned',
      answer: () => 'pinned',
      plan,
    });
    await session.assemble({ deliver: 'library' });
    await step(session, 'Go on');
    await arrived(reader, session);
    await until(
      () => reader.strip.calls,
      (calls) => calls.length === 2,
    );
    expect(told(reader.strip)).toEqual(told(await strip(session.id)));
    expect(reader.strip.calls[0]?.usage).toEqual({ input: 7, cache_read: 5 });
    expect(reader.strip.marks.map(({ kind, tool }) => [kind, tool])).toEqual([['verb', 'pin']]);
    reader.leave();
  });

  test('loses nothing for a client that returns with its last event id; many clients cost one reader', async () => {
    const session = await begun(`${name}-b`);
    const start = await strip(session.id);
    const first = (await follow(session.id, start)).read();
    await step(session, 'Two');
    await arrived(first, session);
    first.leave();
    await gone();
    expect(events.status.sessions).toBe(0);
    for (const text of ['Three', 'Four', 'Five']) await step(session, text);
    expect(await session.isDelivered(10_000)).toBe(true);
    const again = (await follow(session.id, first.strip, first.lastId)).read();
    const others = await Promise.all(Array.from({ length: 20 }, async () => (await follow(session.id, start)).read()));
    expect(events.status).toEqual({ sessions: 1, streams: 21 });
    await step(session, 'Six');
    const fresh = async () => told(await strip(session.id));
    for (const reader of [again, ...others]) await arrived(reader, session);
    const now = await fresh();
    for (const reader of [again, ...others]) expect(told(reader.strip)).toEqual(now);
    for (const reader of [again, ...others]) reader.leave();
    await gone();
  });

  test('neither blocks nor grows for a client that does not read; the client gets everything in the end', async () => {
    const session = await begun(`${name}-c`);
    const start = await strip(session.id);
    const [slow, quick] = [await follow(session.id, start), (await follow(session.id, start)).read()];
    const response = responses.at(-2) as ServerResponse;
    await mkdir(join(root, 'many'));
    const names = Array.from({ length: 1_800 }, (_, i) => `many/${'x'.repeat(200)}${i}.txt`);
    await Promise.all(names.map((one) => writeFile(join(root, one), '')));
    const waiting: number[] = [];
    for (let i = 0; i < 6; i += 1) {
      const found = await mentions(agent, names.slice(i * 300, (i + 1) * 300));
      await session.recordCall({
        tool: 'ls',
        args: { i },
        status: 'ok',
        content: 'many',
        answer: () => 'many',
        mentions: found,
      });
      await arrived(quick, session);
      waiting.push(response.writableLength);
    }
    // At most one event waits, however many came since.
    expect(response.writableNeedDrain).toBe(true);
    expect(new Set(waiting.slice(-2)).size).toBe(1);
    slow.read();
    await arrived(slow, session);
    const now = told(await strip(session.id));
    expect([told(slow.strip), told(quick.strip)]).toEqual([now, now]);
    expect(slow.events).toBeLessThan(quick.events);
    for (const reader of [slow, quick]) reader.leave();
  });

  test('refuses a missing session before anything is sent', async () => {
    const asked = request({ socketPath, path: `/${name}-nobody` }).end();
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    expect(answer.statusCode).toBe(500);
    answer.resume();
    expect(events.status.streams).toBe(0);
  });
});

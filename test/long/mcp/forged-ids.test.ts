import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { hashText } from '../../../src/objects/hashes.js';
import { sessionId } from '../../../src/objects/ids.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { ObjectStore } from '../../../src/store/object-store.js';
import { HarnessApi } from '../../support/harness-api.js';
import { type Agent, httpAgent, type Serve, startServe, temporaryRoot } from '../../support/mcp-clients.js';
import { until } from '../../support/until.js';
import { openTestClient } from '../../support/xtdb.js';

/** The ways by which a call can bring an id from outside. */
const WAYS: Readonly<
  Record<
    string,
    (how: { readonly agent: Agent; readonly api: HarnessApi }) => (session: string, id: string) => Promise<unknown>
  >
> = {
  MCP:
    ({ agent }) =>
    (session, id) =>
      agent.call('ls', { session }, { meta: { callId: id } }),
  HTTP: ({ api }) => {
    const opened = new Map<string, Promise<unknown>>();
    return async (session, id) => {
      const opening = opened.get(session) ?? api.call('openSession', undefined, { id: session });
      opened.set(session, opening);
      await opening;
      return api.call('reportToolCalls', session, {
        calls: [{ id, name: 'bash', args: {}, content: `done ${randomUUID()}` }],
      });
    };
  },
};

describe('an id that names a part of a foreign session', () => {
  const xtdb = openTestClient();
  const store = new ObjectStore(xtdb);
  let root: string;
  let remove: () => Promise<void>;
  let serve: Serve;
  let agent: Agent;
  let api: HarnessApi;
  let text: string;

  beforeEach(async () => {
    ({ root, remove } = await temporaryRoot());
    text = `${randomUUID()}\n`.repeat(200);
    await writeFile(join(root, 'long.txt'), text);
    serve = await startServe([], root);
    agent = await httpAgent(serve);
    api = new HarnessApi(serve);
  });
  afterEach(async () => {
    await api.close();
    await agent.close();
    await serve.close();
    await remove();
  });

  test.each(Object.keys(WAYS))('names over %s a tool call and nothing else', async (way) => {
    const call = WAYS[way]?.({ agent, api });
    const [vic, att] = [sessionId(`vic-${randomUUID()}`), sessionId(`att-${randomUUID()}`)];
    const forged = [
      ...[1, 2, 3].flatMap((seq) => [
        `step:${vic}:${seq}`,
        `step:${vic}:${seq}~`,
        `${vic}:${seq}`,
        `call_${seq}@${vic}`,
      ]),
      `chunk:${hashText(text)}`,
      `chunk:${hashText(text)}~`,
      `session:${vic}`,
      `chat:${vic}`,
      `system_prompt:${vic}`,
      `step:${att}:1`,
      `step:${att}:1~`,
      hashText(text),
      '/etc/passwd',
      `two\nlines${hashText(text)}`,
    ];
    for (const id of forged) await call?.(att, id);
    await agent.call('read', { session: vic, path: 'long.txt' });
    for (const seq of [1, 2, 3]) await agent.call('ls', { session: vic }, { meta: { callId: `call_${seq}` } });
    // Repeats the calls now that the other session exists.
    for (const id of [...forged, `${vic}:9`]) await call?.(att, id);
    for (let n = 0; n < 6; n++) await agent.call('read', { session: vic, path: 'long.txt' });

    const stored = async (session: typeof vic) => (await (await store.latest()).steps(session)).length;
    await until(
      () => stored(vic),
      (steps) => steps === 10,
    );
    await until(
      () => stored(att),
      (steps) => steps === 2 * forged.length + 1,
    );
    for (const session of [vic, att]) expect(await verifySession(store, session)).toMatchObject({ ok: true, session });
    expect(
      (await (await store.latest()).sessions()).filter(
        ({ id }) => id.startsWith(`${vic}.`) || id.startsWith(`${att}.`),
      ),
    ).toEqual([]);
    const later = await agent.call('read', { session: `new-${randomUUID()}`, path: 'long.txt' });
    expect(later.text).toContain(text.trimEnd());
    const calls = (await (await store.latest()).steps(att)).map((step) => step.call?.id);
    // The harness's own ids are kept wherever they name nothing else [§2.6].
    expect(calls).toEqual(
      expect.arrayContaining([
        `step:${vic}:2`,
        `chunk:${hashText(text)}`,
        `step:${att}:1`,
        `step:${vic}:2~@${att}`,
        `session:${vic}@${att}~1`,
      ]),
    );
    // A line end in an id begins no line.
    const { text: listed } = await agent.call('context', { session: att });
    expect(listed).toContain(`id="two\\nlines${hashText(text)}" type=toolcall`);
    expect(listed).not.toMatch(/^lines/m);
  });

  test.each(['large-text', 'put', 'chat', 'session', 'system_prompt', `chat:${randomUUID()}`, `a@${randomUUID()}`])(
    'may be the name of a session: %s is delivered and verifies',
    async (name) => {
      const session = sessionId(name);
      await writeFile(join(root, 'large.txt'), `${randomUUID()}\n`.repeat(60_000));
      for (const path of ['large.txt', 'long.txt'])
        expect(await agent.call('read', { session, path })).toMatchObject({ isError: false });
      const stored = async () => (await (await store.latest()).steps(session)).length;
      await until(stored, (steps) => steps === 2);
      expect(await verifySession(store, session)).toMatchObject({ ok: true, session });
    },
  );
});

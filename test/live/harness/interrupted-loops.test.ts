import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { ContextClientOptions } from '../../../src/client/session/client-options.js';
import { ContextClient } from '../../../src/client/session/context-client.js';
import { LoopSession } from '../../../src/extensions/loop/loop-session.js';
import { HarnessClient } from '../../../src/harness/harness-client.js';
import type { TurnContext } from '../../../src/harness/harness-session.js';
import { hashText } from '../../../src/objects/hashes.js';
import { filesystemId } from '../../../src/objects/ids.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { testAddress } from '../../support/context.js';
import { GateProxy } from '../../support/gate-proxy.js';
import { callModel, isPrefix, call as modelCall, reply, user } from '../../support/loop-messages.js';
import { moment } from '../../support/moment.js';
import { callReport as call } from '../../support/tracked-project.js';

describe('a loop with interrupted records, forks and closings', () => {
  let root: string;
  let proxy: GateProxy;
  const clients: ContextClient[] = [];
  const filesystem = filesystemId(`fs-interrupted-${process.pid}`);
  const name = `interrupted-${process.pid}-${Date.now()}`;
  const open = async (options: Partial<ContextClientOptions> = {}): Promise<ContextClient> => {
    const client = await ContextClient.create({
      address: proxy.address,
      roots: [root],
      cwd: root,
      filesystemId: filesystem,
      track: false,
      ...options,
    });
    clients.push(client);
    return client;
  };
  beforeEach(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-interrupted-')));
    proxy = await new GateProxy(root).open();
  });
  afterEach(async () => {
    proxy.onSubmit = () => 'pass';
    await Promise.all(clients.splice(0).map((client) => client.close().catch(() => undefined)));
    await proxy.close();
    await rm(root, { recursive: true, force: true });
  });

  test('continues an epoch in a reopened session from the last handed-out request', async () => {
    const client = await open({ dataDir: join(root, 'a') });
    const harness = new HarnessClient(client);
    const id = `${name}-epoch`;
    type Epoch = Extract<TurnContext, { readonly format: 'messages' }>;
    const lines = ({ messages }: Epoch) => messages.map((one) => JSON.stringify(one));
    const first = await harness.openSession({ id });
    const one = (await first.beginTurn({ layout: 'epoch', messages: [user('begin here')] })) as Epoch;
    await first.reportToolCall({ id: `${id}_1`, name: 'bash', args: { command: 'one' }, content: 'it ran once' });
    await client.delivered();
    const [released, release] = moment();
    proxy.onSubmit = (body) => (body.includes('assembly_ref') ? released : 'pass');
    const two = (await first.beginTurn({ layout: 'epoch' })) as Epoch;
    expect(isPrefix(lines(one), lines(two))).toBe(true);
    await first.close();
    const again = await harness.openSession({ id });
    await again.reportToolCall({ id: `${id}_2`, name: 'bash', args: { command: 'two' }, content: 'it ran twice' });
    const third = again.beginTurn({ layout: 'epoch' });
    release();
    const three = (await third) as Epoch;
    expect({ epoch: three.epoch, two: lines(two), three: lines(three) }).toMatchObject({
      epoch: { number: 1, begins: false },
    });
    expect(isPrefix(lines(two), lines(three))).toBe(true);
  });

  test('can rebuild later requests of an epoch after a lost record', async () => {
    const client = await open({ dataDir: join(root, 'a'), queue: { maxPending: 12 } });
    const id = `${name}-loop`;
    const loop = new LoopSession(client, { id, layout: 'epoch', delivered: 'library' });
    const messages = [user('begin', 'm1')];
    await callModel(loop, messages);
    const text = `${Array.from({ length: 30 }, (_, i) => `line ${i} of a`).join('\n')}\n`;
    await writeFile(join(root, 'a.txt'), text);
    messages.push(...modelCall(`${id}_c1`, 'read', { path: join(root, 'a.txt') }, text));
    const filler = await client.openSession();
    await client.delivered();
    const context = await loop.context({ messages, system: 'be good' });
    expect(context?.epoch?.begins).toBe(false);
    const [released, release] = moment();
    proxy.onSubmit = () => released;
    let full: unknown;
    for (let i = 0; i < 20 && full === undefined; i++)
      await filler.recordCall(call({ content: `${i}` })).catch((error: unknown) => {
        full = error;
      });
    expect(full).toMatchObject({ code: 'full' });
    const handed = await loop.handed({ sha256: hashText('the list'), chars: 1, messages: 2 }).then(
      () => 'kept',
      (error: unknown) => String((error as { code?: string }).code),
    );
    release();
    proxy.onSubmit = () => 'pass';
    await client.delivered();
    messages.push(reply('I see', 'm2'), ...modelCall(`${id}_c2`, 'bash', { command: 'x' }, 'ran'));
    const next = await callModel(
      loop,
      messages.filter((one) => one.content !== 'I see'),
    );
    const { contexts } = await verifySession(await client.delivered(), loop.session?.id ?? ('' as never));
    expect({ handed, epoch: next.context.epoch, contexts }).toMatchObject({ contexts: { unequal: [] } });
  });

  test('recognises a fork whose process ended before it recorded the fork', async () => {
    const client = await open({ address: testAddress() });
    const id = `${name}-parent`;
    const loop = new LoopSession(client, { id, delivered: 'library' });
    const said = (mark: string) => [
      user('the first long question of the user', `${mark}1`),
      reply('the first answer', `${mark}2`),
      user('another question of the user', `${mark}3`),
      reply('another answer', `${mark}4`),
    ];
    await loop.follow({ messages: said('p') });
    const seq = loop.session?.state.seq ?? 0;
    await loop.close();
    const result: Record<string, unknown> = {};
    for (const killed of [false, true]) {
      const forkId = `${name}-child-${killed}`;
      // Does the same as lineage.forkAt up to the kill.
      if (killed) await client.closeSession(await client.forkSession(id, { id: forkId, at: seq }));
      const child = new LoopSession(client, { id: forkId, parent: id, delivered: 'library' });
      await child.follow({ messages: [...said('q'), user('and a new one', 'q5')] });
      result[String(killed)] = {
        id: child.session?.id.replace(forkId, 'child'),
        said: child.session?.state.turns.flatMap(({ messages }) => messages.map(({ text }) => text)),
        seq: child.session?.state.seq,
      };
      await child.close();
    }
    expect(result.true).toMatchObject({ id: 'child', said: (result.false as { said: unknown }).said });
  });

  test('continues if the abandoned session could not be closed', async () => {
    const client = await open();
    const id = `${name}-left`;
    const loop = new LoopSession(client, { id, delivered: 'library' });
    const before = [
      user('a question', 'a1'),
      reply('an answer', 'a2'),
      user('a second question', 'a3'),
      reply('a second answer', 'a4'),
    ];
    await loop.follow({ messages: before });
    // The answer about the closing version of the abandoned session is lost, twice.
    let drops = 0;
    const left = loop.session;
    proxy.onSubmit = () => 'pass';
    const close = left?.close.bind(left);
    if (left !== undefined && close !== undefined)
      left.close = () => {
        proxy.onSubmit = () => {
          drops += 1;
          return 'refuse';
        };
        return close().finally(() => {
          proxy.onSubmit = () => 'pass';
        });
      };
    const undone = [...before.slice(0, 2), user('a different second question', 'b3')];
    const failed = await loop.follow({ messages: undone }).then(() => 'went', String);
    const again = await loop.follow({ messages: undone }).then(() => 'went', String);
    expect({ drops, failed, again }).toMatchObject({ again: 'went' });
  });
});

import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { ContextClientOptions } from '../../../src/client/session/client-options.js';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import { filesystemId } from '../../../src/objects/ids.js';
import { countRequests, mentions, openClient, wholeRead } from '../../support/context.js';
import { LateAnswers } from '../../support/late-answers.js';
import { type OwnNode, ownNode } from '../../support/own-node.js';
import { callReport as call } from '../../support/tracked-project.js';

/** Time for a client to process an answer before the held one is passed on. */
const DIGEST_MS = 1_000;

describe('a late outcome of a transaction', () => {
  let root: string;
  let proxy: LateAnswers;
  // A separate node, because foreign writes would make the client read again.
  let node: OwnNode;
  const clients: ContextClient[] = [];

  const open = async (options: Partial<ContextClientOptions>): Promise<ContextClient> => {
    const client = await openClient(root, { address: proxy.address, track: false, ...options });
    clients.push(client);
    return client;
  };

  beforeAll(async () => {
    node = await ownNode();
  });
  afterAll(() => node.stop());

  beforeEach(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-late-')));
    proxy = await LateAnswers.open(root, node.address);
  });

  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close()));
    await proxy.close();
    await rm(root, { recursive: true, force: true });
  });

  test('leaves a sole writer with the version of the later transaction, as in a replay [decision H6]', async () => {
    const client = await open({ soleWriter: true });
    const session = await client.openSession();
    const reads = async (text: string) => {
      await writeFile(join(root, 'a.ts'), text);
      return session.recordCall(call({ readings: [await wholeRead(client, 'a.ts')], content: text }));
    };
    await (await reads('the first text')).applied;
    const held = proxy.holdNext();
    const second = await reads('the second one');
    const third = await reads('the third text, the last');
    await held.overtaken;
    await Promise.race([third.applied, delay(DIGEST_MS)]);
    const before = await session.assemble();
    held.release();
    await Promise.all([second.applied, third.applied]);
    const after = await session.assemble();
    expect(after.text).toBe(before.text);
    expect(after.text).toContain(`char_count=${'the third text, the last'.length}`);
    expect(after.sections.find(({ name }) => name === 'active')?.text).toContain('the third text, the last');
  });

  test('does not acknowledge a call that cannot be stored exactly, without a journal, for any writer', async () => {
    for (const options of [{ soleWriter: true }, {}]) {
      const session = await (await open(options)).openSession();
      await session.recordCall(call({ content: 'one' }));
      const odd = call({ tool: 'half \ud800', content: 'two' });
      await expect(session.recordCall(odd)).rejects.toMatchObject({ name: 'DocumentError', code: 'lone-surrogate' });
      const { callId, applied } = await session.recordCall(call({ content: 'three' }));
      await applied;
      expect(session.state.isActive(callId)).toBe(true);
    }
  });

  test('does not let a mention hide a later read in another session of the client', async () => {
    const client = await open({ dataDir: join(root, 'data') });
    await writeFile(join(root, 'a.ts'), 'the text');
    const [one, other] = [await client.openSession(), await client.openSession()];
    await client.delivered();
    const held = proxy.holdNext();
    const mention = await one.recordCall(call({ tool: 'list', mentions: await mentions(client, ['a.ts']) }));
    await held.caught;
    // Writes of one client with the same file are serial, so the read waits for the outcome of the
    // mention.
    const read = await other.recordCall(call({ readings: [await wholeRead(client, 'a.ts')], content: 'the text' }));
    const before = await other.assemble();
    expect(before.text).toContain(`char_count=${'the text'.length}`);
    held.release();
    await Promise.all([mention.applied, read.applied]);
    expect((await other.assemble()).text).toBe(before.text);
  });

  test('keeps a read by another session during the wait out of the context [decision E7]', async () => {
    const [filesystem, shown] = [filesystemId(`fs-late-${process.pid}`), 'what the active file holds'];
    const first = await open({ filesystemId: filesystem });
    const begun = await first.openSession();
    for (const [name, text] of Object.entries({ 'active.ts': shown, 'known.ts': 'short' })) {
      await writeFile(join(root, name), text);
      const reading = { ...(await wholeRead(first, name)), activate: text === shown };
      await (await begun.recordCall(call({ readings: [reading] }))).applied;
    }
    await first.close();
    let asked = 0;
    for (let isHeld = true; isHeld; asked += 1) {
      // A client without knowledge reads everything.
      const client = await open({ dataDir: join(root, `data-${asked}`), filesystemId: filesystem });
      const [session, other] = [await client.openSession({ id: begun.id }), await client.openSession()];
      await client.delivered();
      const held = proxy.holdRead(asked);
      const context = session.assemble();
      isHeld = await Promise.race([held.caught.then(() => true), context.then(() => false)]);
      await writeFile(join(root, 'known.ts'), 'longer'.repeat(asked + 2));
      const read = await other.recordCall(call({ readings: [await wholeRead(client, 'known.ts')] }));
      held.release();
      const { text, record } = await context;
      await read.applied;
      const { validTime, txId } = record.basis ?? {};
      if (validTime === undefined || txId === undefined) throw new Error('assembled without the database');
      expect({ asked, text: (await client.contextAsOf(begun.id, { validTime, txId }))?.text }).toEqual({ asked, text });
      expect(text).toContain(shown);
      await client.close();
    }
    expect(asked).toBeGreaterThan(2);
  });

  test('needs no metadata lookup for a context while there are no other writers', async () => {
    const client = await open({ address: node.address });
    const session = await client.openSession();
    for (const name of ['a.ts', 'b.ts']) {
      await writeFile(join(root, name), name);
      await session.recordCall(call({ readings: [await wholeRead(client, name)], content: name }));
      if (name === 'a.ts') await session.assemble();
    }
    const { requests } = await countRequests(() => session.assemble());
    // Only the basis: the client knows the pool's lines, and holds active contents under their
    // hashes.
    expect(requests).toEqual({ '/_xtdb/db': 1 });
  });
});

import { randomUUID } from 'node:crypto';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import { openClient } from '../../support/context.js';
import { Road } from '../../support/road.js';
import { callReport as call } from '../../support/tracked-project.js';

describe('call ids with a database slower than a call', () => {
  let root: string;
  let road: Road;
  let client: ContextClient;
  let id: string;

  beforeEach(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-slow-ids-')));
    road = new Road(root);
    await road.open();
    id = `slow-${randomUUID()}`;
    client = await openClient(root, { address: road.address, dataDir: join(root, 'data'), track: false });
  });

  afterEach(async () => {
    road.delayMs = 0;
    await road.open();
    await client.close();
    await road.close();
    await rm(root, { recursive: true, force: true });
  });

  test('stay as the harness gave them, in a named session and in a new one that the database has', async () => {
    const [named, fresh] = [await client.openSession({ id }), await client.openSession()];
    await client.backpressure(0, 60_000);
    road.delayMs = 400;
    for (const [i, session] of [named, fresh].entries()) {
      const { callId } = await session.recordCall(call({ callId: `call-${i}-${id}` }));
      expect(callId).toBe(`call-${i}-${id}`);
    }
  });

  test('get the session id appended if another chat has them', async () => {
    const one = await client.openSession({ id: `${id}-one` });
    await (await one.recordCall(call({ callId: `call-${id}` }))).applied;
    const another = await openClient(root, { address: road.address, dataDir: join(root, 'other-data'), track: false });
    const other = await another.openSession({ id: `${id}-other` });
    road.delayMs = 400;
    expect((await other.recordCall(call({ callId: `call-${id}` }))).callId).toBe(`call-${id}@${id}-other`);
    road.delayMs = 0;
    await another.close();
  });

  test('get the session id appended while the database is away', async () => {
    const session = await client.openSession({ id });
    await client.backpressure(0, 60_000);
    await road.close();
    expect((await session.recordCall(call({ callId: `call-${id}` }))).callId).toBe(`call-${id}@${id}`);
  });
});

import { randomUUID } from 'node:crypto';
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { ContextClientOptions } from '../../../src/client/session/client-options.js';
import { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { filesystemId } from '../../../src/objects/ids.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { mentions, wholeRead } from '../../support/context.js';
import { GateProxy } from '../../support/gate-proxy.js';
import { moment } from '../../support/moment.js';
import { Road } from '../../support/road.js';
import { callReport as call } from '../../support/tracked-project.js';
import { until } from '../../support/until.js';

const FILES = Array.from({ length: 5 }, (_, i) => `f${i}.ts`);

describe('a context that waits for no transaction, beside another writing client', () => {
  let root: string;
  let gate: GateProxy;
  let road: Road;
  let chars = 100;
  const clients: ContextClient[] = [];
  const filesystem = filesystemId(`fs-beside-${randomUUID()}`);

  const open = async (options: Partial<ContextClientOptions> = {}): Promise<ContextClient> => {
    const settings = { address: road.address, roots: [root], cwd: root, filesystemId: filesystem, track: false };
    const client = await ContextClient.create({ ...settings, ...options });
    clients.push(client);
    return client;
  };

  beforeEach(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-beside-')));
    gate = await new GateProxy(root).open();
    road = new Road(root);
    await road.open();
    for (const name of FILES) await writeFile(join(root, name), 'x'.repeat(50));
  });

  afterEach(async () => {
    gate.onQuery = () => undefined;
    await Promise.all(clients.splice(0).map((client) => client.close().catch(() => undefined)));
    await Promise.all([gate.close(), road.close()]);
    await rm(root, { recursive: true, force: true });
  });

  /** Opens a session that knows the files, and another client's that writes them. */
  async function begin(address = gate.address) {
    const client = await open({ address, dataDir: join(root, 'data') });
    const session = await client.openSession();
    await session.reportMessage({ role: 'user', text: 'begin' });
    await session.recordCall(call({ tool: 'ls', mentions: await mentions(client, FILES) }));
    await client.backpressure(0, 60_000);
    const other = await open();
    return { client, session, other, theirs: await other.openSession() };
  }

  /**
   * Writes a file by another client and waits for the database. Returns the line that every context
   * must show now.
   */
  async function write(
    { other, theirs }: { readonly other: ContextClient; readonly theirs: ContextSession },
    name: string,
  ) {
    chars += 1;
    await writeFile(join(root, name), 'y'.repeat(chars));
    const { applied } = await theirs.recordCall(call({ readings: [await wholeRead(other, name)] }));
    const { txId = Number.NaN } = await applied;
    return { line: `${name} file_type=ts char_count=${chars}`, txId };
  }

  const handOut = (session: ContextSession) => session.assemble({ optimistic: true, deliver: 'pi' });
  const isCurrent = ({ record }: Awaited<ReturnType<typeof handOut>>) =>
    record.basis !== undefined && record.behind === undefined;

  test('shows the database as of its request, or reports the last foreign transaction', async () => {
    const { client, session, ...others } = await begin();
    await until(() => handOut(session), isCurrent);
    let behind = 0;
    for (let round = 0; round < 12; round++) {
      await session.reportMessage({ role: 'user', text: `question ${round}` });
      const [held, release] = moment();
      // Every third read of the other client's writes is slow.
      gate.onQuery = () => (round % 3 === 2 ? held : undefined);
      const { line, txId } = await write(others, FILES[round % FILES.length] ?? '');
      const { text, record } = await handOut(session);
      release();
      if (text.includes(line)) continue;
      behind += 1;
      expect(record.basis?.txId).toBeLessThan(txId);
      expect(record.behind === null || (record.behind ?? 0) >= txId).toBe(true);
    }
    expect(behind).toBeGreaterThan(0);
    gate.onQuery = () => undefined;
    await until(() => handOut(session), isCurrent);
    await client.backpressure(0, 60_000);
    expect(await verifySession(await client.delivered({ others: false }), session.id)).toMatchObject({ ok: true });
  });

  test('shows writes during an earlier read', async () => {
    const { session, ...others } = await begin();
    await until(() => handOut(session), isCurrent);
    const [held, release] = moment();
    gate.onQuery = () => held;
    await write(others, 'f0.ts');
    // Its read began before the second write, and ends after it.
    expect(isCurrent(await handOut(session))).toBe(false);
    const second = await write(others, 'f1.ts');
    gate.onQuery = () => undefined;
    const next = handOut(session);
    release();
    const { text, record } = await next;
    // Null says that the database did not answer in time, which is also correct.
    const isSaid = record.behind === null || (record.behind ?? 0) >= second.txId;
    expect(text.includes(second.line) || isSaid).toBe(true);
    expect((await until(() => handOut(session), isCurrent)).text).toContain(second.line);
  });

  test('reports unknown state if the database does not answer', async () => {
    const { session } = await begin(road.address);
    await until(() => handOut(session), isCurrent);
    await road.close();
    expect((await handOut(session)).record).toMatchObject({ basis: { txId: expect.any(Number) }, behind: null });
    await road.open();
    await until(() => handOut(session), isCurrent);
  });
});

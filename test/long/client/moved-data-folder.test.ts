import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ContextClient } from '../../../src/client/session/context-client.js';
import { ensureNode, type NodeHandle } from '../../../src/node/ensure-node.js';
import { stopNode } from '../../../src/node/stop-node.js';
import { type FilesystemId, filesystemId } from '../../../src/objects/ids.js';
import { mentions, wholeRead } from '../../support/context.js';
import { callReport, contentsOf } from '../../support/tracked-project.js';

interface Machine {
  readonly node: NodeHandle;
  readonly client: ContextClient;
  close(): Promise<number>;
}

let folder: string;
let root: string;
const open: Machine[] = [];
const dataDirs = new Set<string>();

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-moved-')));
  root = join(folder, 'project');
  await mkdir(root);
});

afterEach(async () => {
  for (const machine of open.splice(0)) await machine.close();
  for (const dataDir of dataDirs) await stopNode(dataDir);
  await rm(folder, { recursive: true, force: true });
});

/** A process that uses a data folder on a machine with a filesystem of this id. */
async function start(dataDir: string, filesystem: FilesystemId): Promise<Machine> {
  dataDirs.add(dataDir);
  const node = await ensureNode({ dataDir, profile: 'rocksdb', idleExitSeconds: 600 });
  const client = await ContextClient.create({
    address: node.address,
    roots: [root],
    cwd: root,
    filesystemId: filesystem,
    dataDir,
  });
  const machine: Machine = {
    node,
    client,
    close: async () => {
      const { unflushed } = await client.close();
      await node.release();
      return unflushed;
    },
  };
  open.push(machine);
  return machine;
}

test('a moved data folder works: sessions resume, foreign files are orphaned and never deleted [F8]', async () => {
  const here = filesystemId(`fs-here-${randomUUID()}`);
  const there = filesystemId(`fs-there-${randomUUID()}`);
  const before = join(folder, 'data');
  for (const name of ['a.ts', 'b.ts', 'stub.ts']) await writeFile(join(root, name), `${name} here`);

  const first = await start(before, here);
  const session = await first.client.openSession();
  await session.setSystemPrompt('be brief');
  await session.reportMessage({ role: 'user', text: 'look around' });
  const read = await session.recordCall(
    callReport({ readings: [await wholeRead(first.client, 'a.ts'), await wholeRead(first.client, 'b.ts')] }),
  );
  const [a, b] = [...(await read.applied).outcomes.keys()];
  await session.recordCall(callReport({ tool: 'ls', mentions: await mentions(first.client, ['stub.ts']) }));
  const plan = await session.planVerb('pin', ['a.ts']);
  await (await session.recordCall(callReport({ tool: 'pin', plan }))).applied;
  // The last step is acknowledged while no node runs, and moves in the journal.
  await stopNode(before);
  const last = await session.recordCall(callReport({ tool: 'bash', content: 'only in the journal' }));
  const { sets, turns, seq } = session.state;
  expect(await first.close()).toBeGreaterThan(0);

  // On the other machine, one file is missing and the other has different content.
  const after = join(folder, 'elsewhere', 'palimpsest');
  await mkdir(join(folder, 'elsewhere'));
  await rename(before, after);
  await rm(join(root, 'a.ts'));
  await writeFile(join(root, 'b.ts'), 'b.ts there');
  const second = await start(after, there);
  const resumed = await second.client.openSession({ id: session.id });
  expect({ ...resumed.state.sets }).toEqual({ ...sets });
  expect(resumed.state.turns).toEqual(turns);
  expect(resumed.state.seq).toBe(seq);
  expect(second.client.tracking).toMatchObject({
    attached: 0,
    orphaned: 2,
    unreadable: [
      { id: a, reason: 'foreign-filesystem' },
      { id: b, reason: 'foreign-filesystem' },
    ],
  });
  expect(await contentsOf(second.client, a)).toEqual(['a.ts here']);
  expect(await contentsOf(second.client, b)).toEqual(['b.ts here']);
  const { text } = await resumed.assemble();
  for (const shown of ['be brief', 'user: look around', '\na.ts here', '\nb.ts here', 'only in the journal'])
    expect(text).toContain(shown);
  expect(text).not.toContain('[deleted]');
  expect((await resumed.load(last.callId))?.version.content).toBe('only in the journal');

  // Work continues there. A file at the same path is another object, because its filesystem is
  // another.
  const again = await resumed.recordCall(callReport({ readings: [await wholeRead(second.client, 'b.ts')] }));
  const [other] = [...(await again.applied).outcomes.keys()];
  expect(other).not.toBe(b);
  expect(await contentsOf(second.client, b)).toEqual(['b.ts here']);
  expect(await second.close()).toBe(0);
  await stopNode(after);

  // After the folder is moved back, its files are tracked again. Files that left meanwhile are
  // reported.
  await rename(after, before);
  const third = await start(before, here);
  const back = await third.client.openSession({ id: session.id });
  expect(back.state.seq).toBe(seq + 1);
  expect(await contentsOf(third.client, a)).toEqual(['a.ts here', null]);
  expect(await contentsOf(third.client, b)).toEqual(['b.ts here', 'b.ts there']);
  expect(third.client.tracking).toMatchObject({
    attached: 2,
    orphaned: 1,
    unreadable: [{ id: other, reason: 'foreign-filesystem' }],
  });
});

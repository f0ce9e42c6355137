import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ensureNode } from '../../../src/node/ensure-node.js';
import { readState } from '../../../src/node/node-state.js';
import { type NodeStatusReport, nodeStatus } from '../../../src/node/node-status.js';
import { probeNode } from '../../../src/node/probe-node.js';
import { stopNode } from '../../../src/node/stop-node.js';
import { identifyProcess, isAlive } from '../../../src/process/process-identity.js';
import { pollUntil } from '../../../src/process/within-limit.js';
import { XtdbClient } from '../../../src/xtdb/xtdb-client.js';
import { runCli } from '../../support/run-cli.js';

type Running = Extract<NodeStatusReport, { readonly running: true }>;

let dataDir: string;
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'palimpsest-node-'));
});
afterAll(async () => {
  await stopNode(dataDir);
  await rm(dataDir, { recursive: true, force: true });
});

async function statusOfRunning(): Promise<Running> {
  const status = await nodeStatus(dataDir);
  if (!status.running) throw new Error(`no node runs: ${JSON.stringify(status)}`);
  return status;
}

const startArgs = (): readonly string[] => ['node', 'start', '--data', dataDir, '--profile', 'memory', '--json'];

/** Kills processes as a crash of the machine would, and waits until they are gone. */
async function killHard(...pids: readonly (number | null)[]): Promise<void> {
  const identities = (await Promise.all(pids.map((pid) => identifyProcess(pid ?? 0)))).filter(
    (identity) => identity !== undefined,
  );
  expect(identities).toHaveLength(pids.length);
  for (const { pid } of identities) process.kill(pid, 'SIGKILL');
  for (const identity of identities) {
    expect(await pollUntil(async () => ((await isAlive(identity)) ? undefined : true), { limitMs: 240_000 })).toBe(
      true,
    );
  }
}

// The cases follow one node through its life, in this order: each start of a JVM costs seconds.
describe('the life of a node', () => {
  test('starts once for two concurrent processes, which both get it', async () => {
    const [a, b] = await Promise.all([runCli(startArgs()), runCli(startArgs())]);
    expect([a.code, b.code]).toEqual([0, 0]);
    const [first, second] = [JSON.parse(a.stdout), JSON.parse(b.stdout)];
    expect([first.started, second.started].filter(Boolean)).toHaveLength(1);
    expect(second).toMatchObject({ pid: first.pid, address: first.address, profile: 'memory', version: '1.24.3' });
    expect((await stat(join(dataDir, 'run'))).mode & 0o777).toBe(0o700);
  });

  test('reports in its status that it answers, under supervision', async () => {
    const { code, stdout } = await runCli(['node', 'status', '--data', dataDir, '--json']);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      running: true,
      phase: 'ready',
      supervised: true,
      answers: true,
      ingesterFailed: false,
      restarts: 0,
      users: 0,
      version: '1.24.3',
    });
  });

  test('has a readable log', async () => {
    const { stdout } = await runCli(['node', 'logs', '--data', dataDir]);
    expect(stdout.length).toBeGreaterThan(0);
    expect(await readFile(join(dataDir, 'logs', 'node.log'), 'utf8')).toContain(stdout.trim());
  });

  test('refuses another profile while it runs', async () => {
    await expect(ensureNode({ dataDir, profile: 'rocksdb' })).rejects.toMatchObject({ code: 'profile-mismatch' });
    expect((await statusOfRunning()).users).toBe(0);
  });

  test('restarts the JVM after kill -9 on the same socket, and a client continues', async () => {
    const before = await statusOfRunning();
    const client = new XtdbClient(async () => (await ensureNode({ dataDir, profile: 'memory' })).address);
    expect((await client.status()).ingesterFailed).toBe(false);
    await killHard(before.pid);
    expect((await client.status()).ingesterFailed).toBe(false);
    await client.close();
    const node = await ensureNode({ dataDir, profile: 'memory' });
    expect(node.started).toBe(false);
    expect(node.address).toEqual(before.address);
    expect(node.pid).not.toBe(before.pid);
    expect(await probeNode(node.address, 60_000)).toMatchObject({ ingesterFailed: false });
    await node.release();
    expect(await statusOfRunning()).toMatchObject({
      restarts: 1,
      frontExit: { signal: 'SIGKILL' },
      supervisorPid: before.supervisorPid,
    });
  });

  test('survives kill -9 of its supervisor, is found, and gets a successor when it dies', async () => {
    const before = await statusOfRunning();
    await killHard(before.supervisorPid);
    expect(await statusOfRunning()).toMatchObject({ supervised: false, answers: true, pid: before.pid });
    const same = await ensureNode({ dataDir, profile: 'memory' });
    expect([same.started, same.pid]).toEqual([false, before.pid]);
    await same.release();
    await killHard(before.pid);
    // The state, the socket and the kernel lock of the dead node still exist.
    expect(await readState(join(dataDir, 'node.json'))).toMatchObject({ phase: 'ready', jvm: { pid: before.pid } });
    expect(await nodeStatus(dataDir)).toMatchObject({ running: false, failure: null });
    const next = await ensureNode({ dataDir, profile: 'memory' });
    expect(next.started).toBe(true);
    expect(await probeNode(next.address, 60_000)).toBeDefined();
    await next.release();
  });

  test('ends both processes on stop without a state; a second stop finds nothing', async () => {
    const before = await statusOfRunning();
    const { stdout } = await runCli(['node', 'stop', '--data', dataDir, '--json']);
    expect(JSON.parse(stdout)).toEqual({ stopped: true });
    expect(await identifyProcess(before.pid ?? 0)).toBeUndefined();
    expect(await identifyProcess(before.supervisorPid)).toBeUndefined();
    expect(await readState(join(dataDir, 'node.json'))).toBeUndefined();
    expect(await stopNode(dataDir)).toBe(false);
  });
});

import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ensureNode } from '../../../src/node/ensure-node.js';
import { nodeStatus } from '../../../src/node/node-status.js';
import { probeNode } from '../../../src/node/probe-node.js';
import { stopNode } from '../../../src/node/stop-node.js';
import { pollUntil } from '../../../src/process/within-limit.js';

let root: string;
let dataDir: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'palimpsest-leave-'));
  dataDir = join(root, 'data');
});
afterEach(async () => {
  await stopNode(dataDir);
  await rm(root, { recursive: true, force: true });
});

describe('an unused node', () => {
  test('is stopped by its last user, under a data folder too long for a socket', async () => {
    dataDir = join(root, 'x'.repeat(60), 'y'.repeat(60));
    await mkdir(join(root, 'runtime'), { mode: 0o700 });
    const options = { dataDir, profile: 'memory', onExit: 'stop-last', runtimeDir: join(root, 'runtime') } as const;
    const first = await ensureNode(options);
    const second = await ensureNode(options);
    expect([first.started, second.started, second.pid]).toEqual([true, false, first.pid]);
    expect(first.address.kind === 'unix' && dirname(dirname(first.address.socketPath))).toBe(
      join(root, 'runtime', 'palimpsest'),
    );
    await first.release();
    await first.release();
    expect(await probeNode(second.address, 60_000)).toBeDefined();
    expect(await nodeStatus(dataDir)).toMatchObject({ running: true, users: 1 });
    await second.release();
    expect(await nodeStatus(dataDir)).toMatchObject({ running: false, failure: null });
  });

  test('on TCP with a token ends by itself when idle and leaves no state', async () => {
    const options = { dataDir, profile: 'memory', transport: 'tcp', idleExitSeconds: 2 } as const;
    // A caller that stops waiting leaves a starting node behind, and the next one finds it.
    await expect(ensureNode({ ...options, readyTimeoutMs: 1 })).rejects.toMatchObject({
      code: 'ready-timeout',
      message: expect.stringContaining('--ready-timeout'),
    });
    const node = await ensureNode(options);
    expect(node.started).toBe(false);
    await node.release();
    if (node.address.kind !== 'tcp') throw new Error('a TCP address was asked for');
    expect(node.address.origin).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(node.address.token.length).toBeGreaterThan(20);
    expect(await probeNode({ ...node.address, token: 'wrong' }, 60_000)).toBeUndefined();
    // Reads the state from its file, because a request would keep the node from being idle.
    const gone = async (): Promise<true | undefined> =>
      readFile(join(dataDir, 'node.json')).then(
        () => undefined,
        () => true as const,
      );
    expect(await pollUntil(gone, { limitMs: 240_000 })).toBe(true);
    expect(await probeNode(node.address, 60_000)).toBeUndefined();
    expect(await readFile(join(dataDir, 'logs', 'node.log'), 'utf8')).toContain('ended by itself');
  });
});

import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type NodeState, readState } from '../../../src/node/node-state.js';
import { identifyProcess } from '../../../src/process/process-identity.js';
import { type Agent, stdioAgent } from '../../support/mcp-clients.js';
import { runCli } from '../../support/run-cli.js';
import { until } from '../../support/until.js';

/** As on Windows, where Node.js has no unix sockets. */
const TCP = { PALIMPSEST_TCP: '1' };

let dataDir: string;
let root: string;
let agents: readonly Agent[] = [];
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'palimpsest-tcp-'));
  root = await mkdtemp(join(tmpdir(), 'palimpsest-tcp-root-'));
  await writeFile(join(root, 'a.txt'), 'alpha\n');
});
afterAll(async () => {
  await Promise.all(agents.map((agent) => agent.close()));
  await runCli(['node', 'stop', '--data', dataDir]);
  await Promise.all([dataDir, root].map((dir) => rm(dir, { recursive: true, force: true })));
});

const flags = (): readonly string[] => ['--data', dataDir, '--profile', 'rocksdb'];

/** Returns the state of the node once it is ready, with its address. */
async function ready(
  isOther = (_: NodeState): boolean => true,
): Promise<NodeState & { origin: string; token: string }> {
  const state = await until(
    () => readState(join(dataDir, 'node.json')),
    (found) => found?.phase === 'ready' && isOther(found),
  );
  if (state?.address?.kind !== 'tcp') throw new Error(`not on TCP: ${JSON.stringify(state)}`);
  return { ...state, origin: state.address.origin, token: state.address.token };
}

async function ask(path: string, token: string | undefined, method = 'GET'): Promise<number> {
  const { origin } = await ready();
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return (await fetch(`${origin}/_xtdb${path}`, { method, headers })).status;
}

// The cases follow one node through its life, in this order: each start of a JVM costs seconds.
describe('a node on TCP', () => {
  test('is shared by two agents of two processes, and records both', async () => {
    agents = await Promise.all([1, 2].map((nth) => stdioAgent(root, [...flags(), '--session', `tcp-${nth}`], TCP)));
    for (const agent of agents) expect((await agent.call('read', { path: 'a.txt' })).text).toContain('alpha');
    const texts = await Promise.all(agents.map((agent) => agent.call('context', {})));
    for (const { text } of texts) expect(text).toContain('a.txt');
    const { origin } = await ready();
    expect(origin).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    const { stdout } = await runCli(['node', 'status', '--data', dataDir, '--json']);
    expect(JSON.parse(stdout)).toMatchObject({
      answers: true,
      users: 2,
      restarts: 0,
      address: { kind: 'tcp', origin },
    });
  });

  test('has a token that only its user can read', async () => {
    const { token } = await ready();
    expect((await readFile(join(dataDir, 'run', 'token'), 'utf8')).trim()).toBe(token);
    const modes = await Promise.all(['', 'run', 'run/token', 'node.json'].map((name) => stat(join(dataDir, name))));
    expect(modes.map(({ mode }) => (mode & 0o777).toString(8))).toEqual(['700', '700', '600', '600']);
  });

  test('refuses every request without its token, also one to stop', async () => {
    const { token } = await ready();
    for (const wrong of [undefined, 'wrong', token.slice(1), `${token}x`])
      for (const [path, method] of [
        ['/status', 'GET'],
        ['/query', 'POST'],
        ['/stop', 'POST'],
      ] as const)
        expect([wrong, path, await ask(path, wrong, method)]).toEqual([wrong, path, 401]);
    expect(await ask('/status', token)).toBe(200);
  });

  test('is restarted after kill -9 on another port, where both agents find it again', async () => {
    const before = await ready();
    process.kill(before.jvm?.pid ?? 0, 'SIGKILL');
    const after = await ready(({ restarts, jvm }) => restarts === 1 && jvm?.pid !== before.jvm?.pid);
    expect(after.supervisor).toEqual(before.supervisor);
    await writeFile(join(root, 'b.txt'), 'beta\n');
    for (const agent of agents) {
      expect((await agent.call('read', { path: 'b.txt' })).text).toContain('beta');
      expect((await agent.call('context', {})).text).toContain('b.txt');
    }
  });

  test('ends in order when it is asked to, and starts again with all sessions and another token', async () => {
    await Promise.all(agents.map((agent) => agent.close()));
    agents = [];
    const before = await ready();
    const { stdout } = await runCli(['node', 'stop', '--data', dataDir, '--json']);
    expect(JSON.parse(stdout)).toEqual({ stopped: true });
    for (const { pid } of [before.jvm ?? { pid: 0 }, before.supervisor])
      expect(await identifyProcess(pid)).toBeUndefined();
    expect(await readState(join(dataDir, 'node.json'))).toBeUndefined();
    const log = await readFile(join(dataDir, 'logs', 'node.log'), 'utf8');
    expect(log).toContain('Stopping: request');
    expect(log.trimEnd().split('\n').at(-1)).toContain('the node ended by itself');
    const sessions = await runCli(['sessions', '--data', dataDir, '--json'], TCP);
    expect(sessions.stdout).toContain('tcp-1');
    expect(sessions.stdout).toContain('tcp-2');
    expect((await ready()).token).not.toBe(before.token);
  });
});

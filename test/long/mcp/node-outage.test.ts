import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ensureNode } from '../../../src/node/ensure-node.js';
import { nodeStatus } from '../../../src/node/node-status.js';
import { stopNode } from '../../../src/node/stop-node.js';
import { objectId } from '../../../src/objects/ids.js';
import { openClient } from '../../support/context.js';
import { type Agent, type Answer, stdioAgent, temporaryRoot } from '../../support/mcp-clients.js';

let root: string;
let remove: () => Promise<void>;
let data: string;

beforeAll(async () => {
  ({ root, remove } = await temporaryRoot());
  data = await mkdtemp(join(tmpdir(), 'palimpsest-outage-'));
  await writeFile(join(root, 'a.txt'), 'alpha\n');
});

afterAll(async () => {
  await stopNode(data);
  await rm(data, { recursive: true, force: true });
  await remove();
});

const QUIET = ['--log-level', 'silent'];

/**
 * Repeats a call until it succeeds. Waits for each answer. Every earlier answer must be an error
 * that explains the outage.
 */
async function untilAnswered(agent: Agent, name: string, args: Readonly<Record<string, unknown>>): Promise<Answer> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const answer = await agent.call(name, args);
    if (!answer.isError) return answer;
    expect(answer.text).toMatch(/^Error: /);
  }
  throw new Error('the node never came back');
}

describe('without a database', () => {
  test('makes each call of a named session report an unreachable remote node, without hanging or acting', async () => {
    const agent = await stdioAgent(root, [...QUIET, '--session', 'named'], { XTDB_URL: 'http://127.0.0.1:9' });
    try {
      expect((await agent.client.listTools()).tools).toHaveLength(13);
      for (const content of ['one', 'two']) {
        const { text, isError } = await agent.call('write', { path: 'never.txt', content });
        expect(text).toMatch(/^Error: write could not begin: .*cannot reach the node.*\nNothing was done/);
        expect(isError).toBe(true);
      }
      await expect(readFile(join(root, 'never.txt'))).rejects.toThrow(/ENOENT/);
    } finally {
      await agent.close();
    }
  });

  test('answers initialize and tools/list without Java; calls name what is missing', async () => {
    const empty = await mkdtemp(join(tmpdir(), 'palimpsest-outage-'));
    const agent = await stdioAgent(root, [...QUIET, '--data', empty, '--profile', 'memory'], {
      PATH: '/nonexistent',
      JAVA_HOME: '',
    });
    try {
      expect(agent.client.getServerVersion()?.name).toBe('palimpsest');
      expect((await agent.call('ls')).text).toMatch(/^Error: ls could not begin: .*Java.*\nNothing was done/s);
    } finally {
      await agent.close();
      await rm(empty, { recursive: true, force: true });
    }
  });
});

describe('a node that starts, dies and returns', () => {
  test('gets the steps of a session that began during its start', async () => {
    const agent = await stdioAgent(root, [...QUIET, '--data', data, '--profile', 'rocksdb']);
    const { text, meta } = await agent.call('read', { path: 'a.txt' });
    expect(text).toMatch(/\nalpha\n$/);
    const early = await nodeStatus(data);
    expect(early.running && early.answers).toBe(false);
    const call = String(meta.call);
    expect((await agent.call('read', { id: call })).text).toContain('alpha');
    await agent.close();

    const node = await ensureNode({ dataDir: data, profile: 'rocksdb' });
    const client = await openClient(root, { address: node.address, dataDir: data, track: false });
    try {
      const session = await client.openSession({ id: call.slice(0, call.indexOf(':')) });
      expect(session.state.seq).toBe(2);
      expect((await session.load(objectId(call)))?.version.content).toBe('alpha\n');
    } finally {
      await client.close();
      await node.release();
      await stopNode(data);
    }
  });

  test('delays the first call with progress, not initialize; a kill loses nothing answered', async () => {
    const session = `outage-${process.pid}`;
    const agent = await stdioAgent(root, [...QUIET, '--data', data, '--profile', 'rocksdb', '--session', session]);
    const before = await nodeStatus(data);
    expect(before.running && before.answers).toBe(false);

    const progress: string[] = [];
    const first = await agent.call(
      'read',
      { path: 'a.txt' },
      { onProgress: ({ message }) => void progress.push(message ?? '') },
    );
    expect(first.text).toMatch(/\nalpha\n$/);
    expect(progress.some((message) => /starting/i.test(message))).toBe(true);

    const running = await nodeStatus(data);
    if (!running.running || running.pid === null) throw new Error('the node does not run');
    const answers: Answer[] = [first];
    const calls = Array.from({ length: 30 }, async () => {
      const answer = await agent.call('read', { path: 'a.txt' });
      // At the first answer, all other calls are running.
      if (answers.push(answer) === 2) process.kill(running.pid ?? 0, 'SIGKILL');
    });
    await Promise.all(calls);
    for (const { text, isError } of answers.slice(1))
      expect(isError ? text : 'fine').toMatch(/^(fine$|Error: .{20,})/s);

    const after = await untilAnswered(agent, 'context', {});
    expect(after.text).toContain(`session=${session}`);
    await agent.close();

    const node = await ensureNode({ dataDir: data, profile: 'rocksdb' });
    const client = await openClient(root, { address: node.address, dataDir: data, track: false });
    try {
      const { state, load } = await client
        .openSession({ id: session })
        .then((opened) => ({ state: opened.state, load: opened.load.bind(opened) }));
      const recorded = state.turns.flatMap(({ messages }) => messages.flatMap(({ toolcall_refs: refs = [] }) => refs));
      expect(new Set(recorded).size).toBe(recorded.length);
      expect(state.seq).toBe(recorded.length);
      const answered = answers.filter(({ isError }) => !isError).map(({ meta }) => String(meta.call));
      expect(recorded).toEqual(expect.arrayContaining([...answered, String(after.meta.call)]));
      // A call without a successful answer may be recorded, but then it is recorded whole.
      const objects = await Promise.all(recorded.map((id) => load(id)));
      expect(objects.every((object) => object?.version.type === 'toolcall')).toBe(true);
    } finally {
      await client.close();
      await node.release();
    }
  });
});

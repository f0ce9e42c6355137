import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, realpath, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { FOLLOWER } from '../../../src/host/followed-session.js';
import { stopNode } from '../../../src/node/stop-node.js';
import { openClient } from '../../support/context.js';
import { cliPath, stdioAgent, suiteData, suiteFlags, temporaryRoot } from '../../support/mcp-clients.js';
import { runCli } from '../../support/run-cli.js';

let root: string;
let remove: () => Promise<void>;

beforeAll(async () => {
  ({ root, remove } = await temporaryRoot());
  await writeFile(join(root, 'a.txt'), 'alpha\n');
});
afterAll(() => remove());

const line = (id: number, method: string, params: object): string =>
  `${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`;
const INITIALIZE = line(1, 'initialize', {
  protocolVersion: '2025-06-18',
  capabilities: {},
  clientInfo: { name: 't', version: '1' },
});
const INITIALIZED = `${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n`;

function start(...args: readonly string[]) {
  const flags = ['--root', root, ...suiteFlags(), '--log-level', 'error'];
  return spawn(process.execPath, [cliPath, 'mcp', ...flags, ...args], {
    cwd: root,
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, NODE_OPTIONS: '' },
  });
}

describe('palimpsest mcp', () => {
  test('answers all requests before the end of its input, then exits', async () => {
    const child = start();
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
    child.stdin.end(
      INITIALIZE +
        INITIALIZED +
        line(2, 'tools/call', { name: 'read', arguments: { path: 'a.txt' } }) +
        line(3, 'ping', {}),
    );
    const [code] = await once(child, 'close');
    const answers = output
      .split('\n')
      .filter(Boolean)
      .map(
        (text) =>
          JSON.parse(text) as {
            readonly id: number;
            readonly result: { readonly content?: readonly { readonly text: string }[] };
          },
      );
    expect(answers.map(({ id }) => id).sort()).toEqual([1, 2, 3]);
    expect(answers.find(({ id }) => id === 2)?.result.content?.[0]?.text).toMatch(/\nalpha\n$/);
    expect(code).toBe(0);
  });

  test('exits cleanly if its input ends while the node starts', async () => {
    const own = await temporaryRoot();
    const data = join(own.root, '.data');
    try {
      const child = start('--data', data, '--profile', 'rocksdb');
      child.stdin.end(INITIALIZE + INITIALIZED + line(2, 'tools/call', { name: 'read', arguments: { path: 'a.txt' } }));
      child.stdout.resume();
      expect(await once(child, 'exit')).toEqual([0, null]);
    } finally {
      await stopNode(data);
      await own.remove();
    }
  });

  test.each(['SIGTERM', 'SIGINT'] as const)('exits cleanly on %s', async (signal) => {
    const child = start();
    child.stdin.write(INITIALIZE + INITIALIZED + line(2, 'tools/call', { name: 'ls', arguments: {} }));
    for await (const chunk of child.stdout) if (String(chunk).includes('"id":2')) break;
    child.kill(signal);
    const [code, killedBy] = await once(child, 'exit');
    expect({ code, killedBy }).toEqual({ code: 0, killedBy: null });
  });

  test('survives garbage on its input', async () => {
    const child = start();
    child.stdin.end(`this is not JSON\n{"jsonrpc":"2.0"}\n${INITIALIZE}${INITIALIZED}${line(2, 'tools/list', {})}`);
    let output = '';
    for await (const chunk of child.stdout) output += String(chunk);
    expect(output).toContain('"id":2');
  });

  test('lists its tools in one page of at most 8,000 bytes on the wire', async () => {
    const child = start('--allow-bash');
    child.stdin.end(INITIALIZE + INITIALIZED + line(2, 'tools/list', {}));
    let output = '';
    for await (const chunk of child.stdout) output += String(chunk);
    const listed = output.split('\n').find((text) => text.includes('"id":2')) ?? '';
    expect(Buffer.byteLength(listed)).toBeLessThanOrEqual(8_000);
    const { tools, nextCursor } = (
      JSON.parse(listed) as { readonly result: { readonly tools: readonly unknown[]; readonly nextCursor?: string } }
    ).result;
    expect({ count: tools.length, nextCursor }).toEqual({ count: 14, nextCursor: undefined });
  });
});

describe('sessions over stdio', () => {
  test('continue by flag in a later process', async () => {
    const session = `resumed-${process.pid}`;
    const first = await stdioAgent(root, ['--session', session]);
    await first.call('read', { path: 'a.txt' });
    await first.close();
    const second = await stdioAgent(root, ['--session', session]);
    try {
      const { text } = await second.call('context');
      expect(text).toMatch(new RegExp(`session=${session} turn=1 known=2 active=2`));
      expect(text).toMatch(/a\.txt file_type=txt char_count=6/);
    } finally {
      await second.close();
    }
  });

  test('are chosen by argument, by a hint of the client, else one per connection', async () => {
    const agent = await stdioAgent(root, ['--log-level', 'silent']);
    try {
      const own = (await agent.call('ls')).meta.session;
      const named = `named-${process.pid}`;
      expect((await agent.call('ls', { session: named })).meta.session).toBe(named);
      const meta = {
        threadId: `thread ${process.pid}`,
        callId: `call_${process.pid}`,
        'x-codex-turn-metadata': { turn_id: 'turn-a' },
      };
      const hinted = await agent.call('ls', {}, { meta });
      expect(hinted.meta).toMatchObject({ session: `thread-${process.pid}`, call: `call_${process.pid}` });
      expect((await agent.call('ls')).meta.session).toBe(own);
      expect(own).toMatch(/^\d{8}-[a-z0-9]{8}$/);
      // The watcher alone writes the session of a transcript, and records the call from there.
      const watcher = await openClient(root, { dataDir: suiteData(), what: FOLLOWER, track: false });
      const followed = `followed-${process.pid}`;
      await watcher.openSession({ id: followed });
      const beside = await agent.call('ls', {}, { meta: { threadId: followed } });
      expect(beside.meta.session).toMatch(/^\d{8}-[a-z0-9]{8}$/);
      expect(beside.meta.session).not.toBe(own);
      expect((await agent.call('ls', { session: followed })).text).toContain('could not begin');
      await watcher.close();
      expect((await agent.call('ls', { session: 'no good/at all' })).text).toMatch(
        /^Error: ls could not begin: .*not a session id/,
      );
    } finally {
      await agent.close();
    }
  });

  test('are refused if open elsewhere; --take-over moves one, and the first takes it back later [F5]', async () => {
    const args = ['--session', `contested-${process.pid}`, '--log-level', 'silent'];
    const one = await stdioAgent(root, args);
    const two = await stdioAgent(root, args);
    const three = await stdioAgent(root, [...args, '--take-over']);
    try {
      await one.call('ls');
      const refused = await two.call('read', { path: 'a.txt' });
      expect(refused).toMatchObject({
        isError: true,
        text: expect.stringMatching(/^Error: read could not begin: .*process \d+.*--take-over/),
      });
      expect((await three.call('read', { path: 'a.txt' })).isError).toBe(false);
      const lost = await one.call('write', { path: 'contested.txt', content: 'x' });
      expect(lost).toMatchObject({
        isError: true,
        text: expect.stringMatching(
          new RegExp(
            '^Error: the call could not be recorded: another process has taken this session over\\.\\n' +
              'The file contested\\.txt was written\\. That stays',
          ),
        ),
      });
      expect(lost.text).toContain('Call again to take it back and continue it.');
      expect((await one.call('context', { full: true })).text).toContain(
        `session=contested-${process.pid} turn=1 known=3`,
      );
      expect((await three.call('ls')).text).toMatch(/another process has taken this session over/);
    } finally {
      await Promise.all([one.close(), two.close(), three.close()]);
    }
  });

  test('are taken back under their own id if unnamed', async () => {
    const one = await stdioAgent(root);
    const { session } = (await one.call('ls')).meta;
    const taker = await stdioAgent(root, ['--session', String(session), '--take-over']);
    try {
      expect((await taker.call('ls')).isError).toBe(false);
      expect((await one.call('ls')).text).toMatch(/another process has taken this session over/);
      expect(await one.call('ls')).toMatchObject({ isError: false, meta: { session } });
    } finally {
      await Promise.all([one.close(), taker.close()]);
    }
  });

  test("use the client's turn ids if it sends them (decision B7)", async () => {
    const agent = await stdioAgent(root, ['--session', `turns-${process.pid}`]);
    const turn = (turn_id: string) => ({ meta: { 'x-codex-turn-metadata': { turn_id } } });
    await agent.call('ls', {}, turn('one'));
    await agent.call('ls', {}, turn('one'));
    const third = await agent.call('context', {}, turn('two'));
    expect(third.text).toContain(' turn=1 ');
    expect((await agent.call('context', {}, turn('two'))).text).toContain(' turn=2 ');
    await agent.close();
    const client = await openClient(root);
    try {
      const { state } = await client.openSession({ id: `turns-${process.pid}` });
      expect(
        state.turns.map(({ messages }) => messages.flatMap(({ toolcall_refs: refs = [] }) => refs).length),
      ).toEqual([2, 2]);
    } finally {
      await client.close();
    }
  });

  test('begin a turn after a pause if the client sends none (decision B7)', async () => {
    const agent = await stdioAgent(root, ['--turn-pause', '0.001']);
    try {
      await agent.call('ls');
      await agent.call('ls');
      expect((await agent.call('context')).text).toContain(' turn=2 ');
    } finally {
      await agent.close();
    }
  });
});

describe('flags of palimpsest mcp', () => {
  test('limit answers by --max-output-chars, set the window by --window, shorten ids', async () => {
    await writeFile(join(root, 'wide.txt'), 'x'.repeat(70).concat('\n').repeat(200));
    const agent = await stdioAgent(root, ['--max-output-chars', '2000', '--window', '2x1']);
    try {
      const wide = await agent.call('read', { path: 'wide.txt' });
      expect(wide.text.length).toBeLessThanOrEqual(2_000);
      expect(wide.text).toMatch(/^\[file id=[0-9a-f]{8} path=\S+wide\.txt lines=1-2\d\/200 chars=14200\]\n/);
      for (let i = 0; i < 3; i++) await agent.call('ls');
      expect((await agent.call('context')).text).toMatch(/ active=2 /);
    } finally {
      await agent.close();
    }
  });

  test('omit writing tools with --read-only; activate a part of a file with --strict (decision E8)', async () => {
    const agent = await stdioAgent(root, ['--read-only', '--allow-bash', '--strict']);
    try {
      const { tools } = await agent.client.listTools();
      expect(tools.map(({ name }) => name).filter((name) => ['write', 'edit', 'bash'].includes(name))).toEqual([]);
      await agent.call('read', { path: 'wide.txt', limit: 1 });
      expect((await agent.call('context')).text).toMatch(
        /active \(2 objects.*\n(?:id=.*\n)*id=\S+ type=file path=\S+wide\.txt/,
      );
    } finally {
      await agent.close();
    }
  });

  test('map paths with --mount: the agent sees its own, the database has canonical ones [§5.3]', async () => {
    const host = join(root, 'host', 'project');
    await mkdir(host, { recursive: true });
    await writeFile(join(host, 'm.txt'), 'mounted\n');
    await symlink('/etc', join(host, 'out'));
    const agent = await stdioAgent(host, ['--mount', `/workspace=${await realpath(host)}`]);
    try {
      const { text } = await agent.call('read', { path: '/workspace/m.txt' });
      expect(text).toMatch(/^\[file id=\S+ path=\/workspace\/m\.txt lines=1-1\/1 chars=8\]\nmounted\n$/);
      expect((await agent.call('read', { path: 'm.txt' })).text).toContain('path=/workspace/m.txt');
      expect((await agent.call('find', { pattern: '*.txt' })).text).toMatch(/path=\/workspace files=1\]\nm\.txt$/);
      expect((await agent.call('read', { path: '/workspace/out/passwd' })).text).toMatch(
        /^Error: .* is outside the allowed folders/,
      );
      expect((await agent.call('context')).text).toContain('path=/workspace/m.txt');
    } finally {
      await agent.close();
    }
  });

  test('end the process at start if they are unusable, as with a missing root', async () => {
    const { code, stdout, stderr } = await runCli(['mcp', ...suiteFlags(), '--root', join(root, 'nowhere')]);
    expect([code, stdout, stderr]).toEqual([
      64,
      '',
      expect.stringMatching(/^palimpsest: --root .*nowhere: this folder does not exist\.\n$/),
    ]);
  });
});

describe('running calls', () => {
  test('are killed on cancellation and recorded as failed', async () => {
    const agent = await stdioAgent(root, ['--allow-bash', '--session', `cancel-${process.pid}`]);
    const controller = new AbortController();
    const call = agent.call('bash', { command: 'touch began; sleep 60' }, { signal: controller.signal });
    const rejected = expect(call).rejects.toThrow();
    while (!(await agent.call('ls')).text.includes('began')) {
      // Each turn of the loop waits for an answer.
    }
    controller.abort();
    await rejected;
    while (!/tool=bash status=fail/.test((await agent.call('context')).text)) {
      // Each turn of this loop waits for an answer, too.
    }
    await agent.close();
  });

  test('are each recorded once if there are many', async () => {
    const agent = await stdioAgent(root);
    try {
      const answers = await Promise.all(Array.from({ length: 20 }, () => agent.call('read', { path: 'a.txt' })));
      expect(answers.every(({ isError }) => !isError)).toBe(true);
      expect(new Set(answers.map(({ meta }) => meta.call)).size).toBe(20);
      expect((await agent.call('context')).text).toMatch(/ known=21 active=6 /);
    } finally {
      await agent.close();
    }
  });
});

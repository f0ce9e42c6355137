import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { HandedLists } from '../../../src/extensions/sidecar/composed-list.js';
import { anthropicRequest, nothingSeen } from '../../../src/gateway/steer/anthropic-request.js';
import { createContextClient, stopNode } from '../../../src/index.js';
import { sessionId } from '../../../src/objects/ids.js';
import { runCli, startCli } from '../../support/run-cli.js';

const SESSION = '00000000-0000-4000-8000-000000000007';
const CALLS = 6;

/** Returns the hash by which a record names the list of a body (decision E7). */
function listHash(body: string): string {
  const made = anthropicRequest(body, JSON.parse(body), { session: SESSION, seen: nothingSeen() });
  if ('why' in made) throw new Error(made.why);
  return new HandedLists().of(made.list.messages).sha256;
}

/** Kills a gateway and its sidecar at once, as a machine does that runs out of memory. */
async function killWithSidecar(gateway: ChildProcess): Promise<void> {
  const ended = once(gateway, 'exit');
  const ids = (await readFile(`/proc/${gateway.pid}/task/${gateway.pid}/children`, 'utf8')).trim().split(' ');
  const commands = await Promise.all(ids.map((id) => readFile(`/proc/${id}/cmdline`, 'utf8')));
  const sidecars = ids.filter((_, i) => commands[i]?.includes('sidecar.js'));
  expect(sidecars).toHaveLength(1);
  gateway.kill('SIGKILL');
  for (const id of sidecars) process.kill(Number(id), 'SIGKILL');
  await ended;
}

describe('a steering gateway that is killed with its sidecar', () => {
  let root: string;
  let dataDir: string;
  let upstream: Server;
  let gateway: ChildProcess | undefined;
  const received: string[] = [];
  /** Called for each request before its answer. A rejection ends the connection. */
  let arrived: () => Promise<void>;

  beforeEach(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-steer-killed-')));
    dataDir = join(root, 'data');
    received.length = 0;
    upstream = createServer(async (incoming, response) => {
      let body = '';
      for await (const piece of incoming) body += piece;
      received.push(body);
      await arrived();
      if (response.destroyed) return;
      const message = { id: `msg_${received.length}`, role: 'assistant', content: [], usage: {} };
      const events = [{ type: 'message_start', message }, { type: 'message_stop' }];
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(events.map((data) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`).join(''));
    }).listen(0, '127.0.0.1');
    await once(upstream, 'listening');
    await runCli(['node', 'start', '--data', dataDir]);
  });
  afterEach(async () => {
    gateway?.kill('SIGKILL');
    upstream.close();
    upstream.closeAllConnections();
    await stopNode(dataDir);
    await rm(root, { recursive: true, force: true });
  });

  const start = async (): Promise<string> => {
    const { port } = upstream.address() as AddressInfo;
    const address = ['--port', '0', '--upstream', `anthropic=http://127.0.0.1:${port}`];
    const { child } = startCli(['gateway', ...address, '--steer', '--steer-limit', '60000', '--data', dataDir]);
    gateway = child;
    let said = '';
    for await (const text of child.stdout ?? []) {
      said += text;
      const base = /listens on (\S+)/.exec(said)?.[1];
      if (base !== undefined) return base;
    }
    throw new Error(`the gateway ended: ${said}`);
  };

  test('leaves a record of each request that went out, and of no other', async () => {
    const messages: unknown[] = [];
    const say = (role: string, block: object): number => messages.push({ role, content: [block] });
    const post = async (base: string): Promise<boolean> => {
      const body = JSON.stringify({
        model: 'claude-opus-5-5',
        stream: true,
        metadata: { user_id: JSON.stringify({ session_id: SESSION }) },
        tools: [{ name: 'Bash', input_schema: { type: 'object' } }],
        messages,
      });
      const headers = { 'content-type': 'application/json' };
      const sent = fetch(`${base}/anthropic/v1/messages`, { method: 'POST', headers, body });
      const answer = await sent.then((response) => response.text()).catch(() => undefined);
      return answer !== undefined;
    };
    let base = await start();
    for (let call = 0; call < CALLS; call += 1) {
      if (call % 3 === 0) say('user', { type: 'text', text: `go on with part ${call}` });
      // The request is at the provider. Neither the database nor the log knows its answer.
      const isKilled = call % 2 === 1;
      arrived = () => (isKilled && gateway !== undefined ? killWithSidecar(gateway) : Promise.resolve());
      expect(await post(base)).toBe(!isKilled);
      arrived = () => Promise.resolve();
      if (isKilled) {
        base = await start();
        expect(await post(base)).toBe(true);
        // The client repeats its request, and the epoch continues with the same bytes.
        expect(received.at(-1)).toBe(received.at(-2));
      }
      const id = `toolu_${call}`;
      say('assistant', { type: 'tool_use', id, name: 'Bash', input: { command: `show ${call}` } });
      say('user', { type: 'tool_result', tool_use_id: id, content: `part ${call}\n`.repeat(80) });
      if (call % 3 === 2) say('assistant', { type: 'text', text: `up to ${call}` });
    }
    const ended = once(gateway as ChildProcess, 'exit');
    gateway?.kill('SIGTERM');
    await ended;

    const reader = await createContextClient({ dataDir, roots: [root], cwd: root });
    await reader.client.backpressure(0, 60_000);
    const records = await (await (await reader.client.delivered()).latest()).assemblies(sessionId(SESSION));
    await reader.close();
    const handed = records.flatMap(({ handed }) => handed?.sha256 ?? []);
    expect(new Set(handed)).toEqual(new Set(received.map(listHash)));
    expect(handed).toHaveLength(CALLS);
    const verified = await runCli(['verify', SESSION, '--data', dataDir, '--json']);
    expect(JSON.parse(verified.stdout)).toMatchObject({ ok: true, sessions: [{ contexts: { unequal: [] } }] });
  });
});

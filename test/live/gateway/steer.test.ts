import { createHash } from 'node:crypto';
import { mkdtemp, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { LoopGuard } from '../../../src/extensions/sidecar/loop-guard.js';
import { TroubleFile } from '../../../src/extensions/sidecar/trouble-file.js';
import { upstreamBases } from '../../../src/gateway/bases.js';
import { GatewayLog, gatewayFolder } from '../../../src/gateway/gateway-log.js';
import { GatewayLogReader, type SentRequest } from '../../../src/gateway/read-log.js';
import { type Gateway, serveGateway } from '../../../src/gateway/serve-gateway.js';
import { Steering } from '../../../src/gateway/steer/steering.js';
import { PastContexts } from '../../../src/history/rebuild/past-context.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { setSteered } from '../../../src/host/steered-sessions.js';
import { sessionId } from '../../../src/objects/ids.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import type { CheckingUpstream, ModelMove } from '../../agents/checked-model.js';
import { startCheckingUpstream } from '../../agents/checking-upstream.js';
import { ClaudeScript } from '../../support/claude-script.js';
import { openClient } from '../../support/context.js';
import { effort } from '../../support/effort.js';
import { InProcessSidecar } from '../../support/in-process-sidecar.js';
import { suiteData } from '../../support/mcp-clients.js';
import { costsOf } from '../../support/request-costs.js';
import { until } from '../../support/until.js';

const MODEL = 'claude-opus-5-5';

const read = (n: number) => ({ name: 'Read', args: { file_path: `f${n}.txt` } });

/** The moves of one turn: files are read, edited and read again, and commands run. */
function moves(from: number, count: number): readonly ModelMove[] {
  const work = Array.from({ length: count }, (_, i): ModelMove => {
    const n = (from + i) % 12;
    if (i % 5 === 3) return { tools: [{ name: 'Bash', args: { command: `count ${from + i}` } }] };
    if (i % 7 === 5) return { say: 'Two at once.', tools: [read(n), read((n + 1) % 12)] };
    if (i % 7 === 6)
      return { tools: [{ name: 'Edit', args: { file_path: `f${n}.txt`, old_string: 'some', new_string: 'many' } }] };
    return { tools: [read(n)] };
  });
  return [...work, { say: `It is done, up to ${from + count}.` }];
}

describe('a gateway that steers', () => {
  let root: string;
  let dataDir: string;
  let upstream: CheckingUpstream;
  let gateway: Gateway;
  let sidecar: InProcessSidecar;
  const notices: string[] = [];

  const begin = async ({ limitMs = 5_000, control = 0 } = {}): Promise<void> => {
    sidecar = new InProcessSidecar(
      { what: 'gateway', cwd: root, roots: [root], layout: 'epoch' },
      {
        ...process.env,
        PALIMPSEST_DATA: suiteData(),
        PALIMPSEST_PROFILE: process.env.PALIMPSEST_TEST_PROFILE ?? 'memory',
      },
    );
    const steering = new Steering({
      dataDir,
      control,
      limitMs,
      firstLimitMs: limitMs,
      guard: (onBypass) =>
        new LoopGuard({
          sidecar,
          trouble: new TroubleFile(dataDir, 'gateway'),
          limitMs,
          notify: (line) => notices.push(line),
          onBypass,
        }),
    });
    await steering.warmUp();
    gateway = await serveGateway({
      bases: upstreamBases([`anthropic=${upstream.url}`]),
      log: new GatewayLog(dataDir, { failed: (reason) => notices.push(reason) }),
      port: 0,
      steering,
    });
  };
  const logged = async (): Promise<readonly SentRequest[]> => {
    const sent: SentRequest[] = [];
    for await (const one of new GatewayLogReader(gatewayFolder(dataDir)).more()) sent.push(one);
    return sent;
  };
  beforeEach(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-steer-')));
    dataDir = join(root, 'data');
    for (let n = 0; n < 12; n += 1)
      await writeFile(
        join(root, `f${n}.txt`),
        Array.from({ length: 60 }, (_, i) => `file ${n} line ${i}, some words\n`).join(''),
      );
    upstream = await startCheckingUpstream();
    notices.length = 0;
    seen = 0;
  });
  afterEach(async () => {
    await gateway.close();
    await upstream.close();
    await rm(root, { recursive: true, force: true });
  });

  /** Runs turns of three calls each, and expects that the provider refused nothing. */
  const turns = async (client: ClaudeScript, count: number): Promise<void> => {
    for (let turn = 0; turn < count; turn += 1) {
      upstream.add(moves(client.calls, 2));
      await client.turn(`please go on after ${client.calls}`);
    }
    expect({ refusals: upstream.refusals, failures: client.failures }).toEqual({ refusals: [], failures: [] });
  };
  /** Returns how each request since the last call went out, in order. */
  let seen = 0;
  const hows = async (): Promise<readonly (string | undefined)[]> => {
    const sent = (await logged()).map(({ steer }) => steer?.how);
    const fresh = sent.slice(seen);
    seen = sent.length;
    return fresh;
  };
  const times = (count: number, how: string): readonly string[] => Array.from({ length: count }, () => how);

  test('keeps prefix and pairs, also in a new process, a fork and a compaction; every request verifies', async () => {
    // A request whose context is late goes out unchanged. Under load a session opens slowly.
    await begin({ limitMs: 30_000 });
    const client = new ClaudeScript(gateway.address, root);
    await turns(client, effort(8, 60));
    const whole = client.body().length;
    const [sent] = upstream.received.slice(-1);
    expect(sent?.body.length).toBeLessThan(whole * 0.9);
    const steered = costsOf(
      upstream.received.map(({ body }) => body.toString('utf8')),
      MODEL,
    );
    const alone = costsOf(client.sent, MODEL);
    const shares = steered.map((cost, i) => cost / (alone[i] as number));
    expect(Math.max(...shares)).toBeLessThanOrEqual(1.02);
    for (const share of shares.slice(59)) expect(share).toBeLessThanOrEqual(0.85);
    await gateway.close();
    expect(await hows()).toEqual(times(client.calls, 'steered'));

    await begin({ limitMs: 30_000 });
    client.moveTo(gateway.address);
    await turns(client, 2);
    const fork = client.fork();
    await turns(fork, 2);
    await client.compact();
    await turns(client, 2);
    await gateway.close();
    expect(new Set(await hows())).toEqual(new Set(['steered', 'continued']));
    expect(notices).toEqual([]);
    const reader = await openClient(root, { track: false, shareSessions: true });
    try {
      for (const { session } of [client, fork]) {
        const { contexts, ok } = await verifySession(await reader.delivered(), sessionId(session));
        expect({ unequal: contexts.unequal, ok }).toEqual({ unequal: [], ok: true });
      }
      const past = new PastContexts(await Timeline.open(reader.store));
      const last = await past.at(sessionId(fork.session), {});
      expect(last.text).toBe(
        upstream.received
          .filter(({ body }) => body.includes(fork.session))
          .at(-1)
          ?.body.toString('utf8'),
      );
    } finally {
      await reader.close();
    }
  });

  test('continues the last steered request if a context fails, until the user’s next message', async () => {
    await begin();
    const client = new ClaudeScript(gateway.address, root);
    await turns(client, 3);
    await hows();
    sidecar.trouble = 'fails';
    await turns(client, 1);
    sidecar.trouble = undefined;
    await turns(client, 1);
    await gateway.close();
    expect(await hows()).toEqual([...times(3, 'continued'), ...times(3, 'steered')]);
    expect(notices).toHaveLength(1);
  });

  /** Waits until the last request that went out is the session's last context, then checks all. */
  const recorded = async (session: string): Promise<void> => {
    const out = upstream.received.map(({ body }) => body.toString('utf8'));
    const reader = await openClient(root, { track: false, shareSessions: true });
    try {
      const id = sessionId(session);
      const last = async (): Promise<string | undefined> =>
        new PastContexts(await Timeline.open(reader.store)).at(id, {}).then(
          ({ text }) => text,
          () => undefined,
        );
      await until(last, (text) => text === out.at(-1));
      const timeline = await Timeline.open(reader.store);
      const sent = (await timeline.records(id)).filter((record) => record.sent !== undefined);
      const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex');
      expect(sent.map(({ sha256 }) => sha256)).toEqual(out.map(hashOf));
      expect(new Set(sent.map(({ step }) => step)).size).toBe(out.length);
      const { contexts, ok } = await verifySession(await reader.delivered(), id);
      expect({ unequal: contexts.unequal, ok }).toEqual({ unequal: [], ok: true });
    } finally {
      await reader.close();
    }
  };

  test.each([
    ['continues the last steered request', 2],
    ['sends the client’s own bytes', 0],
  ])('records what an outage missed once it is over, without a further request: %s', async (_, before) => {
    await begin({ limitMs: 30_000 });
    const client = new ClaudeScript(gateway.address, root);
    await turns(client, before);
    sidecar.trouble = 'fails';
    await turns(client, 2);
    sidecar.trouble = undefined;
    await recorded(client.session);
    await turns(client, 1);
    await recorded(client.session);
  });

  test('records what an ended gateway sent during an outage when the next gateway starts', async () => {
    await begin({ limitMs: 30_000 });
    const client = new ClaudeScript(gateway.address, root);
    await turns(client, 2);
    sidecar.trouble = 'fails';
    await turns(client, 2);
    await gateway.close();
    await begin({ limitMs: 30_000 });
    await recorded(client.session);
    client.moveTo(gateway.address);
    await turns(client, 1);
    await recorded(client.session);
    // Nothing is left for a third gateway.
    expect(await readdir(join(gatewayFolder(dataDir), 'missed'))).toEqual([]);
  });

  test('sends the client’s own bytes if the first context is late, and for the control arm', async () => {
    await begin({ limitMs: 50 });
    sidecar.trouble = 'waits';
    const client = new ClaudeScript(gateway.address, root);
    upstream.add([{ say: 'done' }]);
    await client.turn('hello');
    expect(upstream.received[0]?.body.toString('utf8')).toBe(client.sent.at(-1));
    sidecar.trouble = undefined;
    await gateway.close();

    await begin({ control: 1 });
    client.moveTo(gateway.address);
    await turns(client, 2);
    expect(upstream.received.map(({ body }) => body.toString('utf8'))).toEqual(client.sent);
    expect((await logged()).slice(1).map(({ steer }) => steer?.arm)).toEqual(times(6, 'control'));
  });

  test('sends a fork without the thinking of its parent if its first context fails', async () => {
    // A fork opens a session, which takes seconds on a busy machine.
    await begin({ limitMs: 30_000 });
    const client = new ClaudeScript(gateway.address, root);
    await turns(client, 4);
    const fork = client.fork();
    await hows();
    sidecar.trouble = 'fails';
    await turns(fork, 1);
    sidecar.trouble = undefined;
    await turns(fork, 1);
    await gateway.close();
    expect(await hows()).toEqual([...times(3, 'own'), ...times(3, 'steered')]);
  });

  test('sends the client’s whole history when switched off, and steers again when switched on', async () => {
    await begin();
    const client = new ClaudeScript(gateway.address, root);
    await turns(client, 3);
    const id = sessionId(client.session);
    const state = { steered: true, tidied: 0, firstCalls: [] };
    await setSteered(dataDir, id, { ...state, on: false });
    await hows();
    await turns(client, 2);
    const last = JSON.parse(upstream.received.at(-1)?.body.toString('utf8') ?? '') as { messages: unknown[] };
    expect(last.messages).toHaveLength(client.messages.length - 1);
    await setSteered(dataDir, id, { ...state, on: true });
    await turns(client, 2);
    await gateway.close();
    expect(await hows()).toEqual([...times(6, 'own'), ...times(6, 'steered')]);
    expect(notices).toEqual([]);
  });

  test('runs the model’s own tools in the session of its requests', async () => {
    await begin();
    const client = new ClaudeScript(gateway.address, root);
    client.verbs = gateway.verbs;
    await writeFile(join(root, 'other.txt'), 'only by activation\n');
    await turns(client, 4);
    const name = 'mcp__palimpsest__activate';
    upstream.add([{ tools: [{ name, args: { ids: ['other.txt'] } }] }, { say: 'I see it' }]);
    await client.turn('look at other.txt');
    const answer = client.results.at(-1);
    expect(answer?.ok).toBe(true);
    const last = upstream.received.at(-1)?.body.toString('utf8') ?? '';
    expect(last).toContain('only by activation');
    await turns(client, 1);
  });

  test('asks for the whole conversation if a client sends only a part', async () => {
    await begin();
    const client = new ClaudeScript(gateway.address, root);
    const body = client
      .body()
      .replace('"messages"', '"thread":{"type":"continue","previous_message_id":"msg_1"},"messages"');
    const { start, body: answer } = await client.post(body);
    expect(start).toMatch(/^400/);
    expect(answer.toString('utf8')).toContain('thread_unsupported_request');
    expect(upstream.received).toEqual([]);
  });
});

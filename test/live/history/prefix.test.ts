import { utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { LayoutName } from '../../../src/assembly/assembly-record.js';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import type { LoopContext } from '../../../src/extensions/loop/loop-context.js';
import { LoopSession } from '../../../src/extensions/loop/loop-session.js';
import type { ReportedMessage } from '../../../src/harness/message-schema.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { type SessionId, sessionId } from '../../../src/objects/ids.js';
import { askTurns } from '../../../src/review/ask/ask.js';
import { askPrefixes, type PrefixDiff } from '../../../src/review/ask/prefix-diff.js';
import { countHere } from '../../../src/review/ask/token-count.js';
import { prefixAnswer } from '../../../src/review/http/review-answers.js';
import { REVIEW_ANSWERS } from '../../../src/review/http/review-schemas.js';
import { askHere } from '../../support/ask-here.js';
import { openClient } from '../../support/context.js';
import { call, callModel, isPrefix, user } from '../../support/loop-messages.js';
import { suiteData, temporaryRoot } from '../../support/mcp-clients.js';

describe('prefix breaks of a session’s requests, and their causes', () => {
  let root: string;
  let client: ContextClient;
  let remove: () => Promise<void>;
  let name: string;
  let names = 0;
  let now = Date.parse('2026-11-22T10:00:00Z');
  const open: LoopSession[] = [];

  beforeAll(async () => {
    ({ root, remove } = await temporaryRoot());
    client = await openClient(root, { clock: () => now });
  });
  afterAll(async () => {
    await client.close();
    await remove();
  });
  beforeEach(() => {
    names += 1;
    name = `prefix-${process.pid}-${names}`;
  });
  afterEach(async () => {
    for (const session of open.splice(0)) await session.close();
  });

  /** Opens a session whose requests are stored as its harness sends them. */
  function begin(layout: LayoutName) {
    const session = new LoopSession(client, { id: name, delivered: 'pi', layout });
    open.push(session);
    const messages: ReportedMessage[] = [];
    const sent: (readonly string[])[] = [];
    const request = async (more: object, ...said: readonly ReportedMessage[]): Promise<LoopContext> => {
      now += 1_000;
      messages.push(...said);
      const { context, lines } = await callModel(session, messages, more);
      sent.push(lines);
      return context;
    };
    return { session, messages, sent, request };
  }

  const path = (file: string): string => join(root, `${name}-${file}`);

  async function compared(range?: string): Promise<readonly PrefixDiff[]> {
    const found = await askPrefixes(await Timeline.open(await client.delivered()), { name, range, count: countHere });
    const answer = prefixAnswer(found);
    expect(REVIEW_ANSWERS.PrefixDiff.strict().parse(answer)).toEqual(answer);
    expect(found.compared.every(({ from, to }) => from.matches && to.matches)).toBe(true);
    return found.compared.toReversed();
  }

  /** Checks for every request whether it began with the previous one as the harness sent it. */
  const asSent = (found: readonly PrefixDiff[], sent: readonly (readonly string[])[]): void => {
    const whole = sent.slice(1).map((lines, i) => isPrefix(sent[i] ?? [], lines));
    expect(found.map(({ isPrefix }) => isPrefix)).toEqual(whole);
  };

  test('with layout epoch exist only at a border, which is named with its reason and price', async () => {
    const { session, sent, request, messages } = begin('epoch');
    await writeFile(path('a.txt'), 'first\nsecond\n');
    await request({}, user(`begin ${name}`));
    for (let i = 1; i < 8; i++)
      await request({}, ...call(`c${i}`, 'bash', { command: `run ${i}` }, `${i} ${'many words '.repeat(200)}`));
    await request({}, ...call('c8', 'read', { path: path('a.txt') }, 'first\nsecond\n'));
    session.tidy();
    await request({}, { role: 'assistant', content: 'done' }, user('and now?'));
    const found = await compared();
    asSent(found, sent);
    expect(found.map(({ isPrefix }) => isPrefix)).toEqual([...Array(8).fill(true), false]);
    expect(found[0]).toMatchObject({
      difference: undefined,
      cause: undefined,
      again: 0,
      answers: { kept: 0, lost: 0, left: 0 },
    });
    expect(found[6]?.shared.bytes).toBe(found[6]?.from.size.bytes);
    expect(found[6]?.answers).toEqual({ kept: 6, lost: 0, left: 0 });
    const border = found.at(-1);
    expect(border?.difference).toMatchObject({
      byte: 'be good'.length,
      byteInPart: 0,
      section: 'chat',
      line: 1,
      object: `chat:${name}`,
    });
    expect(border?.cause).toMatchObject({
      kind: 'epoch',
      epoch: { number: 2, reason: 'asked', price: { savedPerCall: expect.any(Number) } },
    });
    expect(border?.answers).toEqual({ kept: 0, lost: 0, left: 8 });
    expect(border?.again).toBeGreaterThan(0);
    // A request against itself, and the first against the last.
    expect(await compared('now..now')).toMatchObject([{ isPrefix: true, written: 0 }]);
    expect(await compared('turn:1..')).toMatchObject([
      { from: { turn: 1 }, to: { turn: 2 }, cause: { kind: 'epoch' } },
    ]);
    expect(messages).toHaveLength(19);
    const { turns } = await askTurns(await Timeline.open(await client.delivered()), { session: name });
    expect(turns.map(({ epochs }) => epochs.map(({ number, reason }) => [number, reason]))).toEqual([
      [[2, 'asked']],
      [[1, 'first']],
    ]);
    // An earlier query has read steps and records. They are not read again, and the answer is the
    // same.
    const asked = await Timeline.open(await client.delivered());
    const fewer = await askTurns(asked, { session: name, limit: 1 });
    await Promise.all([asked.steps(sessionId(name)), asked.records(sessionId(name))]);
    expect((await askTurns(asked, { session: name, limit: 1 })).turns).toEqual(fewer.turns);
    expect((await askTurns(asked, { session: name })).turns).toEqual(turns);
  });

  test('with layout ssot distinguish calls, a changed file, another prompt and other settings', async () => {
    const { session, sent, request } = begin('ssot');
    await writeFile(path('b.txt'), 'one\n');
    await utimes(path('b.txt'), now / 1_000, now / 1_000);
    await request({}, user(`begin ${name}`));
    await request({}, ...call('c1', 'read', { path: path('b.txt') }, 'one\n'));
    await request({}, ...call('c2', 'bash', { command: 'run' }, 'ran'));
    await writeFile(path('b.txt'), 'another\n');
    await utimes(path('b.txt'), now / 1_000, now / 1_000);
    await session.verb('activate', [path('b.txt')], 'c3');
    await request({}, ...call('c3', 'activate', { ids: [path('b.txt')] }, 'activated'));
    await request({ system: 'be better' }, { role: 'assistant', content: 'done' }, user('more'));
    await request({ system: 'be better', shortIds: true }, ...call('c4', 'bash', { command: 'run' }, 'ran'));
    const found = await compared();
    asSent(found, sent);
    expect(found.map(({ difference, cause }) => [difference?.section, cause?.kind, cause?.step])).toEqual([
      ['pool', 'call', expect.any(Number)],
      ['pool', 'call', expect.any(Number)],
      ['pool', 'version', undefined],
      ['system', 'harness', undefined],
      ['pool', 'harness', undefined],
    ]);
    expect(found[0]?.cause?.object).toBe(found[0]?.difference?.object);
    expect(found[2]?.cause).toMatchObject({ object: found[2]?.difference?.object, version: { number: 2 } });
    // In the running turn, the model's thinking followed another prefix.
    expect(found[1]?.answers).toEqual({ kept: 0, lost: 1, left: 0 });
  });

  test('with layout pool-last come from an agent’s verb before the running turn', async () => {
    const { session, sent, request } = begin('pool-last');
    await writeFile(path('d.txt'), 'of d\n');
    await request({}, user(`begin ${name}`));
    await request({}, ...call('c1', 'read', { path: path('d.txt') }, 'of d\n'));
    await session.verb('deactivate', [path('d.txt')], 'c2');
    await request({}, ...call('c2', 'deactivate', { ids: [path('d.txt')] }, 'deactivated'));
    const found = await compared();
    asSent(found, sent);
    const last = found.at(-1);
    expect(last?.difference).toMatchObject({ section: 'active', object: last?.cause?.object });
    expect(last?.cause).toMatchObject({
      kind: 'verb',
      why: expect.stringMatching(/^no longer active: step \d+, deactivate$/),
    });
  });

  test('appear beside the reported usage, whether it agrees or not', async () => {
    const { request } = begin('epoch');
    const answer = (id: string, usage: object): readonly ReportedMessage[] => {
      const [said, result] = call(id, 'bash', { command: 'run' }, `output ${id}`);
      return [{ ...said, usage } as ReportedMessage, result as ReportedMessage];
    };
    await request({}, user(`begin ${name}`));
    await request({}, ...answer('c1', { input: 3, cache_read: 0, cache_write: 20_000, output: 5 }));
    await request({}, ...answer('c2', { input: 3, cache_read: 20_003, cache_write: 60, output: 5 }));
    await request({}, ...answer('c3', { input: 20_100, cache_read: 0, cache_write: 0, output: 5 }));
    const found = await compared();
    expect(found.map(({ cache }) => cache)).toEqual([
      { read: 20_003, expected: 20_003, verdict: 'agrees' },
      { read: 0, expected: 20_066, verdict: 'read-less' },
      undefined,
    ]);
    const ask = async (...args: string[]) =>
      askHere([...args, '--data', suiteData()], { FORCE_COLOR: undefined, NO_COLOR: undefined });
    const { stdout } = await ask('diff', name, '--prefix');
    expect(stdout).toMatch(/turn 1, step \d+ \(epoch 1\) → turn 1, step \d+ \(epoch 1\)/);
    expect(stdout).toContain('provider read 20,003 tokens from its cache, 20,003 expected: as expected');
    expect(stdout).toContain('provider read 0 tokens from its cache, 20,066 expected: LESS than expected');
    expect(stdout).toMatch(/begins with all [\d,]+ bytes of the previous request/);
    const cut = JSON.parse((await ask('diff', name, '--prefix', '-n', '1', '--json')).stdout);
    expect(cut).toMatchObject({ session: name, is_cut: true, compared: [{ is_prefix: true, cause: null }] });
    expect((await ask('log', name)).stdout).toContain('epoch 1 began (first)');
  });

  test('appear beside the reasons for a cache miss and for dropped thinking', async () => {
    const { request } = begin('ssot');
    const answer = (id: string, usage: object): readonly ReportedMessage[] => {
      const [said, result] = call(id, 'bash', { command: 'run' }, `output ${id} ${'of many words '.repeat(20)}`);
      return [{ ...said, usage } as ReportedMessage, result as ReportedMessage];
    };
    await request({}, user(`begin ${name}`));
    await request({}, ...answer('c1', { input: 3 }));
    await request(
      {},
      ...answer('c2', { input: 3, cache_miss: { reason: 'messages_changed', tokens: 900 }, thinking_dropped: 1 }),
    );
    await request({}, ...answer('c3', { input: 3, cache_miss: { reason: 'tools_changed' }, thinking_dropped: 1 }));
    await request(
      { system: 'be better' },
      ...answer('c4', { input: 3, cache_miss: { reason: 'unavailable' }, thinking_dropped: 4 }),
    );
    await request({ system: 'be better' }, ...answer('c5', { input: 3, cache_miss: { reason: 'system_changed' } }));
    const found = await compared();
    expect(found.map(({ miss }) => miss)).toEqual([
      { reason: 'messages_changed', tokens: 900, expected: 'messages_changed', verdict: 'agrees' },
      { reason: 'tools_changed', expected: 'messages_changed', verdict: 'differs' },
      { reason: 'unavailable', expected: 'messages_changed', verdict: 'unknown' },
      { reason: 'system_changed', expected: 'system_changed', verdict: 'agrees' },
      undefined,
    ]);
    expect(
      found.map(({ thinking, answers }) => [thinking?.dropped, thinking?.lost === answers?.lost, thinking?.verdict]),
    ).toEqual([
      [1, true, 'dropped-more'],
      [0, true, 'dropped-none'],
      [3, true, 'agrees'],
      [undefined, false, undefined],
      [undefined, false, undefined],
    ]);
    const ask = async (...args: string[]) =>
      askHere([...args, '--data', suiteData()], { FORCE_COLOR: undefined, NO_COLOR: undefined });
    const { stdout } = await ask('diff', name, '--prefix');
    expect(stdout).toContain('provider says messages_changed (900 tokens), messages_changed expected: as expected');
    expect(stdout).toContain('provider says tools_changed, messages_changed expected: NOT this difference');
    expect(stdout).toMatch(/provider left out 3 thinking blocks, \d+ answers expected: as expected/);
    expect((await ask('log', name)).stdout).toContain('cache missed: tools_changed; dropped thinking blocks: 1');
  });

  test('are reported by the byte of UTF-8, also inside a character', async () => {
    const { request } = begin('epoch');
    await request({ system: 'gründlich' }, user(`begin ${name}`));
    await request({ system: 'grúndlich' }, ...call('c1', 'bash', { command: 'run' }, 'ran'));
    // Both letters begin with the same byte.
    expect(await compared()).toMatchObject([
      {
        shared: { bytes: 3 },
        difference: { byte: 3, section: 'system', line: 1 },
        cause: { kind: 'epoch', epoch: { reason: 'history' } },
      },
    ]);
  });

  test('are reported as unknown if the requests cannot be compared', async () => {
    const { request } = begin('epoch');
    await request({}, user(`begin ${name}`));
    expect(await compared()).toEqual([]);
    await expect(compared('..now')).rejects.toMatchObject({ code: 'beyond-end' });
    await expect(compared('tx:1..now')).rejects.toMatchObject({ code: 'malformed-moment' });
    await expect(
      askPrefixes(await Timeline.open(await client.delivered()), { name: 'nobody' as SessionId, count: countHere }),
    ).rejects.toMatchObject({
      code: 'unknown-session',
    });
  });
});

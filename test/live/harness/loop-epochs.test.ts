import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import type { LoopContext } from '../../../src/extensions/loop/loop-context.js';
import { type LoopOptions, LoopSession } from '../../../src/extensions/loop/loop-session.js';
import type { ReportedMessage } from '../../../src/harness/message-schema.js';
import { AssemblyRebuilder } from '../../../src/history/rebuild/rebuild-assembly.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { hashText } from '../../../src/objects/hashes.js';
import { sessionId } from '../../../src/objects/ids.js';
import { askPrefixes } from '../../../src/review/ask/prefix-diff.js';
import { countHere } from '../../../src/review/ask/token-count.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { openClient } from '../../support/context.js';
import { LateAnswers } from '../../support/late-answers.js';
import { call, callModel, isPrefix, reply, requestOf, user } from '../../support/loop-messages.js';
import { temporaryRoot } from '../../support/mcp-clients.js';

/**
 * Maximum wait of another process until the database has this one's writes: they share no data
 * folder.
 */
const DELIVERED_MS = 240_000;

describe('a session in a harness’s loop with the layout epoch (divergence E9)', () => {
  let root: string;
  let client: ContextClient;
  let remove: () => Promise<void>;
  let name: string;
  let names = 0;
  let now = Date.parse('2026-11-22T10:00:00Z');

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
    name = `epochs-${process.pid}-${names}`;
  });

  /** Makes a call that reads a new file. */
  async function readOf(id: string): Promise<readonly ReportedMessage[]> {
    const path = join(root, `${name}-${id}.txt`);
    await writeFile(path, `what ${id} of ${name} says`);
    return call(id, 'read', { path }, `what ${id} of ${name} says`);
  }

  /** Lets a session activate a new file, so that the next request has a note with its text. */
  async function activationOf(id: string, by: LoopSession): Promise<readonly ReportedMessage[]> {
    const path = join(root, `${name}-${id}.txt`);
    await writeFile(path, `what ${id} of ${name} says`);
    await by.verb('activate', [path], id);
    return call(id, 'activate', { ids: [path] }, 'activated');
  }

  const loops: LoopSession[] = [];
  afterEach(async () => {
    for (const one of loops.splice(0)) await one.close();
  });
  const loop = (options: Partial<LoopOptions> = {}, from = client): LoopSession => {
    const made = new LoopSession(from, { id: name, delivered: 'pi', layout: 'epoch', ...options });
    loops.push(made);
    return made;
  };

  /** Makes one model call and returns its request once its record is stored. */
  function request(session: LoopSession, messages: readonly ReportedMessage[], more: object = {}) {
    now += 1_000;
    return callModel(session, messages, more);
  }

  /** Returns a client whose database answers through a proxy. */
  async function farClient() {
    const proxy = await LateAnswers.open(root);
    const far = await openClient(root, {
      clock: () => now,
      address: proxy.address,
      track: false,
      dataDir: join(root, `${name}-data`),
    });
    return { proxy, far };
  }

  async function verified() {
    const { contexts } = await verifySession(await client.delivered(), name);
    expect(contexts.unequal).toEqual([]);
    return contexts.total;
  }

  test('stores a whole request once the database has its steps; the next context does not wait for it', async () => {
    const { proxy, far } = await farClient();
    try {
      const session = loop({}, far);
      const messages: ReportedMessage[] = [user(`begin ${name}`)];
      await request(session, messages);
      const release = proxy.holdWrites();
      messages.push(...call(`sent_${name}`, 'bash', { command: 'run' }, 'output'));
      await request(session, messages);
      const proof = { wire: 'anthropic' } as const;
      const stored = session.sent({ messages: messages.length, body: ['{"messages":[]}'], at: now, sent: proof });
      messages.push(...call(`next_${name}`, 'bash', { command: 'run' }, 'more output'));
      const next = session.context({ messages, system: 'be good' });
      expect(await Promise.race([next.then(() => 'context'), stored.then(() => 'request')])).toBe('context');
      release();
      await stored;
      await session.close();
      await far.backpressure(0, DELIVERED_MS);
      const records = await (await (await client.delivered()).latest()).assemblies(sessionId(name), {});
      expect(records.filter(({ layout }) => layout === 'sent')).toHaveLength(1);
    } finally {
      await far.close();
      await proxy.close();
    }
  });

  test('begins every request with the previous one: new text comes last, and removed text stays', async () => {
    const session = loop();
    await writeFile(join(root, 'a.txt'), 'first line of a\nsecond line of a\n');
    await writeFile(join(root, 'b.txt'), Array.from({ length: 40 }, (_, i) => `line ${i} of b`).join('\n'));
    const messages: ReportedMessage[] = [user(`begin ${name}`)];
    const first = await request(session, messages);
    expect(first.context).toMatchObject({
      from: 0,
      before: [],
      inserts: [],
      epoch: { number: 1, begins: true, reason: 'first' },
    });
    messages.push(...call('c1', 'read', { path: join(root, 'a.txt') }, 'first line of a\nsecond line of a\n'));
    const second = await request(session, messages);
    expect(isPrefix(first.lines, second.lines)).toBe(true);
    // The call names the file, and its result shows it.
    expect(second.context.inserts).toEqual([]);
    messages.push(...call('c2', 'ls', { path: root }, 'a.txt\nb.txt\n'));
    const third = await request(session, messages);
    expect(isPrefix(second.lines, third.lines)).toBe(true);
    await session.verb('activate', [join(root, 'b.txt')], 'c3');
    messages.push(...call('c3', 'activate', { ids: [join(root, 'b.txt')] }, 'activated'));
    const fourth = await request(session, messages);
    expect(isPrefix(third.lines, fourth.lines)).toBe(true);
    expect(fourth.text).toMatch(/id=([0-9a-f]{8,}) type=file path=\S+b\.txt .*ACTIVE_CONTENT id=\1\\nline 0 of b/);
    await writeFile(
      join(root, 'b.txt'),
      Array.from({ length: 40 }, (_, i) => (i === 7 ? 'another line' : `line ${i} of b`)).join('\n'),
    );
    await session.verb('activate', [join(root, 'b.txt')], 'c4');
    messages.push(...call('c4', 'activate', { ids: [join(root, 'b.txt')] }, 'activated'));
    const fifth = await request(session, messages);
    expect(isPrefix(fourth.lines, fifth.lines)).toBe(true);
    expect(fifth.text).toMatch(/changed=lines\\n@@ -7,3 \+7,3 @@\\n line 6 of b\\n-line 7 of b\\n\+another line/);
    let before = fifth;
    for (let i = 5; i < 13; i++) {
      messages.push(...call(`c${i}`, 'bash', { command: `run ${i}` }, `output ${i} of the shell`));
      const next = await request(session, messages);
      expect(isPrefix(before.lines, next.lines)).toBe(true);
      before = next;
    }
    expect(before.context.references).toEqual([]);
    expect(before.text).toContain('output 5 of the shell');
    expect(await verified()).toBe(13);
  });

  test('continues the epoch in a turn; a cold cache ends it at a user message, with a base of contents', async () => {
    const session = loop();
    const messages: ReportedMessage[] = [user(`begin ${name}`)];
    let second = await request(session, messages);
    for (let i = 1; i < 9; i++) {
      messages.push(...call(`c${i}`, 'bash', { command: `run ${i}` }, `output ${i} of ${name}`));
      second = await request(session, messages);
    }
    messages.push(reply('done'), user('and now?'));
    const third = await request(session, messages);
    expect(third.context).toMatchObject({ from: 0, epoch: { number: 1, begins: false } });
    expect(isPrefix(second.lines, third.lines)).toBe(true);
    messages.push(reply('done again'), user('after lunch'));
    now += 3_600_000;
    const fourth = await request(session, messages);
    expect(fourth.context).toMatchObject({
      from: messages.length - 1,
      epoch: { number: 2, begins: true, reason: 'cold' },
    });
    expect(fourth.context.before.map(({ section }) => section)).toEqual(['chat', 'active']);
    expect(fourth.text).toContain('user: and now?');
    expect(fourth.text).toMatch(/toolcall_ref id=c1\S* tool=bash status=ok/);
    expect(fourth.text).not.toContain(`output 1 of ${name}`);
    expect(fourth.text).toContain(`output 8 of ${name}`);
    expect(await verified()).toBe(11);
  });

  test('continues the epoch in another process with the same bytes', async () => {
    const messages: ReportedMessage[] = [user(`begin ${name}`)];
    const before = loop();
    await request(before, messages);
    messages.push(...(await activationOf('c1', before)));
    const last = await request(before, messages);
    await before.close();
    await client.backpressure(0, DELIVERED_MS);
    const other = await openClient(root, { clock: () => now });
    try {
      const after = loop({}, other);
      await after.follow({ messages, system: 'be good' });
      messages.push(...(await activationOf('c2', after)));
      const next = await request(after, messages);
      expect(next.context.epoch).toEqual({ number: 1, begins: false, reason: 'first' });
      expect(isPrefix(last.lines, next.lines)).toBe(true);
      expect(next.context.inserts).toHaveLength(2);
      for (const one of loops.splice(0)) await one.close();
    } finally {
      await other.close();
    }
    expect(await verified()).toBe(3);
  });

  test('excludes an undelivered context from the epoch, even if its process ends', async () => {
    const messages: ReportedMessage[] = [user(`begin ${name}`)];
    const before = loop();
    await request(before, messages);
    messages.push(...(await activationOf('c1', before)));
    const last = await request(before, messages);
    messages.push(...(await activationOf('c2', before)));
    const lost = await before.context({ messages, system: 'be good' });
    expect(lost?.inserts).toHaveLength(2);
    await before.close();
    loops.splice(0);
    await client.backpressure(0, DELIVERED_MS);
    const other = await openClient(root, { clock: () => now });
    try {
      const after = loop({}, other);
      const next = await request(after, messages);
      expect(next.context.epoch).toEqual({ number: 1, begins: false, reason: 'first' });
      expect(isPrefix(last.lines, next.lines)).toBe(true);
      expect(next.context.inserts).toEqual(lost?.inserts);
      // The provider failed: the repeated request has the same record.
      const again = await request(after, messages);
      expect(again.lines).toEqual(next.lines);
      for (const one of loops.splice(0)) await one.close();
    } finally {
      await other.close();
    }
    expect(await verified()).toBe(3);
  });

  test('begins an epoch after losing a session to a call id of another chat, and rebuilds old requests', async () => {
    const proxy = await LateAnswers.open(root);
    const { address } = proxy;
    const clients = await Promise.all(
      ['one', 'other'].map((data) => openClient(root, { address, dataDir: join(root, name, data), track: false })),
    );
    try {
      const both = clients.map((from, i) => loop({ id: `${name}-${i}` }, from));
      const begun = both.map((_, i) => [user(`begin ${name} ${i}`)]);
      for (const [i, one] of both.entries()) await request(one, begun[i] ?? []);
      await Promise.all(clients.map((from) => from.backpressure(0, DELIVERED_MS)));
      // Both take one id before the database has it from either.
      const release = proxy.holdWrites();
      for (const messages of begun)
        messages.push(...call(`both_${name}`, 'bash', { command: 'run' }, `output of ${messages.length}`));
      await Promise.all(both.map((one, i) => one.context({ messages: begun[i] ?? [], system: 'be good' })));
      release();
      await Promise.all(both.map((one) => one.handed({ sha256: hashText('a'), chars: 1, messages: 1 })));
      await Promise.all(clients.map((from) => from.backpressure(0, DELIVERED_MS)));
      const reasons: (string | undefined)[] = [];
      for (const [i, one] of both.entries()) {
        begun[i]?.push(...call(`next_${name}_${i}`, 'bash', { command: 'run' }, `more of ${i}`));
        reasons.push((await request(one, begun[i] ?? [])).context.epoch?.reason);
      }
      expect(reasons.toSorted()).toEqual(['first', 'history']);
      for (const one of loops.splice(0)) await one.close();
      await Promise.all(clients.map((from) => from.backpressure(0, DELIVERED_MS)));
      const store = await client.delivered();
      const sessions = (await clients[0]?.listSessions())?.filter(({ id }) => id.startsWith(name)) ?? [];
      expect(sessions.length).toBe(3);
      for (const { id } of sessions) expect((await verifySession(store, id)).contexts.unequal).toEqual([]);
    } finally {
      for (const from of clients) await from.close();
      await proxy.close();
    }
  });

  test('begins an epoch with a changed list; inside a turn, drops the list to keep reasoning valid', async () => {
    const session = loop();
    const messages: ReportedMessage[] = [
      user(`begin ${name}`),
      ...call('c1', 'bash', { command: 'run' }, `output of ${name}`),
    ];
    await request(session, messages.slice(0, 1));
    await request(session, messages);
    messages.push(...call('c2', 'bash', { command: 'run' }, `more of ${name}`));
    const own = await request(session, messages, { ownList: true });
    expect(own.context).toMatchObject({
      from: messages.length,
      inserts: [],
      epoch: { number: 2, begins: true, reason: 'history' },
    });
    expect(own.text).toContain(`user: begin ${name}`);
    expect(own.text).toContain(`more of ${name}`);
    messages.push(...call('c3', 'bash', { command: 'run' }, `the third of ${name}`));
    const next = await request(session, messages);
    expect(isPrefix(own.lines, next.lines)).toBe(true);
    expect(next.context).toMatchObject({ from: 5, epoch: { number: 2, begins: false } });
    const compacted = [{ role: 'compactionSummary', content: 'they ran things' }, user('go on')];
    const after = await request(session, compacted, { compacted: true });
    expect(after.context).toMatchObject({ from: 1, epoch: { number: 3, begins: true, reason: 'history' } });
    expect(await verified()).toBe(5);
  });

  test('begins an epoch after a model call without our context, also by another process', async () => {
    const before = loop();
    const messages: ReportedMessage[] = [user(`begin ${name}`), ...(await readOf('c1'))];
    await request(before, messages);
    await before.close();
    loops.splice(0);
    messages.push(...(await readOf('c2')), ...(await readOf('c3')));
    const { context } = await request(loop(), messages);
    expect(context).toMatchObject({ from: messages.length, epoch: { number: 2, begins: true, reason: 'history' } });
    expect(await verified()).toBe(2);
  });

  test('begins an epoch inside a turn at the budget, and on request at the next user message', async () => {
    const session = loop();
    const messages: ReportedMessage[] = [user(`begin ${name}`)];
    await request(session, messages, { window: 4_100 });
    const begun: (readonly [string | undefined, number])[] = [];
    let before: readonly string[] = [];
    for (let i = 0; i < 16; i++) {
      messages.push(...call(`c${i}`, 'bash', { command: 'run' }, `${i} ${'many words '.repeat(100)}`));
      const { context, lines } = await request(session, messages, { window: 4_100 });
      if (context.epoch?.begins === true) begun.push([context.epoch.reason, messages.length - context.from]);
      else expect(isPrefix(before, lines)).toBe(true);
      before = lines;
    }
    expect(begun).toEqual([
      ['pressure', 0],
      ['pressure', 0],
    ]);
    session.tidy();
    messages.push(reply('done'), user('and now?'));
    const { context } = await request(session, messages);
    expect(context).toMatchObject({ from: messages.length - 1, epoch: { number: 4, begins: true, reason: 'asked' } });
    expect(await verified()).toBe(18);
  });

  test('lets a stopped call block only the next user message; a late result follows its call', async () => {
    const session = loop();
    const stopped: ReportedMessage = {
      role: 'assistant',
      content: '',
      tool_calls: [{ id: 'c2', name: 'bash', arguments: { command: 'sleep' } }],
    };
    const messages: ReportedMessage[] = [user(`begin ${name}`)];
    await request(session, messages);
    session.tidy();
    messages.push(stopped, user('no, otherwise'));
    expect((await request(session, messages)).context).toMatchObject({ from: 0, epoch: { number: 1, begins: false } });
    messages.push(reply('as you like'), user('and now?'));
    const { context: third } = await request(session, messages);
    expect(third).toMatchObject({ from: 4, epoch: { number: 2, begins: true, reason: 'asked' } });
    messages.push(...(await readOf('c3')));
    expect((await request(session, messages)).context).toMatchObject({ from: 4, epoch: { number: 2, begins: false } });
    messages.push({ role: 'toolResult', tool_call_id: 'c2', content: 'late' });
    const { context: last } = await request(session, messages);
    expect(last).toMatchObject({ from: messages.length, epoch: { number: 3, begins: true, reason: 'history' } });
    expect(await verified()).toBe(5);
  });

  test('shows a repeated read as a line or its changes, and whole on the next read, in any process', async () => {
    const path = join(root, `${name}.txt`);
    const text = (more = '') =>
      `${Array.from({ length: 40 }, (_, i) => `line ${i} of the file of ${name}`).join('\n')}${more}\n`;
    const before = loop();
    const messages: ReportedMessage[] = [user(`begin ${name}`)];
    const requests = [await request(before, messages)];
    const reads = async (content: string, by: LoopSession): Promise<string> => {
      await writeFile(path, content);
      messages.push(...call(`${name}_c${messages.length}`, 'read', { path }, content));
      requests.push(await request(by, messages));
      expect(isPrefix(requests.at(-2)?.lines ?? [], requests.at(-1)?.lines ?? [])).toBe(true);
      return requests.at(-1)?.lines.slice(requests.at(-2)?.lines.length).join('\n') ?? '';
    };
    expect(await reads(text(), before)).toContain('line 7 of');
    const again = await reads(text(), before);
    expect(again).toMatch(/is unchanged; its text stands above, in what your last whole read of it answered/);
    expect(again).not.toContain('line 7 of');
    expect(await reads(text(), before)).toContain('line 7 of');
    const changed = await reads(text('\none more'), before);
    expect(changed).toMatch(/has changed since its text above.*\n@@ -40,1 \+40,2 @@\n line 39 of.*\n\+one more/);
    expect(changed).not.toContain('line 7 of');
    // Two calls of a file in a form not seen before.
    await before.close();
    loops.splice(0);
    await client.backpressure(0, DELIVERED_MS);
    const other = await openClient(root, { clock: () => now });
    try {
      const after = loop({}, other);
      expect(await reads(text('\none more'), after)).toContain('line 7 of');
      expect(await reads(text('\none more'), after)).toContain('is unchanged');
      // The harness's own list contains nothing of ours: every text is still there.
      expect(messages.filter(({ content }) => String(content).includes('line 7 of')).length).toBe(6);
      messages.push(reply('done'), user('and now?'));
      after.tidy();
      requests.push(await request(after, messages));
      expect(requests.at(-1)?.context.references).toEqual([]);
      expect(await reads(text('\none more'), after)).toMatch(
        /is unchanged; its text stands above, in the block ACTIVE_CONTENT id=/,
      );
      for (const one of loops.splice(0)) await one.close();
    } finally {
      await other.close();
    }
    expect(await verified()).toBe(9);
    const { compared } = await askPrefixes(await Timeline.open(await client.delivered()), { name, count: countHere });
    expect(compared.map(({ isPrefix: is }) => is)).toEqual([true, false, true, true, true, true, true, true]);
  });

  test('returns a past context as it was sent, even if it is the only one read', async () => {
    const session = loop();
    const messages: ReportedMessage[] = [user(`begin ${name}`)];
    await request(session, messages);
    for (let i = 0; i < 3; i++) {
      messages.push(...(await readOf(`c${i}`)));
      await request(session, messages);
    }
    const store = await client.delivered();
    const proofs = await (await store.latest()).assemblies(session.session?.id as never);
    for (const proof of proofs.toReversed()) {
      const { equal, rendered } = await new AssemblyRebuilder(store).rebuild(proof);
      expect([equal, rendered.whole.length]).toEqual([true, proof.chars]);
    }
  });

  test('adds a prompt that is known only with the list to the record, without other changes', async () => {
    const session = loop();
    const messages: ReportedMessage[] = [user(`begin ${name}`)];
    await session.context({ messages });
    await session.handed({ sha256: hashText('a'), chars: 1, messages: 1, system: 'be better' });
    messages.push(...(await activationOf('c1', session)));
    const context = await session.context({ messages });
    expect(context).toMatchObject({ epoch: { number: 1, begins: false }, inserts: [{ index: 2 }] });
    const record = await session.handed({ sha256: hashText('b'), chars: 1, messages: 1, system: 'be better' });
    expect(record?.sections.map(({ name: section }) => section)).toEqual(['system', 'notes']);
    expect(await verified()).toBe(2);
  });

  test('records the prompt of a repeated request that differs from the expected one', async () => {
    const session = loop();
    const messages: ReportedMessage[] = [user(`begin ${name}`)];
    await request(session, messages);
    messages.push(...(await activationOf('c1', session)));
    const noted = await request(session, messages);
    expect(noted.context.inserts.length).toBe(1);
    // The request is repeated, as after a failure of the provider.
    const context = await session.context({ messages, system: 'be good' });
    expect(requestOf(messages, context as LoopContext)).toEqual(noted.lines);
    const handed = { sha256: hashText(noted.text), chars: noted.text.length, messages: noted.lines.length };
    const record = await session.handed({ ...handed, system: 'be brief' });
    const system = record?.sections.find((section) => section.name === 'system');
    expect([system?.chars, system?.sha256]).toEqual(['be brief'.length, hashText('be brief')]);
    expect(await verified()).toBe(3);
  });

  test('begins an epoch with reason “history” if the database does not return the previous one', async () => {
    const first = loop();
    const messages: ReportedMessage[] = [user(`begin ${name}`)];
    await request(first, messages);
    await first.close();
    await client.delivered();
    const { proxy, far } = await farClient();
    try {
      const session = loop({}, far);
      messages.push(reply('one'), user('two'));
      await session.follow({ messages, system: 'be good' });
      await proxy.close();
      const context = await session.context({ messages, system: 'be good' });
      expect(context?.epoch).toMatchObject({ begins: true, reason: 'history' });
      await session.close();
    } finally {
      const again = await LateAnswers.open(root);
      await far.close();
      await again.close();
    }
  });
});

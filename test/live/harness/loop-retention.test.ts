import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import { LoopSession } from '../../../src/extensions/loop/loop-session.js';
import type { ReportedMessage } from '../../../src/harness/message-schema.js';
import { hashText } from '../../../src/objects/hashes.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { DEFAULT_POLICY } from '../../../src/session/step-policy.js';
import { openClient } from '../../support/context.js';
import { temporaryRoot } from '../../support/mcp-clients.js';

const POLICY = { ...DEFAULT_POLICY, retention: 'use' } as const;

describe('a session in a harness’s loop with retention by use', () => {
  let root: string;
  let client: ContextClient;
  let remove: () => Promise<void>;

  beforeAll(async () => {
    ({ root, remove } = await temporaryRoot());
    client = await openClient(root, { policy: POLICY });
  });
  afterAll(async () => {
    await client.close();
    await remove();
  });

  /** A harness whose list grows with each model call. */
  function harness(id: string, from = client, messages: ReportedMessage[] = []) {
    const loop = new LoopSession(from, { id, delivered: 'pi', layout: 'epoch' });
    const request = async () => {
      const context = await loop.context({ messages, system: 'be good' });
      await loop.handed({ sha256: hashText('list'), chars: 1, messages: 1 });
      return context;
    };
    const call = async (name: string, callId: string, output: string, says = '', args = {}): Promise<void> => {
      messages.push({ role: 'assistant', content: says, tool_calls: [{ id: callId, name, arguments: args }] });
      messages.push({ role: 'toolResult', tool_call_id: callId, content: output });
      await request();
    };
    const rest = async (count: number, name: string): Promise<void> => {
      for (let i = 0; i < count; i++) await call('bash', `${name}_${i}`, `short ${i}`);
    };
    const active = (): readonly string[] =>
      (loop.session?.state.sets.active ?? []).filter((one) => one.startsWith('found'));
    return { loop, messages, request, call, rest, active };
  }

  test('keeps a result that was shown or used lately, and restores it on a visible use, as the base does', async () => {
    const id = `retention-${process.pid}`;
    const { loop, messages, request, call, rest, active } = harness(id);
    messages.push({ role: 'user', content: `begin ${id}` });
    await request();
    await call('grep', 'found_1', `src/a.ts:1: a line of the first search in ${id}`);
    await call('grep', 'found_2', `src/b.ts:1: a line of the second search in ${id}`);
    await call('edit', 'edited', 'edited', '', { new_text: `what the edit of ${id} wrote, in its own words` });
    await rest(17, 'more');
    expect(active()).toEqual(['found_1', 'found_2']);
    await call('bash', 'said', 'yes', `I saw this:\nsrc/a.ts:1: a line of the first search in ${id}`);
    await rest(10, 'again');
    expect(active()).toEqual(['found_1']);
    await call('bash', 'said_2', 'yes', `And I saw this:\nsrc/b.ts:1: a line of the second search in ${id}`);
    expect(active()).toEqual(['found_1', 'found_2']);
    const gone = await loop.verb('deactivate', ['found_1'], 'gone');
    expect(gone).toMatchObject({ ok: true, text: expect.stringContaining('leaves at the next border') });
    messages.push({
      role: 'assistant',
      content: '',
      tool_calls: [{ id: 'gone', name: 'deactivate', arguments: { ids: ['found_1'] } }],
    });
    messages.push({ role: 'toolResult', tool_call_id: 'gone', content: 'ok' });
    await request();
    await call('bash', 'said_3', 'yes', `src/a.ts:1: a line of the first search in ${id}`);
    // The agent's own verb has priority.
    expect(active()).toEqual(['found_2']);
    loop.tidy();
    messages.push({ role: 'assistant', content: 'done' }, { role: 'user', content: 'and now?' });
    const context = await request();
    expect(context?.epoch).toEqual({ number: 2, begins: true, reason: 'asked' });
    const base = JSON.stringify(context?.before);
    expect(base).toContain(`a line of the second search in ${id}`);
    // The model's words are in the chat; the search result is gone.
    expect(base.split(`a line of the first search in ${id}`)).toHaveLength(3);
    expect(base).toMatch(/toolcall_ref id=found_1 tool=grep/);
    // An answer of a verb is not content. An edit stays with what it wrote.
    expect(base).toMatch(/toolcall_ref id=gone tool=deactivate/);
    expect(base).not.toContain('ACTIVE_CONTENT id=gone');
    expect(base).toContain(`[new_text]\\nwhat the edit of ${id} wrote, in its own words\\n[result]\\nedited`);
    const sets = loop.session?.state.sets;
    await loop.close();
    // The other process shares no data folder and sees only the database.
    await client.backpressure(0, 240_000);

    const other = await openClient(root, { policy: POLICY });
    try {
      const again = harness(id, other, messages);
      await again.call('bash', 'elsewhere', 'another process');
      expect(again.active()).toEqual(['found_2']);
      expect(again.loop.session?.state.sets.active).toEqual([...(sets?.active ?? []), 'elsewhere']);
      // The model has no tool named context here.
      const missed = await again.loop.verb('activate', ['nowhere.ts'], 'missed');
      expect(missed.text).toMatch(/was not found/);
      expect(missed.text).not.toMatch(/with context|read id=/);
      await again.loop.close();
    } finally {
      await other.close();
    }
    const { contexts } = await verifySession(await client.delivered(), id);
    expect(contexts.unequal).toEqual([]);
  });
});

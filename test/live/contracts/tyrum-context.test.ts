import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { tyrumReportSchema } from '../../../src/contracts/tyrum/context-report.js';
import { askHere } from '../../support/ask-here.js';
import { suiteData } from '../../support/mcp-clients.js';
import { servedFolders } from '../../support/served-folders.js';
import { tyrumFindings } from '../../support/tyrum-schemas.js';

/** Our own wording of how Tyrum's gateway reports and prunes contexts. */
const folders = servedFolders();
const { api } = folders;

const get = async (path: string) => {
  const { status, body } = await api.send(path, { method: 'GET' });
  return { status, body: body as { readonly [member: string]: never } };
};
type Row = Readonly<Record<string, unknown>> & { readonly context_report_id: string; readonly turn_id: string };
const rows = async (query: string): Promise<readonly Row[]> =>
  (await get(`/context/list?${query}`)).body.reports as unknown as Row[];

const PROMPT = 'You are careful.';
const OUTPUT = 'forty two '.repeat(30);

/** A session of some turns, each with a call. Its context is handed out after the last. */
async function recorded(turns: number): Promise<string> {
  const { id } = await api.call('openSession', undefined, { system_prompt: PROMPT });
  const messages = Array.from({ length: turns }, (_, i) => i + 1).flatMap((n) => [
    { role: 'user', content: `question ${n}` },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: `t${n}`, type: 'function', function: { name: 'look', arguments: '{"at":1}' } }],
    },
    { role: 'tool', tool_call_id: `t${n}`, content: OUTPUT },
    { role: 'assistant', content: `answer ${n}` },
  ]);
  await api.call('reportMessages', id, { messages });
  return id;
}

const sized = (report: Row) => report.user_parts as readonly { readonly id: string; readonly chars: number }[];

describe('context reports', () => {
  test('exist for every handed-out context, in exact fields; the sizes add up to the context', async () => {
    const id = await recorded(1);
    await api.call('announceTools', id, {
      tools: ['a', 'bb', 'ccc', 'dddd', 'eeeee', 'ffffff'].map((schema) => ({ id: `tool_${schema}`, schema })),
      skills: ['reading'],
      mcp_servers: ['files'],
    });
    const { text = '' } = await api.call('beginTurn', id, { messages: [{ role: 'user', content: 'what now?' }] });
    const { status, body } = await get(`/context?conversation_id=${id}`);
    expect([status, body.status]).toEqual([200, 'ok']);
    const { turn_id, created_at, ...report } = body.report as unknown as Row & { readonly created_at: string };
    expect(tyrumReportSchema.parse(report)).toEqual(report);
    expect(tyrumFindings('ContextReport', report)).toEqual([]);
    expect([turn_id, created_at]).toEqual([`${id}@turn:2`, report.generated_at]);
    expect(report).toMatchObject({
      conversation_id: id,
      system_prompt: { sections: [{ id: 'system_prompt' }] },
      selected_tools: ['tool_a', 'tool_bb', 'tool_ccc', 'tool_dddd', 'tool_eeeee', 'tool_ffffff'],
      tool_schema_total_chars: 33,
      enabled_skills: ['reading'],
      mcp_servers: ['files'],
      tool_calls: [{ tool_id: 'look' }],
    });
    expect(report.tool_schema_top).toEqual(
      [8, 7, 6, 5, 4].map((chars) => ({ id: `tool_${'fedcb'.charAt(8 - chars).repeat(chars - 2)}`, chars })),
    );
    expect(sized(report as Row).find((part) => part.id === 'user_request')?.chars).toBe('what now?'.length);
    // Section titles and the empty lines between sections belong to no part.
    const parts = [report.system_prompt as { readonly chars: number }, ...sized(report as Row)].reduce(
      (sum, { chars }) => sum + chars,
      0,
    );
    expect(Math.abs(parts - text.length)).toBeLessThan(120);
    expect(JSON.stringify(report)).not.toContain('forty two');
    const listed = await rows(`conversation_id=${id}`);
    expect(listed).toEqual([body.report]);
    expect((await get(`/context/detail/${report.context_report_id}`)).body.report).toEqual(body.report);
    const { body: tools } = await get(`/context/tools?conversation_id=${id}`);
    expect(tools).toMatchObject({ status: 'ok', conversation_id: id, total_chars: 33 });
  });

  test('are listed per session, newest first, by turn and by number; a session without contexts has none', async () => {
    expect(await rows(`conversation_id=${await recorded(1)}`)).toEqual([]);
    const { id } = await api.call('openSession', undefined, {});
    for (const n of [1, 2, 3])
      await api.call('beginTurn', id, { messages: [{ role: 'user', content: `question ${n}` }] });
    expect((await rows(`conversation_id=${id}`)).map((row) => row.turn_id)).toEqual(
      [3, 2, 1].map((turn) => `${id}@turn:${turn}`),
    );
    const [second] = await rows(`turn_id=${encodeURIComponent(`${id}@turn:2`)}`);
    expect((await rows(`conversation_id=${id}&limit=2`)).at(-1)).toEqual(second);
    expect((await rows('limit=1')).map((row) => row.conversation_id)).toEqual([id]);
    const answered = await askHere(
      ['report', 'list', id, '--format', 'tyrum', '--limit', '2', '--data', suiteData()],
      {},
    );
    expect(JSON.parse(answered.stdout)).toEqual((await get(`/context/list?conversation_id=${id}&limit=2`)).body);
    const detail = await askHere(['report', 'detail', `${id}@turn:2`, '--format', 'tyrum', '--data', suiteData()], {});
    const { turn_id: _turn, created_at: _at, ...report } = second ?? ({} as Row);
    expect(JSON.parse(detail.stdout)).toEqual(report);
  });

  test('come, like tools, from the session with a running turn, even if another session ended one', async () => {
    const { id: running } = await api.call('openSession', undefined, {});
    await api.call('announceTools', running, { tools: [{ id: 'mine', chars: 3 }] });
    await api.call('reportMessages', running, { messages: [{ role: 'user', content: 'a long task' }] });
    const other = await recorded(1);
    await api.call('beginTurn', other, {});
    expect((await rows('limit=1'))[0]?.conversation_id).toBe(other);
    await api.call('reportToolCalls', running, { calls: [{ id: 'w', name: 'look', content: OUTPUT }] });
    await api.call('beginTurn', running, {});
    expect((await rows('limit=1'))[0]).toMatchObject({ conversation_id: running, turn_id: `${running}@turn:1` });
    expect((await rows('limit=2')).map((row) => row.conversation_id)).toEqual([running, other]);
    const { body } = await get('/context/tools');
    expect(body).toMatchObject({ conversation_id: running, tools: [{ id: 'mine', chars: 3 }] });
  });

  test('show the stored and the shown size of an active file, and the call that brought it', async () => {
    const { id } = await api.call('openSession', undefined, {});
    await writeFile(join(folders.root, 'notes.txt'), 'a line\n'.repeat(50));
    const path = join(folders.root, 'notes.txt');
    await api.call('reportMessages', id, { messages: [{ role: 'user', content: 'read it' }] });
    await api.call('reportToolCalls', id, {
      calls: [{ id: `read-${id}`, name: 'read', args: { path }, content: 'a line', files: [{ path }] }],
    });
    const { call_id } = await api.call('activate', id, { ids: [path] });
    await api.call('beginTurn', id, {});
    const { body } = await get(`/context?conversation_id=${id}`);
    expect(tyrumFindings('ContextReport', body.report)).toEqual([]);
    expect(body.report).toMatchObject({
      injected_files: [{ tool_call_id: call_id, path, raw_chars: 350, injected_chars: 350, truncated: false }],
    });
  });

  test('are found by id alone in any session; a fork has those of its shared steps', async () => {
    const id = await recorded(2);
    await api.call('beginTurn', id, { messages: [{ role: 'user', content: 'and?' }] });
    const { id: fork } = await api.call('openSession', undefined, { fork: { parent: id } });
    const other = await recorded(1);
    for (const session of [id, fork, other]) {
      for (const row of await rows(`conversation_id=${session}`)) {
        expect(tyrumFindings('ContextReport', row)).toEqual([]);
        expect((await get(`/context/detail/${row.context_report_id}`)).body.report).toEqual(row);
        expect((await get(`/context/detail/${row.context_report_id}?conversation_id=${session}`)).body.report).toEqual(
          row,
        );
      }
    }
    const [shared] = await rows(`conversation_id=${id}`);
    expect((await get(`/context/detail/${shared?.context_report_id.toUpperCase()}`)).status).toBe(200);
    expect(
      await api.refused(`/context/detail/${shared?.context_report_id}?conversation_id=${other}`, { method: 'GET' }),
    ).toMatchObject({
      status: 404,
    });
  });

  test('refuse impossible requests by name and place', async () => {
    const unknown = '123e4567-e89b-12d3-a456-426614174000';
    expect(await api.refused(`/context/detail/${unknown}`, { method: 'GET' })).toMatchObject({
      status: 404,
      code: 'unknown-report',
      problem: { error: 'not_found' },
    });
    const refused = async (path: string, sent = {}) => (await api.refused(path, { method: 'GET', ...sent })).code;
    expect(await refused('/context/detail/nonsense')).toBe('invalid-request');
    for (const query of ['limit=0', 'limit=501', 'session=x', 'conversation_id='])
      expect(await refused(`/context/list?${query}`)).toBe('invalid-request');
    expect(await refused('/context/list?turn_id=7')).toBe('invalid-settings');
    expect(await refused('/context?conversation_id=nobody')).toBe('unknown-session');
    expect(await refused('/context', { method: 'POST' })).toBe('method-not-allowed');
    expect(await refused('/context/other')).toBe('not-found');
    expect(await refused('/context', { headers: { authorization: 'Bearer wrong' } })).toBe('unauthorized');
    expect(await refused('/context', { headers: { host: 'evil.example' } })).toBe('forbidden');
    const { id } = await api.call('openSession', undefined, {});
    const put = (body: unknown) => refused(`/v1/sessions/${id}/tools`, { method: 'PUT', body });
    for (const tools of [[{}], [{ id: '' }], [{ id: 'a', chars: -1 }], [{ id: 'a', text: 'x' }]])
      expect(await put({ tools })).toBe('invalid-request');
    // A session without a turn has no report.
    expect(await refused(`/context?conversation_id=${id}`)).toBe('unknown-report');
  });
});

describe('pruning', () => {
  test('drops calls and results before the last messages in pairs, and changes nothing stored', async () => {
    const id = await recorded(3);
    const { messages, pruned } = await api.call('promptOfTyrum', id, { tool_prune_keep_last_messages: 3 });
    expect(messages.map(({ role, content }) => `${role} ${content === OUTPUT ? 'output' : content}`)).toEqual([
      `system ${PROMPT}`,
      ...[1, 2].flatMap((n) => [`user question ${n}`, `assistant answer ${n}`]),
      'user question 3',
      'assistant ',
      'tool output',
      'assistant answer 3',
    ]);
    expect([pruned.results.length, pruned.messages.length]).toEqual([2, 2]);
    expect((await api.call('promptOfTyrum', id, { tool_prune_keep_last_messages: 99 })).messages).toHaveLength(13);
    expect((await api.refused(`/v1/sessions/${id}/tyrum/prompt`, { body: { max_messages: 7 } })).code).toBe(
      'invalid-settings',
    );
  });
});

describe('compaction', () => {
  const long = async (turns: number): Promise<string> => {
    const id = await recorded(turns);
    await api.call('keepTyrumObligations', id, {
      notes: [{ name: 'n1', note: 'constraint', text: 'Never deploy on Fridays' }],
      approvals: [
        { approval_id: 'ask-1', state: 'denied', text: 'rm -r build', tool_name: 'look', tool_call_id: 't1' },
      ],
    });
    return id;
  };
  const stateOf = async (id: string) => (await api.call('getTyrumState', id)).state;

  test('replaces old turns by a checkpoint in exact fields, also in later prompts and the command line', async () => {
    const id = await long(30);
    const { conversation_id, state: before } = await api.call('getTyrumState', id);
    expect([conversation_id, before.checkpoint, tyrumFindings('ConversationState', before)]).toEqual([id, null, []]);
    const wish = { max_tokens: 900, reserved_tokens: 100, checkpoint_tokens: 200 };
    const whole = async () => (await get(`/v1/context?session=${id}&assemble=true`)).body.sha256;
    const untouched = await whole();
    const preview = await api.call('compactTyrumConversation', id, { ...wish, preview: true });
    expect([preview.compacted, preview.recorded, (await stateOf(id)).checkpoint]).toEqual([true, false, null]);
    const made = await api.call('compactTyrumConversation', id, wish);
    expect(made).toMatchObject({
      compacted: true,
      recorded: true,
      limit: 800,
      checkpoint_by: 'digest',
      reserved_tokens: 100,
    });
    expect(made.tokens).toBeLessThanOrEqual(800);
    expect(tyrumFindings('ConversationState', made.state)).toEqual([]);
    expect(made.state.checkpoint).toMatchObject({
      goal: 'question 1',
      user_constraints: ['Never deploy on Fridays'],
      decisions: ['approval ask-1 for look was denied: rm -r build'],
    });
    expect(await stateOf(id)).toEqual(made.state);
    expect([await whole(), (await get(`/v1/verify?session=${id}`)).body.ok]).toEqual([untouched, true]);
    expect((await api.call('compactTyrumConversation', id, wish)).compacted).toBe(false);
    const { messages } = await api.call('promptOfTyrum', id, { tool_prune_keep_last_messages: 999 });
    expect(messages).toEqual(made.messages);
    expect(messages.find((message) => message.id === 'checkpoint')?.content).toContain('Never deploy on Fridays');
    const asked = await askHere(['report', 'state', id, '--data', suiteData()], {});
    expect(JSON.parse(asked.stdout)).toEqual({ status: 'ok', conversation_id: id, state: made.state });
    const past = await askHere(['report', 'state', `${id}@turn:3`, '--data', suiteData()], {});
    expect(JSON.parse(past.stdout).state.checkpoint).toBeNull();
  });

  test('keeps a pending call or approval and everything after it until it is answered', async () => {
    const id = await long(4);
    await api.call('reportMessages', id, { messages: [{ role: 'user', content: 'go on' }] });
    await api.call('keepTyrumObligations', id, {
      approvals: [
        { approval_id: 'ask-2', state: 'pending', text: 'push to main?', tool_name: 'push', tool_call_id: 'w1' },
      ],
      calls: [{ tool_call_id: 'w1', tool_name: 'push', args: { to: 'main' } }],
    });
    const { state, messages } = await api.call('compactTyrumConversation', id, { max_tokens: 300, reason: 'overflow' });
    expect(state.pending_approvals).toEqual([
      { approval_id: 'ask-2', state: 'pending', tool_call_id: 'w1', tool_name: 'push' },
    ]);
    expect(state.pending_tool_state).toEqual([{ tool_call_id: 'w1', tool_name: 'push', summary: '{"to":"main"}' }]);
    expect(messages.map(({ content }) => content).join('\n')).toContain(
      'Approval ask-2 of push w1 waits for an answer: push to main?',
    );
    const refused = await api.refused(`/v1/sessions/${id}/tyrum/compact`, { body: { max_tokens: 20 } });
    expect([refused.status, refused.code]).toEqual([409, 'budget-too-small']);
    await api.call('keepTyrumObligations', id, { approvals: [{ approval_id: 'ask-2', state: 'approved' }] });
    expect((await stateOf(id)).pending_approvals).toMatchObject([{ approved: true, state: 'approved' }]);
    await api.call('reportToolCalls', id, {
      calls: [{ id: 'w1', name: 'push', args: { to: 'main' }, content: 'pushed', status: 'ok' }],
    });
    const after = await stateOf(id);
    expect([after.pending_approvals, after.pending_tool_state]).toEqual([[], []]);
  });

  test('audits a checkpoint of a model, gives it a second attempt, and accepts one from a command', async () => {
    const id = await long(30);
    const wish = { max_tokens: 900, checkpoint_tokens: 300 };
    const { to_summarise: asked } = await api.call('compactTyrumConversation', id, { ...wish, preview: true });
    const names = asked?.critical_identifiers ?? [];
    await api.call('reportMessages', id, { messages: [{ role: 'assistant', content: 'see src/kept.ts' }] });
    const written = { goal: 'answer', handoff_md: `All is answered. ${names.join(' ')}` };
    const send = { body: { ...wish, checkpoint: { ...written, note: 'x' } } };
    const refused = await api.refused(`/v1/sessions/${id}/tyrum/compact`, send);
    expect(refused).toMatchObject({
      status: 409,
      code: 'checkpoint-refused',
      problem: { error: 'checkpoint_refused' },
    });
    expect((await stateOf(id)).checkpoint).toBeNull();
    const last = await api.call('compactTyrumConversation', id, { ...send.body, preview: true, last_try: true });
    expect([last.checkpoint_by, last.refused]).toEqual(['digest', [expect.stringContaining('not valid')]]);
    const command = `cat > /dev/null; echo '${JSON.stringify(written)}'`;
    const compact = async (...more: string[]) => {
      const { code, stdout } = await askHere([
        'compact',
        id,
        '--budget',
        '900',
        '--writer',
        command,
        ...more,
        '--json',
        '--data',
        suiteData(),
      ]);
      return { code, ...(JSON.parse(stdout) as object) };
    };
    // The owner of the session records the outcome.
    const message = expect.stringMatching(/is open in process \d+ \(palimpsest.*\/tyrum\/compact.*--preview/);
    expect(await compact()).toMatchObject({ code: 1, error: { code: 'lease-held', message } });
    expect(await compact('--preview')).toMatchObject({ code: 0, recorded: false, checkpoint_by: 'program' });
    expect((await stateOf(id)).checkpoint).toBeNull();
    await api.call('closeSession', id, {});
    expect(await compact()).toMatchObject({ code: 0, recorded: true, checkpoint_by: 'program' });
    await api.call('openSession', undefined, { id });
    expect((await stateOf(id)).checkpoint).toMatchObject({
      goal: 'answer',
      user_constraints: ['Never deploy on Fridays'],
    });
    const better = { goal: 'answer better', handoff_md: written.handoff_md };
    const anew = await api.call('compactTyrumConversation', id, { ...wish, checkpoint: better, writer: 'big-model' });
    expect([anew.recorded, anew.checkpoint_by, (await stateOf(id)).checkpoint?.goal]).toEqual([
      true,
      'big-model',
      'answer better',
    ]);
  });
});

describe('memory', () => {
  const key = ['sk', 'Q7xZ2mK9vB4nT6wR1yL8'].join('-');

  test('is written, corrected, consolidated and forgotten with tombstones, and enters a context by calls', async () => {
    const id = await recorded(1);
    const agent = `ada-${id}`;
    const put = [
      { kind: 'fact', key: 'port', value: 80 },
      { kind: 'note', title: 'Ports', body_md: `the port of tests; the password=${key}` },
      { kind: 'note', title: 'Ports', body_md: `the port of tests; the password=${key}` },
    ];
    const first = await api.call('changeTyrumMemory', id, { agent, put });
    expect([first.items.length, JSON.stringify(first).includes(key)]).toEqual([2, false]);
    const corrected = await api.call('changeTyrumMemory', id, {
      agent,
      put: [{ kind: 'fact', key: 'port', value: 8080 }],
    });
    for (const item of corrected.items) expect(tyrumFindings('MemoryItem', item)).toEqual([]);
    expect(
      corrected.items
        .map(({ value, updated_at }) => [value, updated_at === undefined])
        .filter(([value]) => value !== undefined),
    ).toEqual([[8080, false]]);
    expect((await api.call('beginTurn', id, {})).text).not.toContain('8080');
    const { id: later } = await api.call('openSession', undefined, {});
    const recalled = await api.call('recallTyrumMemory', later, { agent, query: 'port', call_id: 'recall-1' });
    expect(recalled).toMatchObject({ tool_id: 'memory.search', items: [{ value: 8080 }, { title: 'Ports' }] });
    const { text } = await api.call('beginTurn', later, {});
    expect(text).toContain(recalled.text);
    const { body } = await get(`/context?conversation_id=${later}`);
    expect(body.report).toMatchObject({ memory: { keyword_hits: 1 }, tool_calls: [{ tool_id: 'memory.search' }] });
    await api.call('deactivate', later, { ids: [recalled.call_id] });
    expect((await api.call('beginTurn', later, {})).text).not.toContain(recalled.text);
    const memory_item_id = String(recalled.items[1]?.memory_item_id);
    const forgotten = await api.call('changeTyrumMemory', later, {
      agent,
      forget: [{ memory_item_id, reason: 'wrong' }],
    });
    expect(forgotten.tombstones).toEqual([
      expect.objectContaining({ memory_item_id, deleted_by: 'user', reason: 'wrong' }),
    ]);
    for (const one of forgotten.tombstones) expect(tyrumFindings('MemoryTombstone', one)).toEqual([]);
    const listed = await askHere(['report', 'memory', agent, '--json', '--data', suiteData()], {});
    expect(JSON.parse(listed.stdout)).toMatchObject({
      agent,
      items: forgotten.items,
      tombstones: forgotten.tombstones,
    });
    const emptied = await api.call('changeTyrumMemory', later, { agent, budget: { max_items: 0, max_chars: 0 } });
    expect([emptied.items, emptied.tombstones.map(({ deleted_by }) => deleted_by)]).toEqual([[], ['user', 'budget']]);
    expect((await api.call('recallTyrumMemory', later, { agent })).text).toBe('nothing is remembered of it');
  });

  test('stores text that a compaction drops once; if that fails, the compaction continues', async () => {
    const id = await recorded(30);
    const agent = `flush-${id}`;
    await api.call('keepTyrumObligations', id, {
      notes: [{ name: 'n1', note: 'constraint', text: `Never show ${key}` }],
    });
    const wish = { max_tokens: 900, memory: { agent } };
    const { flush } = await api.call('compactTyrumConversation', id, wish);
    expect(flush).toMatchObject({ outcome: 'written' });
    expect((await api.call('compactTyrumConversation', id, wish)).flush).toBeNull();
    const { items } = await api.call('changeTyrumMemory', id, { agent });
    expect(items).toMatchObject([
      {
        memory_item_id: flush?.memory_item_id,
        // The note itself is stored with the mark.
        body_md: expect.stringMatching(/^Constraints and preferences:\n- Never show ⟦masked:openai-key:\w{12}⟧$/),
      },
    ]);
    const other = await recorded(30);
    const failed = await api.call('compactTyrumConversation', other, {
      max_tokens: 900,
      memory: { agent, item: { kind: 'idea' } },
    });
    expect([failed.recorded, failed.flush?.outcome]).toEqual([true, 'failed']);
  });

  test('refuses invalid items by their place and writes nothing', async () => {
    const { id } = await api.call('openSession', undefined, {});
    const { state } = await api.call('compactTyrumConversation', id, { max_tokens: 10, reason: 'manual' });
    expect([state.checkpoint, state.recent_message_ids, tyrumFindings('ConversationState', state)]).toEqual([
      null,
      [],
      [],
    ]);
    const agent = `bad-${id}`;
    const refused = async (path: string, body: unknown) => {
      const { status, code, problem } = await api.refused(`/v1/sessions/${id}/tyrum/${path}`, { body });
      return [status, code, problem.detail];
    };
    const put = [{ kind: 'note', body_md: 'x' }, { kind: 'note' }];
    expect(await refused('memory', { agent, put })).toEqual([
      400,
      'invalid-memory',
      expect.stringContaining('item 2 of 2'),
    ]);
    const forget = [{ memory_item_id: '123e4567-e89b-12d3-a456-426614174000' }];
    expect((await refused('memory', { agent, forget })).slice(0, 2)).toEqual([404, 'unknown-memory']);
    expect((await refused('memory', { agent: 'a b' })).slice(0, 2)).toEqual([400, 'invalid-request']);
    expect((await api.call('changeTyrumMemory', id, { agent })).items).toEqual([]);
  });
});

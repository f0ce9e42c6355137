import { beforeAll, describe, expect, test } from '@jest/globals';
import { bytesSource, entriesOf, type Imported, importAll, linesOf, lossesOf } from '../../../support/recordings.js';

describe('a session of Codex', () => {
  let found: Imported;
  beforeAll(async () => {
    found = await importAll('codex/coding.jsonl');
  });

  test('imports with its model and prompt; sealed thoughts are one loss', () => {
    expect(lossesOf(found)).toEqual(['opaque-content line 7']);
    expect(entriesOf(found, 'session')).toMatchObject([
      {
        format: 'codex',
        cwd: '/home/mira/shelf',
        model: 'gpt-5.4',
        system_prompt: 'You work on code.',
        agent_version: '0.130.0',
      },
    ]);
  });

  test('counts no event twice that repeats the transcript', () => {
    const said = entriesOf(found, 'message').filter(({ text, thinking }) => text !== '' || thinking !== undefined);
    expect(said.map(({ role, origin }) => `${role} ${origin}`)).toEqual([
      'developer harness',
      'user harness',
      'user person',
      'assistant model',
      'assistant model',
      'assistant model',
      'user person',
      'assistant model',
    ]);
    expect(said[4]).toMatchObject({ text: '', thinking: '**Reading the digit**' });
  });

  test('reads arguments from JSON text, free text as input, and another folder of a call', () => {
    const calls = entriesOf(found, 'call');
    expect(calls[2]).toMatchObject({
      tool: 'exec_command',
      args: { cmd: "sed -n '9,16p' shelf.ts", workdir: 'src' },
      cwd: '/home/mira/shelf/src',
    });
    expect(calls[0]?.cwd).toBeUndefined();
    expect(calls[4]?.args).toEqual({ input: expect.stringContaining('*** Begin Patch') });
  });

  test('keeps the header of a command; its exit code marks an error', () => {
    const results = new Map(entriesOf(found, 'result').map((result) => [result.call_id, result]));
    expect(results.get('call_c02')).toMatchObject({
      is_error: false,
      text: expect.stringMatching(/^Chunk ID: [\s\S]*Output:\n\/\*\* The check/),
    });
    expect(results.get('call_c11')).toMatchObject({ is_error: true });
    expect(results.get('call_c05')).toMatchObject({ is_error: true });
  });

  test('shows the changed pieces and the new files at the end of a patch', () => {
    const results = new Map(entriesOf(found, 'result').map((result) => [result.call_id, result]));
    expect(results.get('call_c06')?.files).toMatchObject([
      { moment: 'before', whole: false, start_line: 2, text: expect.stringContaining('? 1 : 2') },
      { moment: 'after', whole: false, start_line: 2, text: expect.stringContaining('? 1 : 3') },
    ]);
    expect(results.get('call_c10')?.files).toMatchObject([
      { path: '/home/mira/shelf/CHANGELOG.md', moment: 'after', whole: true },
    ]);
    expect(results.get('call_c05')?.files).toBeUndefined();
  });

  test('gives each answer its tokens once; an answer of calls alone has a message without text', () => {
    const counted = entriesOf(found, 'message').filter(({ usage }) => usage !== undefined);
    expect(counted.map(({ role, text, usage }) => [role, text === '', usage?.output])).toEqual(
      [false, ...Array(6).fill(true), false, true, true, true, false].map((isSilent) => ['assistant', isSilent, 30]),
    );
    expect(entriesOf(found, 'event')).toEqual([]);
  });

  test('waits for a count that comes after the results of its answer', async () => {
    const lines = [
      { type: 'session_meta', payload: { id: 'late', cli_version: '0.1', cwd: '/p' } },
      {
        type: 'response_item',
        payload: { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'I look.' }] },
      },
      { type: 'response_item', payload: { type: 'function_call', name: 'shell', call_id: 'c1', arguments: '{}' } },
      { type: 'response_item', payload: { type: 'function_call_output', call_id: 'c1', output: 'ok' } },
      {
        type: 'event_msg',
        payload: { type: 'token_count', info: { total_token_usage: {}, last_token_usage: { input_tokens: 7 } } },
      },
      { type: 'response_item', payload: { type: 'function_call', name: 'shell', call_id: 'c2', arguments: '{}' } },
      { type: 'response_item', payload: { type: 'function_call_output', call_id: 'c2', output: 'ok' } },
    ].map((record) => JSON.stringify({ timestamp: '2026-03-01T10:00:00.000Z', ...record }));
    const late = await importAll(bytesSource(`${lines.join('\n')}\n`));
    expect(late.entries.map(({ kind }) => kind)).toEqual([
      'session',
      'message',
      'call',
      'result',
      'message',
      'call',
      'result',
    ]);
    expect(entriesOf(late, 'message')).toMatchObject([{ text: 'I look.', usage: { input: 7 } }, { text: '' }]);
  });
});

describe('traps of Codex', () => {
  let found: Imported;
  beforeAll(async () => {
    found = await importAll('codex/fork.jsonl');
  });

  test('report every loss with its line, and each kind of sealed content once', () => {
    expect(lossesOf(found)).toEqual([
      'unparsed-arguments line 44',
      'unknown-record line 54',
      'orphan-result line 55',
      'opaque-content line 8',
      'opaque-content line 46',
      'opaque-content line 47',
      'opaque-content line 49',
      'missing-result line 51',
    ]);
  });

  test('make a forked file one session under its parent, and mark the copied history', () => {
    expect(entriesOf(found, 'session')).toMatchObject([
      {
        native_id: '019c0000-0000-7000-8000-00000000c002',
        parent: { native_id: '019c0000-0000-7000-8000-00000000c001', relation: 'subagent' },
      },
    ]);
    const calls = entriesOf(found, 'call');
    expect(calls.filter(({ copied }) => copied === true).map(({ call_id }) => call_id)).toEqual([
      ...Array.from({ length: 8 }, (_, index) => `call_c0${index + 1}`),
      'call_f01',
    ]);
    expect(entriesOf(found, 'message').find(({ text }) => text === 'Check the weights.')?.copied).toBeUndefined();
  });

  test('recognise a local shell call, a search, a picture in an output and a resumed session', () => {
    expect(entriesOf(found, 'call').find(({ tool }) => tool === 'local_shell')?.args).toMatchObject({
      command: ['bash', '-lc', 'head -n 4 src/isbn.ts'],
    });
    expect(entriesOf(found, 'result').find(({ call_id }) => call_id === 'call_f04')?.text).toBe(
      'Script completed\n[image image/png 8 bytes]',
    );
    expect(
      entriesOf(found, 'event')
        .filter(({ name }) => name !== 'usage')
        .map(({ name }) => name),
    ).toEqual(['web-search', 'resumed', 'model-change', 'aborted', 'rewind', 'orphan-result']);
  });

  test('report the context after a compaction', () => {
    expect(entriesOf(found, 'compaction')).toMatchObject([
      { summary: 'user: Check the weights.\n\nuser: So far: the weights are 1 and 3.' },
    ]);
  });

  test('keep arguments that are not JSON', () => {
    expect(entriesOf(found, 'call').find(({ call_id }) => call_id === 'call_f03')?.args).toEqual({
      input: '{"cmd":"ls',
    });
  });

  test('read files from before the envelopes', async () => {
    const old = await importAll('codex/before-envelopes.jsonl');
    expect(old.losses).toEqual([]);
    expect(entriesOf(old, 'session')).toMatchObject([
      { native_id: '6e1b0e4a-0d5b-4a7c-8f51-3f8a5f0c0003', system_prompt: 'You work on code.' },
    ]);
    expect(old.entries.map(({ kind }) => kind)).toEqual(['session', 'message', 'message', 'call', 'result', 'message']);
    expect(entriesOf(old, 'result')[0]).toMatchObject({ is_error: false, text: expect.stringContaining('exit_code') });
  });
});

describe('completed items of Codex', () => {
  const at = (second: number): string => `2026-03-01T10:00:0${second}.000Z`;
  const meta = {
    timestamp: at(0),
    type: 'session_meta',
    payload: { id: 's', timestamp: at(0), cwd: '/w', cli_version: '0.150.0' },
  };
  const completed = (second: number, item: object): object => ({
    timestamp: at(second),
    type: 'event_msg',
    payload: { type: 'item_completed', thread_id: 't', turn_id: 'u', item },
  });
  const response = (second: number, payload: object): object => ({
    timestamp: at(second),
    type: 'response_item',
    payload,
  });
  const asked = completed(1, { type: 'UserMessage', id: 'i1', content: [{ type: 'text', text: 'why' }] });
  const answered = completed(4, { type: 'AgentMessage', id: 'i4', content: [{ type: 'Text', text: 'because' }] });
  const ran = (id: string): object =>
    completed(2, {
      type: 'CommandExecution',
      id,
      command: ['bash', '-lc', 'cat a.txt'],
      cwd: '/w',
      exit_code: 0,
      aggregated_output: 'hello',
    });
  const changes = { '/w/b.txt': { type: 'add', content: 'new\n' } };
  const changed = completed(3, { type: 'FileChange', id: 'p1', status: 'completed', changes });
  const read = async (...records: readonly object[]): Promise<Imported> =>
    importAll(bytesSource(linesOf(meta, ...records)));

  test('describe a file that has nothing else', async () => {
    const found = await read(asked, ran('e1'), changed, answered);
    expect(found.losses).toEqual([]);
    expect(entriesOf(found, 'message').map(({ role, origin, text }) => [role, origin, text])).toEqual([
      ['user', 'person', 'why'],
      ['assistant', 'model', 'because'],
    ]);
    expect(entriesOf(found, 'call').map(({ call_id, tool }) => [call_id, tool])).toEqual([
      ['e1', 'shell'],
      ['p1', 'apply_patch'],
    ]);
    expect(entriesOf(found, 'result')).toMatchObject([
      { call_id: 'e1', text: 'hello', is_error: false },
      { call_id: 'p1', files: [{ path: '/w/b.txt', whole: true }] },
    ]);
  });

  test('count nothing twice beside a transcript, and show what a script did', async () => {
    const found = await read(
      response(1, { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'why' }] }),
      asked,
      response(1, {
        type: 'custom_tool_call',
        name: 'exec',
        call_id: 'x1',
        input: 'await tools.exec_command({cmd: "cat a.txt"})',
      }),
      ran('e1'),
      changed,
      response(3, { type: 'custom_tool_call_output', call_id: 'x1', output: 'done' }),
      answered,
      response(4, { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'because' }] }),
    );
    expect(lossesOf(found)).toEqual(['opaque-content line 4']);
    expect(entriesOf(found, 'message').map(({ text }) => text)).toEqual(['why', '', 'because']);
    expect(entriesOf(found, 'call').map(({ call_id }) => call_id)).toEqual(['x1']);
    expect(
      entriesOf(found, 'event').map(({ name, text }) => [name, text?.includes('a.txt') || text?.includes('b.txt')]),
    ).toEqual([
      ['script-step', true],
      ['script-step', true],
    ]);
    expect(entriesOf(found, 'result')[0]?.files).toMatchObject([{ path: '/w/b.txt', whole: true }]);
  });

  test('add an exit code to a call of the transcript, without a script step', async () => {
    const call = response(1, {
      type: 'function_call',
      name: 'exec_command',
      call_id: 'c1',
      arguments: '{"cmd":"false"}',
    });
    const failed = completed(2, {
      type: 'CommandExecution',
      id: 'c1',
      command: 'false',
      exit_code: 1,
      aggregated_output: '',
    });
    const found = await read(
      call,
      failed,
      response(3, { type: 'function_call_output', call_id: 'c1', output: 'no header' }),
      failed,
    );
    expect(entriesOf(found, 'event')).toEqual([]);
    expect(entriesOf(found, 'result')).toMatchObject([{ is_error: true }]);
  });

  test('report a message missing from the transcript and an unknown item as losses', async () => {
    const spoken = response(1, { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'other' }] });
    expect(lossesOf(await read(asked, spoken, completed(2, { type: 'Hologram' })))).toEqual([
      'unknown-record line 4',
      'unknown-record line 2',
    ]);
  });
});

import { describe, expect, test } from '@jest/globals';
import { bytesSource, entriesOf, importAll, lossesOf } from '../../../support/recordings.js';

describe('OpenAI-style chats', () => {
  test('read a list of messages as one session with its prompt, calls by id, and older calls by name', async () => {
    const run = await importAll('openai-chat/list.json');
    expect(entriesOf(run, 'session')).toEqual([
      expect.objectContaining({ format: 'openai-chat', system_prompt: 'You repair tills.' }),
    ]);
    expect(entriesOf(run, 'result').map(({ call_id, is_error }) => [call_id, is_error])).toEqual([
      ['call_2', false],
      ['call_1', false],
      ['call_1~2', true],
      ['call_3', false],
      ['messages[9].function_call', false],
      ['call_4', false],
    ]);
  });

  test('report every trap with its place', async () => {
    expect(lossesOf(await importAll('openai-chat/list.json'))).toEqual([
      'duplicate-id messages[5].tool_calls[0]',
      'malformed-record messages[8]',
      'unparsed-arguments messages[11].tool_calls[2]',
      'orphan-result messages[13]',
      'missing-result messages[11].tool_calls[1]',
      'missing-result messages[11].tool_calls[2]',
    ]);
  });

  test('turn pictures into a line, keep names, thoughts, tokens, refusals, and the text of free calls', async () => {
    const run = await importAll('openai-chat/list.json');
    const messages = entriesOf(run, 'message');
    expect(messages[0]).toMatchObject({ name: 'dev', text: expect.stringMatching(/\n\[image image\/png 5 bytes\]$/) });
    expect(messages[1]).toMatchObject({ place: 'messages[2]', text: '' });
    expect(messages[2]).toMatchObject({ thinking: 'Half a cent.', usage: { input: 700, output: 20, total: 720 } });
    expect(messages.at(-1)?.text).toBe('Done.\nI will not tip.');
    expect(entriesOf(run, 'call').find(({ tool }) => tool === 'search')?.args).toEqual({ input: 'discounted' });
  });

  test('make each conversation of a container a separate session', async () => {
    const run = await importAll('openai-chat/container.json');
    const sessions = entriesOf(run, 'session').map(({ native_id }) => native_id);
    expect(sessions).toHaveLength(3);
    expect(new Set(sessions).size).toBe(3);
    expect(sessions.map((id) => entriesOf(run, 'result', id).length)).toEqual([2, 3, 4]);
  });

  test('read lines of conversations, lines of messages and an object like a list', async () => {
    const list = await importAll('openai-chat/object.json');
    const rows = await importAll('openai-chat/rows.jsonl');
    const [first = ''] = entriesOf(rows, 'session').map(({ native_id }) => native_id);
    expect(entriesOf(rows, 'result', first).map(({ text }) => text)).toEqual(
      entriesOf(list, 'result').map(({ text }) => text),
    );
    expect(lossesOf(rows)).toContain('unknown-record line 3');
    expect(entriesOf(await importAll('openai-chat/messages.jsonl'), 'session')).toHaveLength(1);
  });

  test('report odd messages without a crash', async () => {
    const text = JSON.stringify([
      { role: 'user', content: 'hi' },
      3,
      { role: 'robot', content: 4 },
      { role: 'assistant', tool_calls: [null, { function: 5 }] },
      { role: 'tool', tool_call_id: 7 },
    ]);
    const run = await importAll(bytesSource(text));
    expect(entriesOf(run, 'session')).toHaveLength(1);
    expect(run.losses.map(({ reason }) => reason)).toEqual([
      'malformed-record',
      'unknown-record',
      'unknown-block',
      'malformed-record',
      'malformed-record',
      'malformed-record',
      'orphan-result',
      'missing-result',
    ]);
  });
});

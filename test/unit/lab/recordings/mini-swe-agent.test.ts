import { describe, expect, test } from '@jest/globals';
import { fencedCommand } from '../../../../src/lab/recordings/swe-agent/mini-swe-agent.js';
import { bytesSource, entriesOf, importAll, lossesOf } from '../../../support/recordings.js';

describe('mini-swe-agent with calls', () => {
  test('assigns results to parallel calls by id, in any order', async () => {
    const run = await importAll('mini-swe-agent/calls.traj.json');
    const results = entriesOf(run, 'result');
    expect(results.slice(0, 2).map(({ call_id }) => call_id)).toEqual(['call_2', 'call_1']);
    expect(results[1]?.text).toContain('README.md');
  });

  test('reports model, folder and prompt, and uses the clock of the recording', async () => {
    const run = await importAll('mini-swe-agent/calls.traj.json');
    expect(entriesOf(run, 'session')).toEqual([
      expect.objectContaining({
        model: 'test/model',
        cwd: '/home/dev/till',
        agent_version: '2.0.0',
        system_prompt: expect.stringContaining('helpful'),
      }),
    ]);
    expect(entriesOf(run, 'message')[0]?.at).toBe(1_756_100_003_500);
  });

  test('keeps a cut result as the model saw it, with the raw output as evidence of the whole file', async () => {
    const cut = entriesOf(await importAll('mini-swe-agent/calls.traj.json'), 'result').find(
      ({ truncated }) => truncated === true,
    );
    expect(cut?.text).toContain('<elided_chars>');
    expect(cut?.files).toEqual([expect.objectContaining({ path: 'till/receipt.py', whole: true })]);
    expect(cut?.files?.[0]?.text).toContain('def row_20(');
    expect(cut?.text).not.toContain('def row_20(');
  });

  test('treats printed lines as a part of the file, with the number of its first line', async () => {
    const files = entriesOf(await importAll('mini-swe-agent/calls.traj.json'), 'result').flatMap(
      ({ files: shown }) => shown ?? [],
    );
    expect(files[2]).toMatchObject({ path: 'till/receipt.py', whole: false, start_line: 5 });
  });

  test('treats a failed command as an error, and reports unparsable and unanswered calls', async () => {
    const run = await importAll('mini-swe-agent/calls.traj.json');
    expect(
      entriesOf(run, 'result')
        .filter(({ is_error }) => is_error)
        .map(({ call_id }) => call_id),
    ).toEqual(['call_5']);
    expect(lossesOf(run)).toEqual([
      'unparsed-arguments messages[15].tool_calls[0]',
      'missing-result messages[15].tool_calls[0]',
      'missing-result messages[17].tool_calls[0]',
    ]);
    expect(entriesOf(run, 'event')).toEqual([
      expect.objectContaining({ name: 'exit', text: expect.stringMatching(/^Submitted\ndiff/) }),
    ]);
  });

  test("attaches an answer's tokens and thoughts to its message", async () => {
    const [first] = entriesOf(await importAll('mini-swe-agent/calls.traj.json'), 'message').filter(
      ({ role }) => role === 'assistant',
    );
    expect(first).toMatchObject({
      usage: { input: 1020, output: 40, total: 1060, cache_read: 800 },
      thinking: expect.stringContaining('About'),
    });
  });
});

describe('mini-swe-agent with commands in text', () => {
  test('reads the only fenced block as the call and the next message as its result', async () => {
    const run = await importAll('mini-swe-agent/text-blocks.traj.json');
    expect(entriesOf(run, 'call')).toHaveLength(7);
    expect(entriesOf(run, 'result').map(({ call_id, place }) => [call_id, place])[0]).toEqual([
      'messages[2]',
      'messages[3]',
    ]);
    expect(run.losses).toEqual([]);
  });

  test('reads two blocks as no call and the next message as the program’s', async () => {
    const run = await importAll('mini-swe-agent/text-blocks.traj.json');
    expect(entriesOf(run, 'message').filter(({ origin }) => origin === 'harness')).toEqual([
      expect.objectContaining({ text: expect.stringContaining('EXACTLY ONE') }),
    ]);
    expect(fencedCommand('```bash\na\n```\n```bash\nb\n```')).toBeUndefined();
    expect(fencedCommand('```python\na\n```')).toBeUndefined();
    expect(fencedCommand('say\n```mswea_bash_command\ncat <<EOF\nx\nEOF\n```\nend')).toBe('cat <<EOF\nx\nEOF');
  });

  test('puts actions beside the text before the text', async () => {
    const run = await importAll(
      bytesSource(
        JSON.stringify({
          trajectory_format: 'mini-swe-agent-1.1',
          messages: [
            { role: 'user', content: 'T' },
            { role: 'assistant', content: 'I do it', extra: { actions: [{ command: 'ls' }] } },
            { role: 'user', content: 'a.py', extra: { raw_output: 'a.py', returncode: 0 } },
            { role: 'wizard', content: 5 },
            7,
          ],
        }),
      ),
    );
    expect(entriesOf(run, 'call')).toEqual([expect.objectContaining({ tool: 'bash', args: { command: 'ls' } })]);
    expect(entriesOf(run, 'result')).toHaveLength(1);
    expect(run.losses.map(({ reason }) => reason)).toEqual(['unknown-block', 'unknown-record', 'malformed-record']);
  });
});

describe('mini-swe-agent with a model behind the Responses interface', () => {
  const answer = (...output: readonly object[]): object => ({
    object: 'response',
    output,
    usage: { input_tokens: 40, output_tokens: 6, input_tokens_details: { cached_tokens: 30 } },
    extra: { actions: [{ command: 'cat a.py', tool_call_id: 'c1' }] },
  });
  const run = async (...messages: readonly object[]) =>
    importAll(
      bytesSource(
        JSON.stringify({ info: { exit_status: 'Submitted' }, messages, trajectory_format: 'mini-swe-agent-1.1' }),
      ),
    );

  test('gives an answer its text, thoughts, tokens and calls, and each call its output', async () => {
    const found = await run(
      { role: 'user', content: 'task' },
      answer(
        { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Read it.' }] },
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'look' }] },
        { type: 'function_call', call_id: 'c1', name: 'bash', arguments: '{"command":"cat a.py"}' },
      ),
      {
        type: 'function_call_output',
        call_id: 'c1',
        output: '<returncode>0</returncode>\n<output>print(1)\n</output>',
        extra: { raw_output: 'print(1)\n', returncode: 0 },
      },
    );
    expect(found.losses).toEqual([]);
    expect(entriesOf(found, 'message')[1]).toMatchObject({
      role: 'assistant',
      text: 'look',
      thinking: 'Read it.',
      usage: { input: 40, cache_read: 30 },
    });
    expect(entriesOf(found, 'call')).toMatchObject([{ call_id: 'c1', tool: 'bash', args: { command: 'cat a.py' } }]);
    expect(entriesOf(found, 'result')).toMatchObject([
      {
        call_id: 'c1',
        text: expect.stringContaining('print(1)'),
        files: [{ path: 'a.py', whole: true, text: 'print(1)\n' }],
      },
    ]);
  });

  test('reports an unknown item and an empty record as losses without empty messages', async () => {
    const found = await run({ role: 'user', content: 'task' }, answer({ type: 'computer_call' }), {
      object: 'note',
      id: 'x',
    });
    expect(lossesOf(found)).toEqual([
      'unknown-block messages[1].output[0]',
      'unknown-record messages[2]',
      'missing-result messages[1].extra.actions[0]',
    ]);
    expect(entriesOf(found, 'message')).toHaveLength(2);
  });
});

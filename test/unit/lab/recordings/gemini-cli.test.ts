import { describe, expect, test } from '@jest/globals';
import { bytesSource, entriesOf, importAll, linesOf, lossesOf } from '../../../support/recordings.js';

const ROOT = '/home/dev/till';

describe('Gemini CLI, one object', () => {
  test('splits a call with its result into two entries', async () => {
    const run = await importAll('gemini-cli/session.json');
    expect(
      run.entries
        .filter(({ kind }) => kind === 'call' || kind === 'result')
        .slice(0, 4)
        .map(({ kind }) => kind),
    ).toEqual(['call', 'call', 'result', 'result']);
    expect(entriesOf(run, 'result')).toHaveLength(9);
    expect(lossesOf(run)).toEqual(['missing-result messages[7].toolCalls[1]']);
  });

  test('reads evidence from results: listing, whole file, part, several files, change, printed file', async () => {
    const results = entriesOf(await importAll('gemini-cli/session.json'), 'result');
    expect(results[0]?.listed).toEqual([`${ROOT}/tests/`, `${ROOT}/till/`, `${ROOT}/README.md`]);
    expect(results[1]?.files).toEqual([expect.objectContaining({ path: `${ROOT}/till/price.py`, whole: true })]);
    expect(results[2]).toMatchObject({
      truncated: true,
      files: [{ path: `${ROOT}/till/receipt.py`, whole: false, start_line: 40, total_lines: 197 }],
    });
    expect(results[2]?.files?.[0]?.text).not.toContain('IMPORTANT');
    expect(results[3]?.files?.map(({ path, text }) => [path, text?.endsWith(')\n') || text?.endsWith('"\n')])).toEqual([
      [`${ROOT}/till/price.py`, true],
      [`${ROOT}/till/receipt.py`, true],
    ]);
    expect(results[5]?.files?.map(({ moment, whole }) => [moment, whole])).toEqual([
      ['before', true],
      ['after', true],
    ]);
    expect(results[6]?.files).toEqual([expect.objectContaining({ path: 'till/price.py', whole: true })]);
  });

  test('treats errors, cancelled calls and failed commands as failed results', async () => {
    const failed = entriesOf(await importAll('gemini-cli/session.json'), 'result').filter(({ is_error }) => is_error);
    expect(failed.map(({ call_id }) => call_id)).toEqual(['rp-1', 'sh-2', 'sh-3']);
    expect(failed[2]?.text).toContain('[Operation Cancelled]');
  });

  test('imports a file attached to the prompt as an event with its text', async () => {
    const attached = entriesOf(await importAll('gemini-cli/session.json'), 'event').find(
      ({ name }) => name === 'file-attached',
    );
    expect(attached?.files).toEqual([
      { path: 'README.md', moment: 'before', text: '# till\n\nA small till.', whole: true },
    ]);
  });

  test('attaches tokens and thoughts to the answer; notes and model changes are events', async () => {
    const run = await importAll('gemini-cli/session.json');
    const [answer] = entriesOf(run, 'message').filter(({ role }) => role === 'assistant');
    expect(answer).toMatchObject({
      usage: { output: 30, cache_read: 8000 },
      thinking: expect.stringMatching(/^Plan\nStep/),
    });
    expect(entriesOf(run, 'event').map(({ name }) => name)).toEqual([
      'file-attached',
      'info',
      'model-change',
      'model-change',
    ]);
  });
});

describe('Gemini CLI, JSON lines', () => {
  test('imports a rewritten message once, in its last form', async () => {
    const run = await importAll('gemini-cli/session.jsonl');
    const ids = entriesOf(run, 'call').map(({ call_id }) => call_id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toEqual(['ls-1', 'rd-1', 'rd-2', 'rm-1', 'rp-1', 'rp-2', 'fc-1']);
    expect(entriesOf(run, 'result')).toHaveLength(7);
  });

  test('keeps a result that only a later version of its message has', async () => {
    const early = { id: 'g', type: 'gemini', content: 'x', toolCalls: [{ id: 'c', name: 'glob', args: {} }] };
    const late = {
      ...early,
      toolCalls: [
        { id: 'c', name: 'glob', args: {}, result: [{ functionResponse: { id: 'c', response: { output: 'none' } } }] },
      ],
    };
    const run = await importAll(
      bytesSource(linesOf({ sessionId: 's', projectHash: 'p' }, early, { id: 'u', type: 'user', content: 'y' }, late)),
    );
    expect(run.entries.map(({ kind }) => kind)).toEqual(['session', 'message', 'call', 'message', 'result']);
  });

  test('imports a rewind as an event, a replaced context as a compaction, and its copied messages once', async () => {
    const run = await importAll('gemini-cli/session.jsonl');
    expect(entriesOf(run, 'event').map(({ name, text }) => [name, name === 'rewind' ? text : ''])).toEqual([
      ['rewind', 'r1'],
      ['info', ''],
    ]);
    const [compaction] = entriesOf(run, 'compaction');
    expect(compaction).toMatchObject({ summary: '<state_snapshot>The discount is rounded.</state_snapshot>' });
    expect(compaction?.dropped).not.toContain('r1');
    expect(compaction?.dropped).toContain('m1');
    expect(entriesOf(run, 'message').filter(({ text }) => text === 'With the spaces.')).toHaveLength(1);
  });

  test('reads calls and results from message parts; thoughts are not text', async () => {
    const run = await importAll('gemini-cli/session.jsonl');
    const said = entriesOf(run, 'message').find(({ native_id }) => native_id === 'm20');
    expect(said).toMatchObject({ text: 'I test it.', thinking: 'Hidden.' });
    expect(entriesOf(run, 'result').find(({ call_id }) => call_id === 'fc-1')?.text).toContain('1 passed');
    expect(lossesOf(run)).toContain('unknown-record line 16');
    expect(entriesOf(run, 'session')[0]?.cwd).toBe(ROOT);
    expect(entriesOf(run, 'message')[0]?.origin).toBe('harness');
  });

  test('handles an empty session and records of unknown kinds', async () => {
    const run = await importAll(
      bytesSource(
        linesOf(
          { sessionId: 's', projectHash: 'p' },
          { weather: 'fine' },
          { id: 'm', type: 'gemini', content: 5, toolCalls: [7] },
        ),
      ),
    );
    expect(entriesOf(run, 'session')).toHaveLength(1);
    expect(run.losses.map(({ reason }) => reason)).toEqual(['unknown-record', 'unknown-block', 'malformed-record']);
  });
});

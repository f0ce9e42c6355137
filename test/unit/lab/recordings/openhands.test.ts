import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { openRecording } from '../../../../src/lab/recordings/open-recording.js';
import { bytesSource, entriesOf, importAll, linesOf, lossesOf } from '../../../support/recordings.js';
import { withTemporaryFolder } from '../../../support/temporary-folder.js';

const ROOT = '/home/dev/till';

describe('OpenHands legacy, rows of an evaluation', () => {
  test('makes each row a session; a repeated instance gets its line', async () => {
    const run = await importAll('openhands-legacy/rows.jsonl');
    expect(entriesOf(run, 'session').map(({ native_id }) => native_id)).toEqual([
      'till__till-1',
      'till__till-2',
      'till__till-1-3',
    ]);
    expect(entriesOf(run, 'session')[0]?.model).toBe('test/model');
    expect(entriesOf(run, 'message', 'till__till-1-3')).toEqual([
      expect.objectContaining({ origin: 'person', text: expect.stringContaining('(again)') }),
    ]);
  });

  test('matches flattened events by order; the last call has no result', async () => {
    const run = await importAll('openhands-legacy/rows.jsonl');
    const calls = entriesOf(run, 'call', 'till__till-1');
    expect(entriesOf(run, 'result', 'till__till-1').map(({ call_id }) => call_id)).toEqual(
      calls.slice(0, -1).map(({ call_id }) => call_id),
    );
    expect(calls.at(-1)).toMatchObject({ tool: 'finish' });
    expect(lossesOf(run)).toEqual(['missing-result line 1.history[15]', 'missing-result line 2.history[4][0]']);
    expect(calls[0]?.args).toEqual({ command: 'ls -R till tests' });
  });

  test('takes cell windows and printed files as evidence, and a failed edit as an error', async () => {
    const results = entriesOf(await importAll('openhands-legacy/rows.jsonl'), 'result', 'till__till-1');
    expect(
      results.map(({ is_error, files }) => [
        is_error,
        files?.[0]?.path.slice(ROOT.length + 1) ?? files?.[0]?.path,
        files?.[0]?.whole,
      ]),
    ).toEqual([
      [false, undefined, undefined],
      [false, 'till/price.py', true],
      [false, 'till/receipt.py', false],
      [true, undefined, undefined],
      [false, 'till/price.py', true],
      [false, '', true],
      [true, undefined, undefined],
    ]);
    expect(results[5]?.files?.[0]).toMatchObject({
      path: 'till/price.py',
      text: expect.stringMatching(/^"""Prices[^\r]*\n$/s),
    });
  });

  test('reads pairs of an action and its observation', async () => {
    const run = await importAll('openhands-legacy/rows.jsonl');
    expect(entriesOf(run, 'call', 'till__till-2').map(({ tool }) => tool)).toEqual([
      'read',
      'write',
      'browse',
      'finish',
    ]);
    expect(entriesOf(run, 'result', 'till__till-2').map(({ is_error }) => is_error)).toEqual([false, false, true]);
    expect(entriesOf(run, 'result', 'till__till-2')[0]?.files).toEqual([
      expect.objectContaining({ path: `${ROOT}/till/price.py`, whole: true }),
    ]);
    expect(entriesOf(run, 'event', 'till__till-2').map(({ name }) => name)).toContain('error');
  });
});

describe('OpenHands legacy, a stream of events', () => {
  test('matches observations to the action that caused them', async () => {
    const run = await importAll('openhands-legacy/events.json');
    const results = entriesOf(run, 'result');
    expect(results.map(({ call_id }) => call_id).slice(0, 3)).toEqual(['call_2', 'call_1', 'call_3']);
    expect(results[1]?.listed).toEqual([
      `${ROOT}/`,
      `${ROOT}/tests/`,
      `${ROOT}/till/`,
      `${ROOT}/till/price.py`,
      `${ROOT}/till/receipt.py`,
    ]);
    expect(entriesOf(run, 'call')[0]).toMatchObject({
      tool: 'str_replace_editor',
      args: { command: 'view', path: ROOT },
    });
  });

  test('reads times without a zone equally on every machine', async () => {
    expect(entriesOf(await importAll('openhands-legacy/events.json'), 'message')[0]?.at).toBe(
      Date.parse('2025-03-04T09:00:08.000Z'),
    );
  });

  test('counts the tokens of one answer with two calls once', async () => {
    const counted = entriesOf(await importAll('openhands-legacy/events.json'), 'message').filter(
      ({ usage }) => usage !== undefined,
    );
    expect(counted).toHaveLength(6);
    expect(counted[0]?.usage).toEqual({ input: 1200, output: 60, total: 1260 });
  });

  test('shows the file before and after a change, and only the lines of a part', async () => {
    const results = entriesOf(await importAll('openhands-legacy/events.json'), 'result');
    expect(
      results.find(({ call_id }) => call_id === 'call_5')?.files?.map(({ moment, whole }) => [moment, whole]),
    ).toEqual([
      ['before', true],
      ['after', true],
    ]);
    expect(results.find(({ call_id }) => call_id === 'call_3')?.files).toEqual([
      expect.objectContaining({ start_line: 60, whole: false }),
    ]);
  });

  test('names the events that a condensation removes from the context', async () => {
    expect(entriesOf(await importAll('openhands-legacy/events.json'), 'compaction')).toEqual([
      expect.objectContaining({ dropped: ['4', '5', '6', '7'], summary: 'The folder and the module were read.' }),
    ]);
  });

  test('treats a rejected command and an editor error as failed results; keeps the prompt and pictures', async () => {
    const run = await importAll('openhands-legacy/events.json');
    expect(
      entriesOf(run, 'result')
        .filter(({ is_error }) => is_error)
        .map(({ call_id }) => call_id),
    ).toEqual(['call_4', 'call_7']);
    expect(entriesOf(run, 'session')[0]?.system_prompt).toBe('You are OpenHands agent.');
    expect(entriesOf(run, 'message')[0]?.text).toMatch(/\n\[image image\/png 5 bytes\]$/);
    expect(entriesOf(run, 'call').at(-1)?.cwd).toBe(`${ROOT}/tests`);
  });

  test('reads a folder of numbered events in numeric order', async () => {
    await withTemporaryFolder(async (folder) => {
      await mkdir(join(folder, 'events'));
      for (let id = 0; id < 12; id += 1) {
        const event = { id, source: 'user', action: 'message', args: { content: `m${id}` } };
        await writeFile(join(folder, 'events', `${id}.json`), JSON.stringify(event));
      }
      await writeFile(join(folder, 'events', '12.json'), '{"id":12,"sour');
      await writeFile(join(folder, 'notes.txt'), 'x');
      const run = await importAll(await openRecording(folder));
      expect(entriesOf(run, 'message').map(({ text }) => text)).toEqual(
        Array.from({ length: 12 }, (_, id) => `m${id}`),
      );
      expect(lossesOf(run)).toEqual(['unknown-record notes.txt', 'truncated-file events/12.json']);
    });
  });

  test('reads a list in several lines, events as lines, and odd events', async () => {
    const row = JSON.stringify(
      { instance_id: 'a', history: [{ action: 'message', content: 'T' }, [[]], 'x', { weather: 'fine' }] },
      null,
      2,
    );
    const run = await importAll(bytesSource(row));
    expect(entriesOf(run, 'message').map(({ text }) => text)).toEqual(['T']);
    expect(run.losses.map(({ reason }) => reason)).toEqual(['malformed-record', 'unknown-record']);
    const stream = await importAll(
      bytesSource(
        linesOf(
          { id: 0, source: 'user', action: 'message', args: { content: 'T' } },
          { id: 1, source: 'agent', action: 'run', args: { command: 'ls' } },
        ),
      ),
    );
    expect(entriesOf(stream, 'call')).toEqual([expect.objectContaining({ tool: 'run', native_id: '1', call_id: '1' })]);
  });
});

describe.each(['openhands-sdk/folder', 'openhands-sdk/events.jsonl'])('OpenHands SDK, %s', (name) => {
  test('assigns results to the parallel calls of one answer by action', async () => {
    const run = await importAll(name);
    expect(
      entriesOf(run, 'result')
        .map(({ call_id }) => call_id)
        .slice(0, 2),
    ).toEqual(['toolu_2', 'toolu_1']);
    expect(entriesOf(run, 'result')[1]?.files).toEqual([
      expect.objectContaining({ path: `${ROOT}/till/price.py`, whole: true, total_lines: 15 }),
    ]);
  });

  test('drops the events that a condensation names', async () => {
    const run = await importAll(name);
    const [condensed] = entriesOf(run, 'compaction');
    expect(condensed).toMatchObject({ summary: 'Both modules were read.' });
    const ids = new Set(run.entries.flatMap((entry) => (entry.kind === 'session' ? [] : (entry.native_id ?? []))));
    expect(condensed?.dropped).toHaveLength(4);
    expect(condensed?.dropped?.every((id) => ids.has(id))).toBe(true);
  });

  test('treats rejected calls, agent errors and failed commands as failed results', async () => {
    const run = await importAll(name);
    expect(
      entriesOf(run, 'result')
        .filter(({ is_error }) => is_error)
        .map(({ call_id, text }) => [call_id, text.split('\n')[0]]),
    ).toEqual([
      ['toolu_3', expect.stringContaining('No replacement')],
      ['toolu_6', expect.stringContaining('F')],
      ['toolu_7', 'Keep the tests.'],
      ['toolu_8', "Tool 'file_editr' not found."],
    ]);
    expect(run.losses.map(({ reason }) => reason)).toEqual(['unparsed-arguments', 'unknown-record', 'missing-result']);
  });

  test('shows the model the additions of skills and the end of a command', async () => {
    const run = await importAll(name);
    expect(entriesOf(run, 'message')[0]?.text).toMatch(/<EXTRA_INFO>use pytest<\/EXTRA_INFO>$/);
    const shown = entriesOf(run, 'result').find(({ call_id }) => call_id === 'toolu_5');
    expect(shown?.text).toMatch(/\[The command completed with exit code 0\.\]$/);
    expect(shown?.files?.[0]?.text).toMatch(/^"""Prices.*\n$/s);
    expect(entriesOf(run, 'session')[0]?.system_prompt).toBe('You are OpenHands agent.\n<CONTEXT>till</CONTEXT>');
  });
});

test('reads id, model and place from the folder of an OpenHands conversation', async () => {
  const [session] = entriesOf(await importAll('openhands-sdk/folder'), 'session');
  expect(session).toMatchObject({ native_id: '11111111-2222-4333-8444-555555555555', model: 'test/model', cwd: ROOT });
});

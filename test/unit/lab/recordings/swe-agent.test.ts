import { describe, expect, test } from '@jest/globals';
import { textCommand } from '../../../../src/lab/recordings/swe-agent/command.js';
import { bytesSource, entriesOf, importAll, lossesOf } from '../../../support/recordings.js';

const ROOT = '/home/dev/till';

describe('SWE-agent with commands as text', () => {
  test('makes each action a call, the last one without a result', async () => {
    const run = await importAll('swe-agent/commands-as-text.traj');
    expect(entriesOf(run, 'call').map(({ tool }) => tool)).toEqual([
      'find_file',
      'open',
      'edit',
      'edit',
      'open',
      'scroll_down',
      'bash',
      'create',
      'edit',
      'bash',
      'submit',
    ]);
    expect(entriesOf(run, 'result')).toHaveLength(10);
    expect(lossesOf(run)).toEqual(['missing-result history[23]']);
    expect(entriesOf(run, 'event')).toEqual([expect.objectContaining({ name: 'exit', text: 'submitted' })]);
  });

  test('has its own prompt and folder, not those of the injected demonstration', async () => {
    const run = await importAll('swe-agent/commands-as-text.traj');
    expect(entriesOf(run, 'session')).toEqual([
      expect.objectContaining({ format: 'swe-agent', cwd: ROOT, system_prompt: expect.stringContaining('SETTING') }),
    ]);
    expect(
      entriesOf(run, 'message')
        .slice(0, 2)
        .map(({ role, origin }) => [role, origin]),
    ).toEqual([
      ['user', 'harness'],
      ['user', 'person'],
    ]);
  });

  test('shows a shortened observation as the model saw it', async () => {
    const run = await importAll('swe-agent/commands-as-text.traj');
    expect(entriesOf(run, 'result')[0]?.text).toBe(`Found 1 matches for "price.py" in ${ROOT}:\n${ROOT}/till/price.py`);
  });

  test('takes windows as evidence: whole files, parts, the unchanged file of a failed edit', async () => {
    const shown = entriesOf(await importAll('swe-agent/commands-as-text.traj'), 'result').map(({ is_error, files }) => [
      is_error,
      ...(files ?? []).map(
        ({ path, moment, whole, start_line }) =>
          `${path.slice(ROOT.length + 1)} ${moment} ${whole ? 'whole' : `from ${start_line}`}`,
      ),
    ]);
    expect(shown).toEqual([
      [false],
      [false, 'till/price.py after whole'],
      [true, 'till/price.py before from 6'],
      [false, 'till/price.py after whole'],
      [false, 'till/receipt.py after from 70'],
      [false, 'till/receipt.py after from 98'],
      [false],
      [false, 'tests/test_price.py after whole'],
      [false, 'tests/test_price.py after whole'],
      [false],
    ]);
  });

  test('knows the folder that the previous call went to', async () => {
    const calls = entriesOf(await importAll('swe-agent/commands-as-text.traj'), 'call');
    expect(calls.map(({ cwd }) => cwd).slice(6)).toEqual([
      undefined,
      `${ROOT}/tests`,
      `${ROOT}/tests`,
      `${ROOT}/tests`,
      `${ROOT}/tests`,
    ]);
  });

  test.each([
    ['open "a b.py" 12\n', 'open', { path: 'a b.py', line_number: 12 }],
    ['goto 40', 'goto', { line_number: 40 }],
    ['edit 3:4\n  x\n\ny\nend_of_edit\n', 'edit', { start_line: 3, end_line: 4, replacement_text: '  x\n\ny' }],
    ["edit 'a' 'b'", 'edit', { search: 'a', replace: 'b' }],
    ['search_dir "two words" src', 'search_dir', { search_term: 'two words', dir: 'src' }],
    [
      'str_replace_editor view /a.py --view_range 1 9',
      'str_replace_editor',
      { command: 'view', path: '/a.py', view_range: [1, 9] },
    ],
    [
      "str_replace_editor insert /a.py --insert_line 4 --new_str 'it''s'",
      'str_replace_editor',
      { command: 'insert', path: '/a.py', insert_line: 4, new_str: 'its' },
    ],
    ['open', 'bash', { command: 'open' }],
    ['create a.py && ls', 'bash', { command: 'create a.py && ls' }],
    ['constructor', 'bash', { command: 'constructor' }],
  ])('reads %j as a call of %s', (action, tool, args) => {
    expect(textCommand(action)).toEqual({ tool, args });
  });
});

describe('SWE-agent with calls', () => {
  test('makes a repeated call id unique and reports it', async () => {
    const run = await importAll('swe-agent/calls.traj');
    expect(entriesOf(run, 'call').map(({ call_id }) => call_id)).toContain('call_a4~2');
    expect(entriesOf(run, 'result').find(({ call_id }) => call_id === 'call_a4~2')?.text).toContain('has been edited');
    expect(lossesOf(run)).toEqual([
      'duplicate-id history[11].tool_calls[0]',
      'unparsed-arguments history[19].tool_calls[0]',
      'missing-result history[19].tool_calls[0]',
    ]);
    expect(entriesOf(run, 'call').at(-1)?.args).toEqual({ input: '{broken' });
  });

  test('skips the prompts that each step repeats', async () => {
    const run = await importAll('swe-agent/calls.traj');
    expect(entriesOf(run, 'message').filter(({ text }) => text.includes('half cent'))).toHaveLength(1);
  });

  test('reads files and lists from the editor, and marks a cut observation', async () => {
    const results = entriesOf(await importAll('swe-agent/calls.traj'), 'result');
    expect(results[0]?.listed).toEqual([`${ROOT}/till/price.py`, `${ROOT}/till/receipt.py`]);
    expect(results[1]?.files).toEqual([
      expect.objectContaining({ path: `${ROOT}/till/price.py`, whole: true, total_lines: 15 }),
    ]);
    expect(results[2]?.files).toEqual([expect.objectContaining({ whole: false, start_line: 1 })]);
    expect(results[3]?.is_error).toBe(true);
    expect(results[6]?.truncated).toBe(true);
  });

  test('keeps thoughts beside the text', async () => {
    const [first] = entriesOf(await importAll('swe-agent/calls.traj'), 'message').filter(
      ({ origin }) => origin === 'model',
    );
    expect(first?.thinking).toBe('Thinking about str_replace_editor.');
  });
});

describe('SWE-agent with incomplete data', () => {
  test('needs only a history; the open file after the prompt completes a path', async () => {
    const run = await importAll('swe-agent/history-only.traj');
    expect(entriesOf(run, 'result').map(({ files }) => files?.[0]?.path)).toEqual([
      `${ROOT}/till/price.py`,
      `${ROOT}/till/price.py`,
    ]);
    expect(entriesOf(run, 'result')[0]?.files?.[0]).toMatchObject({ whole: true, total_lines: 15 });
  });

  test('needs only a trajectory: the prompts of its first step, then step by step', async () => {
    const run = await importAll('swe-agent/trajectory-only.traj');
    expect(entriesOf(run, 'session')[0]?.system_prompt).toContain('helpful assistant');
    expect(entriesOf(run, 'result')).toHaveLength(5);
    expect(entriesOf(run, 'call').map(({ place }) => place)).toEqual([0, 1, 2, 3, 4].map((n) => `trajectory[${n}]`));
  });

  test('continues with the steps if the history is torn', async () => {
    const steps = Array.from({ length: 6 }, (_, n) => ({
      action: `ls ${n}`,
      observation: `file${n}`,
      response: `step ${n}`,
      state: '{}',
    }));
    const history = steps.flatMap(({ action, observation, response }) => [
      { role: 'assistant', content: response, action, agent: 'a' },
      { role: 'user', content: observation, agent: 'a' },
    ]);
    const text = JSON.stringify({
      trajectory: steps,
      history: [{ role: 'system', content: 'S', agent: 'a' }, { role: 'user', content: 'T', agent: 'a' }, ...history],
    });
    const run = await importAll(bytesSource(text.slice(0, text.lastIndexOf('"file2"') - 30)));
    expect(entriesOf(run, 'result').map(({ text: seen }) => seen)).toEqual(steps.map(({ observation }) => observation));
    expect(run.losses.map(({ reason }) => reason)).toEqual(['truncated-file']);
  });

  test('reports numbers and nulls in place of texts without a crash', async () => {
    const text = JSON.stringify({
      trajectory: [{ action: 'ls', observation: 7, state: 'no json' }, 5],
      history: [
        null,
        { role: 9, content: 8, agent: 'a' },
        { role: 'assistant', content: 'x', action: 4, agent: 'a', tool_calls: ['no', { id: 3 }] },
        'text',
        { role: 'tool', content: null },
      ],
    });
    const run = await importAll(bytesSource(text));
    expect(entriesOf(run, 'call')).toEqual([expect.objectContaining({ call_id: '3', tool: 'unknown' })]);
    expect(run.losses.filter(({ reason }) => reason === 'malformed-record').length).toBeGreaterThanOrEqual(2);
  });
});

import { beforeAll, describe, expect, test } from '@jest/globals';
import { entriesOf, type Imported, importAll, lossesOf } from '../../../support/recordings.js';

describe('a session of pi', () => {
  let found: Imported;
  beforeAll(async () => {
    found = await importAll('pi/coding.jsonl');
  });

  test('imports without a loss', () => {
    expect(found.losses).toEqual([]);
    expect(entriesOf(found, 'session')).toMatchObject([
      { format: 'pi', cwd: '/home/mira/shelf', native_id: '0c9d5e7e-8b53-4f5f-9d7d-1d6f6a3f0001' },
    ]);
  });

  test('makes an answer a message with its tokens, followed by its calls', () => {
    const at = found.entries.findIndex(({ kind }) => kind === 'call');
    expect(found.entries[at - 1]).toMatchObject({
      kind: 'message',
      text: 'I look at the code.',
      thinking: 'The check digit first.',
      usage: { total: 3250 },
    });
    expect(found.entries[at]).toMatchObject({ call_id: 'pc1', tool: 'bash', args: { command: 'ls -R src test' } });
  });

  test('shows the file of a read, and a part without the note after it', () => {
    const [, part, whole] = entriesOf(found, 'result');
    expect(part).toMatchObject({ call_id: 'pc3', files: [{ path: 'src/shelf.ts', whole: false, start_line: 9 }] });
    expect(part?.text).toContain('Use offset=17 to continue');
    expect(part?.files?.[0]?.text).not.toContain('Use offset');
    expect(whole).toMatchObject({ call_id: 'pc2', files: [{ path: 'src/isbn.ts', whole: true, start_line: 1 }] });
  });

  test('reads a step back in the tree as a rewind to its target; the abandoned part stays', () => {
    const rewinds = entriesOf(found, 'event').filter(({ name }) => name === 'rewind');
    const answer = entriesOf(found, 'message').find(({ text }) => text.startsWith('The weights were'));
    expect(rewinds).toMatchObject([
      {
        parent_id: answer?.native_id,
        text: entriesOf(found, 'message').find(({ text }) => text === 'Gone.')?.native_id,
      },
    ]);
    expect(entriesOf(found, 'call').some(({ call_id }) => call_id === 'pc8')).toBe(true);
    expect(entriesOf(found, 'message').find(({ name }) => name === 'branch_summary')).toMatchObject({
      origin: 'harness',
    });
  });

  test('imports a command of the person as the model sees it', () => {
    expect(entriesOf(found, 'message').at(-1)).toMatchObject({
      origin: 'person',
      text: 'Ran `git diff --stat`\n```\n 2 files changed\n\n```',
    });
  });
});

describe('the first version of pi', () => {
  let found: Imported;
  beforeAll(async () => {
    found = await importAll('pi/list.jsonl');
  });

  test('reports every loss with its line', () => {
    expect(lossesOf(found)).toEqual([
      'clock-backwards line 21',
      'orphan-result line 21',
      'unknown-record line 22',
      'unknown-record line 24',
      'opaque-content line 21',
      'missing-result line 19',
      'missing-result line 19',
    ]);
  });

  test('gives entries without ids one by place; a compaction names the first that stays', () => {
    const [compaction] = entriesOf(found, 'compaction');
    expect(compaction).toMatchObject({
      summary: 'The weights are 1 and 3 now.',
      tokens_before: 151_000,
      kept_from: 'entry-13',
    });
    expect(entriesOf(found, 'call').find(({ native_id }) => native_id === 'entry-13')).toMatchObject({
      call_id: 'pc7',
    });
  });

  test('marks entries copied from the forked session by their times', () => {
    expect(entriesOf(found, 'session')[0]?.parent).toEqual({
      native_id: '0c9d5e7e-8b53-4f5f-9d7d-1d6f6a3f0000',
      relation: 'fork',
    });
    expect(
      entriesOf(found, 'call')
        .map(({ call_id, copied }) => [call_id, copied === true])
        .slice(-3),
    ).toEqual([
      ['pc7', true],
      ['qc1', false],
      ['qc2', false],
    ]);
  });

  test('reports a stopped answer', () => {
    expect(entriesOf(found, 'event').filter(({ name }) => name === 'aborted')).toMatchObject([
      { text: 'Request was aborted.' },
    ]);
  });
});

import { describe, expect, test } from '@jest/globals';
import { cellsOf } from '../../../../src/cli/fitted-table.js';
import { coloursFor, columns } from '../../../../src/cli/output.js';
import { ranges, turnSpans } from '../../../../src/history/rebuild/turn-spans.js';
import { objectId, sessionId } from '../../../../src/objects/ids.js';
import type { Step } from '../../../../src/objects/step.js';
import type { LoggedTurn } from '../../../../src/review/ask/logged-turn.js';
import { versionLines } from '../../../../src/review/cli/log.js';
import { shortName } from '../../../../src/review/cli/object-names.js';
import { turnLines } from '../../../../src/review/cli/turn-lines.js';

const plain = coloursFor({ isTerminal: false, env: {} });
const at = (second: number): Date => new Date(Date.UTC(2026, 0, 1, 0, 0, second));
const nothing = { index: [], activate: [], deactivate: [], pin: [], unpin: [] };

const turn: LoggedTurn = {
  person: [
    { seq: 4, at: at(2), undoes: 2, changes: { activate: [], deactivate: [objectId('c1')], pin: [], unpin: [] } },
  ],
  session: sessionId('s1'),
  turn: 2,
  rule: 'user-message',
  ref: undefined,
  firstStep: 3,
  lastStep: 4,
  from: at(1),
  to: at(2),
  known: { validTime: at(2), txTime: at(9), txId: 17 },
  messages: [{ seq: 3, role: 'user', text: 'first line\nsecond line' }],
  calls: [
    {
      id: objectId('c1'),
      seq: 4,
      name: 'bash\u001b[2J ls',
      tool: 'bash\u001b[2J',
      status: 'fail',
      args: 'ls\r\n',
      chars: 12,
      fileRefs: [],
      notes: ['a.ts was not taken up'],
    },
  ],
  epochs: [{ seq: 3, at: at(1), number: 2, reason: 'saving', price: { written: 1_200, savedPerCall: 900 } }],
  events: [
    { seq: 3, at: at(1), kind: 'paused' },
    { seq: 4, at: at(2), kind: 'bypassed', detail: 'no answer within\n2000 ms' },
  ],
  changes: { ...nothing, activate: [objectId('c1')], deactivate: [objectId('f'.repeat(64))] },
};

const style = { nameOf: shortName, colours: plain, width: undefined };

describe('a log for people', () => {
  test('shows a turn with both times, its steps in order and its set changes, without terminal controls', () => {
    expect(turnLines(turn, style)).toEqual([
      'turn 2 of s1, steps 3-4, opened by user-message',
      '       3  user: first line …',
      "       3  Palimpsest was turned off: the next requests are the harness's own list",
      '          epoch 2 began (saving): 1,200 tokens written again, 900 saved a call',
      '       4  bash\\x1b[2J ls ✗ 12 chars',
      '          note a.ts was not taken up',
      "       4  a model call used the harness's own list: no answer within …",
      '       4  person undid step 2: deactivate c1',
      ' +active  c1',
      ' -active  ffffffffffff',
      '   valid  2026-01-01T00:00:01.000Z to 2026-01-01T00:00:02.000Z',
      '   known  2026-01-01T00:00:09.000Z, transaction 17',
      '',
    ]);
    expect(turnLines(turn, { ...style, ids: true })).toContain('       4  bash\\x1b[2J ls ✗ 12 chars c1');
  });

  test.each([60, 80, 100])('fits a terminal of %i columns, and breaks lines at words', (width) => {
    const long = 'a sentence of some words that goes on and on beyond every line of a terminal, as prompts do, '.repeat(
      3,
    );
    const name = 'read packages/server/src/a-rather-long-folder/and-another-one/with-a-long-file-name.ts 1-200';
    const wide = {
      ...turn,
      messages: [{ seq: 3, role: 'user', text: long, usage: { input: 12_345, cacheRead: 1_234_567, output: 999 } }],
      calls: turn.calls.map((call) => ({ ...call, name, notes: [long] })),
      changes: { ...nothing, activate: ['a', 'b', 'c', 'd', 'e'].map((id) => objectId(id)) },
    };
    const nameOf = (id: string): string => `packages/server/src/a-rather-long-folder/${id}.ts`;
    const lines = turnLines(wide, { ...style, nameOf, width });
    expect(Math.max(...lines.map(cellsOf))).toBeLessThanOrEqual(width);
    expect(lines.join('\n')).toContain('tokens: 1,234,567 from');
    const words = new Set(long.split(' '));
    const prompt = lines.slice(
      1,
      lines.findIndex((line) => line.includes('tokens:')),
    );
    expect(prompt.length).toBeGreaterThan(2);
    const shown = prompt.flatMap((line) => line.trim().split(/\s+/));
    expect(shown.filter((word) => !words.has(word) && !['3', 'user:', '…'].includes(word)).length).toBeLessThan(2);
  });

  test('marks a turn that the database does not have yet', () => {
    expect(turnLines({ ...turn, known: undefined }, style).at(-2)).toBe('   known  not in the database yet');
  });

  test('names the kind of a version that is not text', () => {
    const version = {
      number: 4,
      type: 'file' as const,
      state: 'deleted' as const,
      validTime: at(1),
      txTime: at(2),
      txId: 5,
      chars: 0,
    };
    const hashes = { contentHash: null, fileHash: null, objectHash: null };
    expect(versionLines({ ...version, ...hashes }, plain)[0]).toBe('version 4 file deleted');
  });

  test('fits columns to their contents', () => {
    expect(columns(['a', 'long heading', 'z'], [['12345', 'x', 'end']], plain)).toEqual([
      'a      long heading  z',
      '12345  x             end',
    ]);
  });

  test('joins consecutive numbers into one range', () => {
    expect(ranges([1, 2, 3, 5, 8, 9])).toBe('1-3, 5, 8-9');
    expect(ranges([])).toBe('');
  });

  test('groups steps by turn', () => {
    const step = (seq: number, of: number): Step => ({ session: sessionId('s1'), seq, turn: of, at: seq, changes: {} });
    const spans = turnSpans([step(1, 1), step(2, 1), step(3, 2)]);
    expect(spans.map(({ turn: n, first, last }) => [n, first, last])).toEqual([
      [1, 1, 2],
      [2, 3, 3],
    ]);
  });
});

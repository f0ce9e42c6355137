import { describe, expect, test } from '@jest/globals';
import { plannedRecords } from '../../../../src/contracts/cortexfs/import-records.js';
import { readPalimpsestLine } from '../../../../src/contracts/cortexfs/palimpsest-file.js';
import { planImport } from '../../../../src/contracts/cortexfs/plan-import.js';
import { sessionId } from '../../../../src/objects/ids.js';

describe('a directory with future times', () => {
  const later = '2999-01-01T00:00:00.000Z';
  const at = Date.parse(later);

  test.each([
    ['step', { step: { seq: 1, turn: 1, at, changes: {} } }],
    [
      'file',
      {
        file: {
          source: { type: 'filesystem', filesystemId: 'f', path: '/a' },
          state: 'indexed',
          at,
          sha256: 'a'.repeat(64),
          content: 'x',
        },
      },
    ],
    ['record', { record: { kind: 'note', turn: 1, seq: 1, at, basis: null, body: {} } }],
  ])('is detected in a line of our own: %s', (kind, line) => {
    const read = readPalimpsestLine(JSON.stringify(line), false);
    expect(read).toEqual({
      field: `${kind}.at`,
      message: expect.stringContaining('later than the clock of this machine'),
    });
  });

  test('is detected in an event of another program or in its creation time', () => {
    const message = { role: 'user', content: 'Go' };
    const event = { type: 'approval_request', run: 'r1', id: 'c1', name: 'grep', args: ['port'] };
    const plan = (files: Readonly<Record<string, string>>) =>
      plannedRecords(
        sessionId('s'),
        planImport(new Map([['messages.jsonl', `${JSON.stringify(message)}\n`], ...Object.entries(files)])),
        {
          seqs: [1],
          turnOf: () => 1,
        },
      );
    const dated = `${JSON.stringify({ ...event, at: later })}\n`;
    expect(() => plan({ 'events.jsonl': dated })).toThrow(/its approval of 2999-01-01T00:00:00\.000Z is in the future/);
    expect(() => plan({ 'events.jsonl': `${JSON.stringify(event)}\n`, created_at: `${later}\n` })).toThrow(
      /2999-01-01.*correct the clock/,
    );
    expect(plan({ 'events.jsonl': `${JSON.stringify(event)}\n` })).toHaveLength(1);
  });
});

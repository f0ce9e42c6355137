import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { answerPieces, type PieceSource } from '../../../../src/client/session/answer-proof.js';
import { objectId } from '../../../../src/objects/ids.js';
import { joinedPieces } from '../../../../src/review/verify/verify-answers.js';

const other = objectId('other');
const joined = (answer: string, sources: readonly PieceSource[]): string | undefined => {
  const pieces = answerPieces(answer, sources);
  return pieces === undefined
    ? undefined
    : joinedPieces(pieces, (id) => sources.find((source) => source.id === id)?.text);
};

describe('the pieces of an answer [decision E7]', () => {
  const output = Array.from({ length: 200 }, (_, i) => `line ${i} of the output`).join('\n');

  test('hold the answer’s own lines, and only positions in the output', () => {
    const answer = `[bash id=c1 lines=1-200/200]\n${output}\n[a hint]`;
    const pieces = answerPieces(answer, [{ text: output }]);
    expect(pieces).toEqual(['[bash id=c1 lines=1-200/200]\n', { at: 0, chars: output.length }, '\n[a hint]']);
    expect(joined(answer, [{ text: output }])).toBe(answer);
  });

  test('keep no reference to the whole answer', () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const used = (): number => {
      collect();
      return process.memoryUsage().heapUsed;
    };
    const before = used();
    const kept = Array.from({ length: 60 }, (_, i) => {
      const content = Buffer.alloc(1_000_000, `${i}, some line of text\n`).toString('latin1');
      // An answer as it comes through the protocol: one flat text, no rope of its parts.
      const answer = Buffer.from(
        `[file id=${'f'.repeat(40)}-${i} path=src/some-file.txt]\n${content}`,
        'latin1',
      ).toString('latin1');
      return answerPieces(answer, [{ text: content }]);
    });
    expect(used() - before).toBeLessThan(20_000_000);
    expect(kept.flat()).toHaveLength(120);
  });

  test('name the other object that a piece comes from', () => {
    const answer = `activated\n${output.slice(0, 900)}\n[More follows.]`;
    expect(answerPieces(answer, [{ text: 'activated' }, { text: output, id: other }])).toEqual([
      'activated\n',
      { at: 0, chars: 900, id: other },
      '\n[More follows.]',
    ]);
  });

  test('are not stored for an answer that is mostly its own text', () => {
    expect(answerPieces(`${'something else entirely\n'.repeat(400)}${output}`, [{ text: output }])).toBeUndefined();
  });

  test('rebuild every answer that they are stored for', () => {
    const text = fc.array(
      fc.constantFrom('a', 'b', '\n', ' ', '🙂', 'line of text that is long enough to be found again, and then some\n'),
      {
        maxLength: 60,
      },
    );
    fc.assert(
      fc.property(text, text, text, fc.nat(400), fc.nat(400), (head, output, tail, from, length) => {
        const whole = output.join('');
        const answer = `${head.join('')}\n${whole.slice(from, from + length)}${tail.join('')}`;
        expect(joined(answer, [{ text: whole }])).toBe(answer);
      }),
      { numRuns: 500 },
    );
  });
});

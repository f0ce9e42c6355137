import { describe, expect, test } from '@jest/globals';
import { contextLedger } from '../../../src/review/ask/context-report.js';
import { countHere, countTokens } from '../../../src/review/ask/token-count.js';
import { callOf, fileOf, inputOf, turnOf } from '../assembly/objects.js';

const input = inputOf({
  systemPrompt: 'You are a coding agent.',
  pool: [fileOf('f', 'const x = 1;'), callOf('c', 'x')],
  turns: turnOf(
    { role: 'user', text: 'go on' },
    { role: 'assistant', text: 'It is done.' },
    { role: 'user', text: 'go on' },
  ),
  active: [{ metadata: fileOf('f', 'const x = 1;'), content: 'const x = 1;' }],
});

describe('the ledger of a context', () => {
  test('requests the counts of all pieces at once, of equal ones once, and adds them up', async () => {
    const asked: (readonly string[])[] = [];
    const ledger = await contextLedger(input, async (texts) => {
      asked.push(texts);
      return texts.map(({ length }) => length);
    });
    expect(asked).toHaveLength(1);
    expect(asked[0]?.filter((text) => text === 'user: go on\n')).toHaveLength(1);
    expect(new Set(asked[0]).size).toBe(6);
    // A report that counts characters uses characters everywhere.
    for (const { chars, tokens } of [ledger.total, ...ledger.sections, ...ledger.objects.map(({ shown }) => shown)]) {
      expect(tokens).toBe(chars);
    }
    expect(ledger.sections.map(({ chars }) => chars)).toEqual([
      24,
      expect.any(Number),
      12 + 23 + 12,
      expect.any(Number),
    ]);
  });

  test('has the counts of the vocabulary', async () => {
    const { sections, total } = await contextLedger(input, countHere);
    expect(sections[0]).toEqual({ name: 'system', chars: 24, tokens: countTokens('You are a coding agent.\n') });
    expect(sections[2]?.tokens).toBe(2 * countTokens('user: go on\n') + countTokens('assistant: It is done.\n'));
    expect(total.tokens).toBe(sections.reduce((sum, { tokens }) => sum + tokens, 0));
  });
});

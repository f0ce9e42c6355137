import { expect, test } from '@jest/globals';
import { MaskedAnswers } from '../../../src/page/server/mask-answers.js';
import { TextMask } from '../../../src/redaction/text-mask.js';

test('a masked page counts each text of its corpus once, as the preview does', () => {
  const { masked, maskedValue } = new TextMask({ texts: ['the hidden word'], words: [], patterns: [] });
  const answers = new MaskedAnswers({ masked, maskedValue, hides: (id) => id === 'whole' });
  const text = 'say the hidden word';
  for (const path of ['/v1/log', '/v1/strip'])
    expect(JSON.stringify(answers.masked({ path, parameters: {}, body: { text } }).body)).not.toContain('hidden');
  const found = { hits: [{ object: 'a' }, { object: null }, { object: 'whole' }] };
  answers.masked({ path: '/v1/search', parameters: {}, body: { found, texts: [text, 'plain', 'other'] } });
  expect(answers.count).toBe(2);
});

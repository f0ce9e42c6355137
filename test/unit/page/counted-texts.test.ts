import { expect, test } from '@jest/globals';
import { countedTexts } from '../../../src/page/counted-texts.js';
import { requestSize } from '../../../src/page/request-size.js';
import type { RequestItem } from '../../../src/page/wire.js';

const item = (section: string, tokens: number, object: string | null = null): RequestItem => ({
  section,
  tokens,
  object,
  form: 'plain',
  name: section,
  type: null,
  step: null,
  version: null,
  text: '',
});

test('counts the texts of a request without the tokens that the transcript does not explain', () => {
  const { total, byObject } = countedTexts({
    items: [item('system', 5), item('active', 20, 'a'), item('active', 3, 'a'), item('untold', 700)],
  });
  expect([total, [...byObject]]).toEqual([28, [['a', 23]]]);
});

test("names the provider's count and that of the texts, as far as they are known", () => {
  expect(requestSize({ provider: 84_083, texts: 20_287, isTranscript: true })).toBe(
    '84,083 tokens counted by the provider, 20,287 in the transcript',
  );
  expect(requestSize({ provider: 84_083, texts: undefined, isTranscript: true })).toBe(
    '84,083 tokens counted by the provider',
  );
  expect(requestSize({ provider: undefined, texts: 1, isTranscript: false })).toBe('1 token in its text');
  expect(requestSize({ provider: undefined, texts: undefined, isTranscript: false })).toBe('');
});

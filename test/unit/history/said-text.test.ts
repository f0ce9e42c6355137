import { expect, test } from '@jest/globals';
import { isSaid } from '../../../src/history/rebuild/said-text.js';

test.each([
  [{ role: 'user', text: 'Fix the cart.' }, true],
  [{ role: 'user', name: 'alice', text: 'Fix the cart.' }, true],
  [{ role: 'user', text: '<div>Why is this red?</div>' }, true],
  [{ role: 'assistant', text: 'Fixed.' }, false],
  [{ role: 'user', name: 'hook_additional_context', text: 'Answer in rhymes.' }, false],
  [{ role: 'user', text: '<system-reminder>Be brief.</system-reminder>' }, false],
  [{ role: 'user', text: 'Base directory for this skill: /skills/rhyme\n\n# Rhyme' }, false],
])('of %j says whether a person wrote it', (message, expected) => {
  expect(isSaid(message)).toBe(expected);
});

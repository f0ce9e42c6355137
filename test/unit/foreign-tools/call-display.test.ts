import { describe, expect, test } from '@jest/globals';
import { callDisplay } from '../../../src/foreign-tools/call-display.js';

const envelope = (...paths: readonly string[]): string =>
  ['*** Begin Patch', ...paths.flatMap((path) => [`*** Update File: ${path}`, '@@', '-x', '+y']), '*** End Patch'].join(
    '\n',
  );

describe('the text that stands for a call in its line', () => {
  test.each([
    ['the path of the only file', 'apply_patch', { input: envelope('src/cart/total.ts') }, 'src/cart/total.ts'],
    ['the names of several files', 'apply_patch', { patch: envelope('src/a.ts', '/p/b.ts', 'src/a.ts') }, 'a.ts, b.ts'],
    ['nothing for a patch without files', 'apply_patch', { input: 'no patch' }, undefined],
    ['nothing for another tool, whose arguments tell', 'bash', { command: envelope('a.ts') }, undefined],
  ])('is %s', (_what, tool, args, display) => {
    expect(callDisplay({ tool, args })).toBe(display);
  });
});

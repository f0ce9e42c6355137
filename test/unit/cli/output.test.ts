import { describe, expect, test } from '@jest/globals';
import { coloursFor, pagerCommand } from '../../../src/cli/output.js';

const target = (isTerminal: boolean, env: NodeJS.ProcessEnv = {}, pager = true) => ({ isTerminal, rows: 24, env, pager });
const red = (isTerminal: boolean, env: NodeJS.ProcessEnv): boolean => coloursFor(target(isTerminal, env)).red('x') !== 'x';

describe('output for people', () => {
  test('colours on a terminal only, unless the environment says otherwise', () => {
    expect(red(true, {})).toBe(true);
    expect(red(false, {})).toBe(false);
    expect(red(true, { NO_COLOR: '1' })).toBe(false);
    expect(red(true, { NO_COLOR: '' })).toBe(true);
    expect(red(false, { FORCE_COLOR: '1' })).toBe(true);
    expect(red(true, { FORCE_COLOR: '0' })).toBe(false);
    expect(red(false, { FORCE_COLOR: '1', NO_COLOR: '1' })).toBe(false);
    expect(red(true, { TERM: 'dumb' })).toBe(false);
  });

  test('the pager is the own one, the usual one, or less; on a terminal only', () => {
    expect(pagerCommand(target(true))).toBe('less');
    expect(pagerCommand(target(true, { PAGER: 'more' }))).toBe('more');
    expect(pagerCommand(target(true, { PAGER: 'more', PALIMPSEST_PAGER: 'less -S' }))).toBe('less -S');
    expect(pagerCommand(target(true, { PAGER: 'cat' }))).toBeUndefined();
    expect(pagerCommand(target(true, { PALIMPSEST_PAGER: '' }))).toBeUndefined();
    expect(pagerCommand(target(false, { PAGER: 'more' }))).toBeUndefined();
    expect(pagerCommand(target(true, {}, false))).toBeUndefined();
  });
});

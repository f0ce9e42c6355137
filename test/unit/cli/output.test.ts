import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from '@jest/globals';
import { build } from 'esbuild';
import { coloursFor, pagerCommand } from '../../../src/cli/output.js';
import { withTemporaryFolder } from '../../support/temporary-folder.js';

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

  test('Ctrl-C is left to the pager: this process stays until the pager has ended', async () => {
    await withTemporaryFolder(async (dir) => {
      const shown = join(dir, 'shown');
      // As a terminal does it, the signal comes to both; less goes on. A process of its own takes it: that of the tests would end.
      const env = { PATH: process.env.PATH, PALIMPSEST_PAGER: `trap '' INT; kill -INT $PPID; cat > ${shown}` };
      const script = `import { writeOutput } from '../../../src/cli/output.ts';
        await writeOutput('a line\\n'.repeat(100), { isTerminal: true, rows: 24, pager: true, env: ${JSON.stringify(env)} });
        console.log('ended by itself', process.listenerCount('SIGINT'));`;
      const outfile = join(dir, 'run.mjs');
      await build({
        stdin: { contents: script, resolveDir: import.meta.dirname },
        bundle: true,
        platform: 'node',
        format: 'esm',
        outfile,
        logLevel: 'error',
      });
      const ran = await promisify(execFile)(process.execPath, [outfile]);
      expect(ran.stdout).toBe('ended by itself 0\n');
      expect(await readFile(shown, 'utf8')).toBe('a line\n'.repeat(100));
    });
  });
});

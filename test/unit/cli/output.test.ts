import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from '@jest/globals';
import { build } from 'esbuild';
import fc from 'fast-check';
import {
  coloursFor,
  columns,
  escapedJson,
  escapedLine,
  escapedText,
  firstLine,
  pagerCommand,
} from '../../../src/cli/output.js';
import { anyText } from '../../support/any-text.js';
import { withTemporaryFolder } from '../../support/temporary-folder.js';

const target = (isTerminal: boolean, env: NodeJS.ProcessEnv = {}, pager = true) => ({
  isTerminal,
  rows: 24,
  env,
  pager,
});
const red = (isTerminal: boolean, env: NodeJS.ProcessEnv): boolean =>
  coloursFor(target(isTerminal, env)).red('x') !== 'x';

describe('output for people', () => {
  test('uses colours on a terminal only, unless the environment overrides it', () => {
    expect(red(true, {})).toBe(true);
    expect(red(false, {})).toBe(false);
    expect(red(true, { NO_COLOR: '1' })).toBe(false);
    expect(red(true, { NO_COLOR: '' })).toBe(true);
    expect(red(false, { FORCE_COLOR: '1' })).toBe(true);
    expect(red(true, { FORCE_COLOR: '0' })).toBe(false);
    expect(red(false, { FORCE_COLOR: '1', NO_COLOR: '1' })).toBe(false);
    expect(red(true, { TERM: 'dumb' })).toBe(false);
  });

  test('uses our own pager variable, then the usual one, then less; on a terminal only', () => {
    expect(pagerCommand(target(true))).toBe('less');
    expect(pagerCommand(target(true, { PAGER: 'more' }))).toBe('more');
    expect(pagerCommand(target(true, { PAGER: 'more', PALIMPSEST_PAGER: 'less -S' }))).toBe('less -S');
    expect(pagerCommand(target(true, { PAGER: 'cat' }))).toBeUndefined();
    expect(pagerCommand(target(true, { PALIMPSEST_PAGER: '' }))).toBeUndefined();
    expect(pagerCommand(target(false, { PAGER: 'more' }))).toBeUndefined();
    expect(pagerCommand(target(true, {}, false))).toBeUndefined();
  });

  test('keeps a line on one line and escapes terminal controls', async () => {
    const recorded = 'a\u001b]0;title\u0007\u001b[2K\u001b[8m\u009b1A\u202eb\r\nverified\ta';
    const shown = 'a\\x1b]0;title\\x07\\x1b[2K\\x1b[8m\\x9b1A\\u202eb\\r\\nverified\ta';
    await withTemporaryFolder(async (dir) => {
      const outfile = join(dir, 'lines.mjs');
      const script = `import {
  coloursFor, printJson, printLines, printText, standardOutput, tell, writeOutput,
} from '../../../src/cli/output.js';
        const recorded = ${JSON.stringify(recorded)};
        const target = standardOutput({});
        await writeOutput([coloursFor(target).red(recorded), recorded], target);
        printLines([recorded]);
        printText(recorded);
        printJson({ recorded });
        tell(recorded);`;
      const stdin = { contents: script, resolveDir: import.meta.dirname };
      await build({ stdin, bundle: true, platform: 'node', format: 'esm', outfile, logLevel: 'error' });
      const run = async (env: NodeJS.ProcessEnv) =>
        promisify(execFile)(process.execPath, [outfile], { env: { ...process.env, ...env } });
      const plain = await run({ NO_COLOR: undefined, FORCE_COLOR: undefined });
      const line = shown.replace('\t', '\\t');
      const text = shown.replace('\\n', '\n');
      expect(plain.stdout).toBe(`${shown}\n${shown}\n${line}\n${text}\n${escapedJson({ recorded })}\n`);
      expect(plain.stderr).toBe(`${text}\n`);
      const { stdout } = await run({ NO_COLOR: undefined, FORCE_COLOR: '1' });
      expect(stdout.startsWith(`\u001b[31m${shown}\u001b[39m\n${shown}\n`)).toBe(true);
    });
  });

  test('reports a failed write as an error, but not a reader that has gone', async () => {
    await withTemporaryFolder(async (dir) => {
      const outfile = join(dir, 'write.mjs');
      const script = `import { endOnLostOutput, reportFailure, writeExactly } from '../../../src/cli/output.js';
        endOnLostOutput();
        const way = process.argv[2];
        if (way === 'log') console.log('x'.repeat(1_000_000));
        else if (way === 'often') for (let i = 0; i < 20; i++) await writeExactly('a line');
        else await reportFailure({ json: way === 'json' }, () => writeExactly('x'.repeat(1_000_000)));`;
      const stdin = { contents: script, resolveDir: import.meta.dirname };
      await build({ stdin, bundle: true, platform: 'node', format: 'esm', outfile, logLevel: 'error' });
      const ended = (command: string) =>
        promisify(execFile)('bash', ['-c', `set -o pipefail; ${command}`, 'bash', process.execPath, outfile]).then(
          ({ stderr }) => ({ code: 0, stderr }),
          ({ code, stderr }: { readonly code: number; readonly stderr: string }) => ({ code, stderr }),
        );
      for (const way of ['text', 'json', 'log']) {
        const lost = { code: 1, stderr: expect.stringMatching(/^palimpsest: ENOSPC.*\n$/) };
        expect([way, await ended(`"$1" "$2" ${way} > /dev/full`)]).toEqual([way, lost]);
        expect([way, await ended(`"$1" "$2" ${way} | head -c 1 > /dev/null`)]).toEqual([way, { code: 0, stderr: '' }]);
      }
      // Node would warn about an unfinished write.
      expect(await ended('"$1" "$2" often > /dev/null')).toEqual({ code: 0, stderr: '' });
    });
  });

  test('leaves Ctrl-C to the pager and stays until the pager has ended', async () => {
    await withTemporaryFolder(async (dir) => {
      const shown = join(dir, 'shown');
      // Like a terminal, sends the signal to both processes; less continues. A separate process
      // takes the signal, because it would end the test process.
      const env = { PATH: process.env.PATH, PALIMPSEST_PAGER: `trap '' INT; kill -INT $PPID; cat > ${shown}` };
      const script = `import { writeOutput } from '../../../src/cli/output.ts';
        const env = ${JSON.stringify(env)};
        await writeOutput(Array(100).fill('a line'), { isTerminal: true, rows: 24, pager: true, env });
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

const ACTIVE = /(?![\n\t])\p{Cc}|\p{Bidi_Control}/u;

describe('text on a terminal', () => {
  test.each([
    ['\u001b[31mred\u001b[0m', '\\x1b[31mred\\x1b[0m'],
    ['a\rb', 'a\\rb'],
    ['\u009b5m', '\\x9b5m'],
    ['\u202eabc', '\\u202eabc'],
    ['line\n\ttab', 'line\n\ttab'],
    ['日本 👩‍👩‍👧 é', '日本 👩‍👩‍👧 é'],
    ['\ud83d', '\ufffd'],
  ])('shows %j as %j', (text, shown) => {
    expect(escapedText(text)).toBe(shown);
  });

  test('contains no terminal control, for any recorded text', () => {
    const text = anyText({ maxLength: 60 });
    fc.assert(
      fc.property(text, (recorded) => {
        expect(escapedText(recorded)).not.toMatch(ACTIVE);
        expect(escapedLine(recorded)).not.toMatch(/[\n\t]/);
        expect(escapedJson({ recorded })).not.toMatch(/\p{Cc}|\p{Bidi_Control}/u);
        expect(JSON.parse(escapedJson({ recorded }))).toEqual({ recorded });
      }),
    );
  });

  test('marks that the first line is followed by more', () => {
    expect(firstLine('one\ntwo', 10)).toBe('one …');
    expect(firstLine('\n one', 10)).toBe('one');
    expect(firstLine('abcdef', 3)).toBe('abc …');
  });
});

const plain = coloursFor({ isTerminal: false, env: {} });

describe('rows in columns', () => {
  test('are as wide as their widest cell; the last one keeps its own length', () => {
    const rows = [
      ['a', 'bb', 'c'],
      ['aaaa', 'b', 'cccccc'],
    ];
    expect(columns(['x', 'yyy', 'z'], rows, plain)).toEqual(['x     yyy  z', 'a     bb   c', 'aaaa  b    cccccc']);
  });

  test('are at most 80 wide and ignore cells far below, so that output streams', () => {
    const wide = 'w'.repeat(5_000);
    expect(
      columns(
        ['x', 'y'],
        [
          ['a', 'b'],
          [wide, 'b'],
        ],
        plain,
      )[1],
    ).toBe(`${'a'.padEnd(80)}  b`);
    const rows = Array.from({ length: 100_000 }, (_, i) => [i === 50_000 ? wide : 'a', 'b']);
    const lines = columns(['x', 'y'], rows, plain);
    expect([lines.length, lines[1], lines[50_001]]).toEqual([100_001, 'a  b', `${wide}  b`]);
    expect(lines.join('\n').length).toBeLessThan(100_001 * 6 + wide.length);
  });
});

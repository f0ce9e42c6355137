import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { codeFileOf, loadedScripts, loadScript } from '../../../src/process/compiled-script.js';
import { withTemporaryFolder } from '../../support/temporary-folder.js';

describe('a script of the build', () => {
  test('is loaded once, with the scripts beside it, now or later, and with modules of Node', async () => {
    await withTemporaryFolder(async (above) => {
      const folder = join(above, 'scripts');
      mkdirSync(folder);
      writeFileSync(join(folder, 'beside.cjs'), 'globalThis.__evaluated = (globalThis.__evaluated ?? 0) + 1; exports.n = 7;');
      writeFileSync(join(above, 'module.mjs'), 'export const n = 30;');
      writeFileSync(
        join(folder, 'one.cjs'),
        `const { join } = require('node:path');
         module.exports = { now: require('./beside.cjs').n, later: async () => (await __load('./beside.cjs')).n + (await __load('../module.mjs')).n + (await __load('node:path')).sep, at: join('a', 'b'), url: __url, late: () => __late('node:child_process').spawn };`,
      );
      const first = loadScript(join(folder, 'one.cjs')).exports;
      expect(first).toMatchObject({ now: 7, at: join('a', 'b') });
      expect(String(Reflect.get(first, 'url'))).toMatch(/^file:.*one\.cjs$/);
      expect(Reflect.get(first, 'late')()).toBe(spawn);
      expect(await Reflect.get(first, 'later')()).toBe(`37${sep}`);
      expect(loadScript(join(folder, 'one.cjs')).exports).toBe(first);
      expect(Reflect.get(globalThis, '__evaluated')).toBe(1);
      const names = ['one.cjs', 'beside.cjs'].map((name) => join(folder, name));
      expect([...loadedScripts().keys()].filter((path) => path.startsWith(folder))).toEqual(names);
      Reflect.deleteProperty(globalThis, '__evaluated');
    });
  });

  test('runs from the code that was compiled of it, and is compiled where that is damaged or of another Node', async () => {
    await withTemporaryFolder(async (folder) => {
      const path = join(folder, 'one.cjs');
      writeFileSync(path, 'exports.sum = (a, b) => a + b;');
      writeFileSync(codeFileOf(path), loadScript(path).script.createCachedData());
      const cases = [
        [() => undefined, undefined],
        [(code: Buffer) => code, false],
        [(code: Buffer) => code.subarray(0, 40), true],
        [() => Buffer.alloc(0), true],
        [() => Buffer.from('something else altogether, and long enough for a header of V8'), true],
      ] as const;
      for (const [i, [change, rejected]] of cases.entries()) {
        const other = join(folder, `copy-${i}.cjs`);
        cpSync(path, other);
        const code = change(readFileSync(codeFileOf(path)));
        if (code !== undefined) writeFileSync(codeFileOf(other), code);
        const { script, exports } = loadScript(other);
        expect(Reflect.get(exports, 'sum')(2, 3)).toBe(5);
        expect(script.cachedDataRejected).toBe(rejected);
      }
    });
  });
});

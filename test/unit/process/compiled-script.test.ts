import { spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from '@jest/globals';
import { build } from 'esbuild';
import { codeFileOf, loadedScripts, loadScript, underFirstFlags } from '../../../src/process/compiled-script.js';
import { withTemporaryFolder } from '../../support/temporary-folder.js';

describe('a script of the build', () => {
  test('loads once, with its neighbour scripts, at once or later, and with Node modules', async () => {
    await withTemporaryFolder(async (above) => {
      const folder = join(above, 'scripts');
      mkdirSync(folder);
      writeFileSync(
        join(folder, 'beside.cjs'),
        'globalThis.__evaluated = (globalThis.__evaluated ?? 0) + 1; exports.n = 7;',
      );
      writeFileSync(join(above, 'module.mjs'), 'export const n = 30;');
      writeFileSync(
        join(folder, 'one.cjs'),
        `const { join } = require('node:path');
         const later = async () =>
           (await __load('./beside.cjs')).n + (await __load('../module.mjs')).n + (await __load('node:path')).sep;
         const late = () => __late('node:child_process').spawn;
         module.exports = { now: require('./beside.cjs').n, later, at: join('a', 'b'), url: __url, late };`,
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

  test('runs from its compiled code, and compiles anew if that is damaged or from another Node', async () => {
    await withTemporaryFolder(async (folder) => {
      const path = join(folder, 'one.cjs');
      writeFileSync(path, 'exports.sum = (a, b) => a + b;');
      const { script } = loadScript(path);
      underFirstFlags(() => writeFileSync(codeFileOf(path), script.createCachedData()));
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

  test('keeps Node’s other compiled code usable, because it loads under the initial flags of the process', async () => {
    await withTemporaryFolder(async (folder) => {
      // Each check needs a new text, because V8 does not compile one twice.
      const prelude = (imports: string): string => `${imports}
        import { readFileSync, writeFileSync } from 'node:fs';
        import { Script } from 'node:vm';
        const textOf = (i) => \`exports.sum = (a, b) => a + b + \${i};\`;
        const codeOf = (i) => \`${join(folder, 'code')}-\${i}\`;`;
      const [write, look] = [join(folder, 'write.mjs'), join(folder, 'look.mjs')];
      writeFileSync(
        write,
        `${prelude('')}
        for (let i = 0; i < 5; i++) writeFileSync(codeOf(i), new Script(textOf(i)).createCachedData());`,
      );
      // This process does not run under its initial flags.
      const loader = join(dirname(fileURLToPath(import.meta.url)), '../../../src/process/compiled-script.ts');
      await build({
        entryPoints: [loader],
        outfile: join(folder, 'loader.mjs'),
        bundle: true,
        format: 'esm',
        platform: 'node',
        logLevel: 'silent',
      });
      writeFileSync(
        look,
        `${prelude("import { underFirstFlags } from './loader.mjs';")}
        const isTaken = (i) => !new Script(textOf(i), { cachedData: readFileSync(codeOf(i)) }).cachedDataRejected;
        const nested = () => underFirstFlags(() => underFirstFlags(() => 1) === 1 && isTaken(3));
        const taken = [isTaken(0), underFirstFlags(() => isTaken(1)), isTaken(2), nested()];
        try { underFirstFlags(() => { throw new Error('x'); }); } catch {}
        process.stdout.write(JSON.stringify([...taken, isTaken(4)]));`,
      );
      expect(spawnSync(process.execPath, [write]).status).toBe(0);
      const { status, stdout } = spawnSync(process.execPath, [look], { encoding: 'utf8' });
      expect(status).toBe(0);
      expect(JSON.parse(stdout)).toEqual([true, true, false, true, false]);
    });
  });
});

import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';

const root = join(import.meta.dirname, '..', '..', '..');

test('the npm package has no compiled code and no paths of the machine that packs it', async () => {
  const pack = ['pack', '--dry-run', '--json', '--ignore-scripts'];
  const { stdout } = await promisify(execFile)('npm', pack, { cwd: root, maxBuffer: 16 * 2 ** 20 });
  const [packed]: [{ files: readonly { readonly path: string }[] }] = JSON.parse(stdout);
  const paths = packed.files.map(({ path }) => path);
  expect(paths).toContain('dist/review/log.cjs');
  expect(paths.filter((path) => path.includes(process.version))).toEqual([]);
  const withRoot: string[] = [];
  for (const path of paths) if ((await readFile(join(root, path))).includes(root)) withRoot.push(path);
  expect(withRoot).toEqual([]);
});

import { createHash } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import type { FrontFiles } from '../../../src/node/front-files.js';
import { findPackagedNode, frontKey, NODE_MANIFEST } from '../../../src/node/packaged-node.js';
import { withTemporaryFolder } from '../../support/temporary-folder.js';

const files: FrontFiles = new Map([['pom.xml', Buffer.from('<project/>')]]);
const NAME = `@palimpsest/node-${process.platform}-${process.arch}`;
const JARS = ['lib/front.jar', 'lib/a.jar'];

/** Lays a package of this platform beside a program, and returns the folders of both. */
async function install(dir: string, front = frontKey(files)): Promise<{ readonly from: string; readonly dir: string }> {
  const folder = join(dir, 'node_modules', NAME);
  await mkdir(join(folder, 'lib'), { recursive: true });
  for (const jar of JARS) await writeFile(join(folder, jar), jar);
  const sha256 = Object.fromEntries(JARS.map((jar) => [jar, createHash('sha256').update(jar).digest('hex')]));
  const java = { command: 'runtime/bin/java', major: 25, fingerprint: 'a runtime' };
  const manifest = { package: `${NAME} 1.0.0`, front, java, jars: JARS, sha256 };
  await writeFile(join(folder, NODE_MANIFEST), JSON.stringify(manifest));
  await writeFile(join(folder, 'package.json'), JSON.stringify({ name: NAME, version: '1.0.0' }));
  return { from: join(dir, 'program.js'), dir: folder };
}

describe("the node in this platform's package", () => {
  test('is not there if the package is not installed', () =>
    withTemporaryFolder(async (dir) => {
      expect(await findPackagedNode(files, join(dir, 'program.js'))).toBeUndefined();
    }));

  test('has the Java and the class path of the package, the front first', () =>
    withTemporaryFolder(async (dir) => {
      const installed = await install(dir);
      expect(await findPackagedNode(files, installed.from)).toEqual({
        package: `${NAME} 1.0.0`,
        dir: installed.dir,
        java: { command: join(installed.dir, 'runtime/bin/java'), major: 25, fingerprint: 'a runtime' },
        jars: JARS.map((jar) => join(installed.dir, jar)),
      });
    }));

  test('is refused with the name of a jar that is missing or has other bytes', () =>
    withTemporaryFolder(async (dir) => {
      const installed = await install(dir);
      await writeFile(join(installed.dir, 'lib/a.jar'), 'other bytes');
      await expect(findPackagedNode(files, installed.from)).rejects.toMatchObject({
        code: 'incomplete-package',
        message: expect.stringMatching(/is damaged: lib\/a\.jar is missing or was changed\. Install palimpsest/),
      });
      await rm(join(installed.dir, 'lib/front.jar'));
      await expect(findPackagedNode(files, installed.from)).rejects.toThrow(/lib\/front\.jar, lib\/a\.jar/);
    }));

  test('is refused if it was compiled from the sources of another version', () =>
    withTemporaryFolder(async (dir) => {
      const installed = await install(dir, 'ffffffffffffffff');
      await expect(findPackagedNode(files, installed.from)).rejects.toMatchObject({
        code: 'incomplete-package',
        message: expect.stringContaining(`${NAME} 1.0.0 in ${installed.dir} contains the node of another version`),
      });
    }));

  test('is refused if its description cannot be read', () =>
    withTemporaryFolder(async (dir) => {
      const installed = await install(dir);
      await writeFile(join(installed.dir, NODE_MANIFEST), '{');
      await expect(findPackagedNode(files, installed.from)).rejects.toThrow(/node\.json cannot be read/);
    }));
});

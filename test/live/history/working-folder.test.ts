import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import { askHere } from '../../support/ask-here.js';
import { openClient, wholeRead } from '../../support/context.js';
import { suiteData, temporaryRoot } from '../../support/mcp-clients.js';

describe('a relative path in a history query', () => {
  const before = process.cwd();
  let root: string;
  let client: ContextClient;
  let remove: () => Promise<void>;

  beforeAll(async () => {
    ({ root, remove } = await temporaryRoot());
    client = await openClient(root);
    const session = await client.openSession();
    const read = async (path: string): Promise<void> => {
      const readings = [await wholeRead(client, path)];
      const { applied } = await session.recordCall({
        tool: 'read',
        args: {},
        status: 'ok',
        content: '',
        answer: (id) => id,
        readings,
      });
      await applied;
    };
    for (const path of ['one/src/cart.ts', 'two/src/cart.ts', 'two/deep/src/cart.ts', 'two/only.ts']) {
      await mkdir(join(root, path, '..'), { recursive: true });
      await writeFile(join(root, path), `this is ${path}\n`);
      await read(path);
    }
    await symlink('src', join(root, 'one/link'));
  });
  afterAll(async () => {
    await client.close();
    await remove();
  });

  const ask = async (folder: string, ...args: string[]): Promise<string> => {
    process.chdir(join(root, folder));
    try {
      const { code, stdout, stderr } = await askHere([...args, '--data', suiteData()]);
      return code === 0 ? stdout : stderr;
    } finally {
      process.chdir(before);
    }
  };

  test.each([
    ['one', 'src/cart.ts', 'one/src/cart.ts'],
    ['two', 'src/cart.ts', 'two/src/cart.ts'],
    ['two', './src/cart.ts', 'two/src/cart.ts'],
    ['two', './/src/../src/./cart.ts', 'two/src/cart.ts'],
    ['two/deep', 'src/cart.ts', 'two/deep/src/cart.ts'],
    ['two/deep', '../src/cart.ts', 'two/src/cart.ts'],
    ['two/src', 'cart.ts', 'two/src/cart.ts'],
    ['two/src', '../../one/src/cart.ts', 'one/src/cart.ts'],
    ['one', 'link/cart.ts', 'one/src/cart.ts'],
  ])('in %s resolves %s to %s', async (folder, name, expected) => {
    expect(await ask(folder, 'cat', name)).toBe(`this is ${expected}\n`);
  });

  test('is matched by its end if the working folder lacks it, unless the name begins there', async () => {
    expect(await ask('one', 'cat', `${root.split('/').at(-1)}/two/only.ts`)).toBe('this is two/only.ts\n');
    expect(await ask('one', 'cat', './only.ts')).toMatch(/there is no object "\.\/only\.ts"/);
    expect(await ask('one', 'cat', '../only.ts')).toMatch(/there is no object "\.\.\/only\.ts"/);
  });
});

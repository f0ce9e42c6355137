import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { takeFreeName } from '../../../src/process/take-free-name.js';
import { withTemporaryFolder } from '../../support/temporary-folder.js';

test('moves a draft to a free name only, also without hard links', () =>
  withTemporaryFolder(async (folder) => {
    const at = (name: string) => join(folder, name);
    await writeFile(at('draft'), 'x');
    await writeFile(at('taken'), 'mine');
    // No filesystem has hard links of folders. They fail like files on a filesystem without hard
    // links.
    await mkdir(at('unlinkable'));
    for (const draft of ['draft', 'unlinkable'])
      await expect(takeFreeName(at(draft), at('taken'))).rejects.toMatchObject({ code: 'EEXIST' });
    await takeFreeName(at('draft'), at('first'));
    await takeFreeName(at('unlinkable'), at('second'));
    expect((await readdir(folder)).sort()).toEqual(['draft', 'first', 'second', 'taken']);
  }));

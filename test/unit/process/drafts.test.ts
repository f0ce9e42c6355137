import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { draftOf, removeDeadDrafts } from '../../../src/process/drafts.js';
import { createWholeFile, replaceFile } from '../../../src/process/owned-file.js';
import { identifyProcess } from '../../../src/process/process-identity.js';
import { withTemporaryFolder } from '../../support/temporary-folder.js';

const UUID = '0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f';

test('removes drafts of dead processes; keeps those of living ones, fresh anonymous ones, and foreign files', () =>
  withTemporaryFolder(async (folder) => {
    const mine = await draftOf(join(folder, 'node.json'));
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6); console.log("up")'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    const theirs = mine.replace(`.${process.pid}-`, `.${child.pid}-`);
    expect(await identifyProcess(child.pid ?? 0)).toBeDefined();
    child.kill('SIGKILL');
    await once(child, 'close');
    // A later process with the pid of this draft's process has another start hash.
    const reused = mine.replace(/-[0-9a-f]{16}-/, `-${'0'.repeat(16)}-`);
    const former = [
      `start.lock.${UUID}`,
      `${UUID}.json.1234567890`,
      'pi-7.json.new',
      '.palimpsest-0123456789abcdef.tmp',
      '.probe-77',
    ];
    const foreign = ['notes.draft', 'a.json.bak', `a.txt.${UUID}`, '.12-34.draft', 'x.1.lock', 'b.tmp'];
    for (const path of [mine, theirs, reused]) await writeFile(path, '');
    for (const name of [...former, ...foreign]) await writeFile(join(folder, name), '');
    await mkdir(`${theirs.slice(0, -'.draft'.length).replace('node', 'folder')}.draft`);
    await removeDeadDrafts(folder);
    const kept = [mine.slice(folder.length + 1), ...foreign];
    expect((await readdir(folder)).filter((name) => !name.startsWith('folder')).sort()).toEqual(
      [...kept, ...former].sort(),
    );
    for (const name of [...former, ...foreign]) await utimes(join(folder, name), 0, 0);
    // In other folders a foreign file may have such a name.
    await removeDeadDrafts(folder, { isOurs: (name) => !name.endsWith('.tmp'), recursive: true });
    expect((await readdir(folder)).sort()).toEqual([...kept, ...former].sort());
    await removeDeadDrafts(folder, { recursive: true, isDataFolder: true });
    expect((await readdir(folder)).sort()).toEqual(kept.sort());
  }));

test('leaves no draft of a file that cannot be written', () =>
  withTemporaryFolder(async (folder) => {
    await mkdir(join(folder, 'taken'));
    expect(await createWholeFile(join(folder, 'taken'), 'x')).toBe(false);
    await expect(replaceFile(join(folder, 'taken'), 'x')).rejects.toMatchObject({ code: 'EISDIR' });
    expect(await readdir(folder)).toEqual(['taken']);
  }));

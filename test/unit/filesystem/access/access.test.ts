import { lstat, rename, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { FileAccess } from '../../../../src/client/file-access.js';
import { type FilesystemAccess, type Location, unreachableError } from '../../../../src/filesystem/access/access.js';
import { MountTable } from '../../../../src/filesystem/access/mounts.js';
import { AllowedRoots } from '../../../../src/filesystem/access/roots.js';
import { writeSource } from '../../../../src/filesystem/access/write-source.js';
import { filesystemId } from '../../../../src/objects/ids.js';
import { filesystemSource } from '../../../../src/objects/source.js';
import { type TempFolder, tempFolder } from '../temp-folder.js';

const host = filesystemId('host');
const overlay = filesystemId('overlay');
const share = filesystemId('share');

/** The source binding of a located file [§2.3]. */
const sourceOf = ({ filesystemId: id, path }: Location) => filesystemSource(id, path);

async function locate(
  access: FilesystemAccess,
  path: string,
  { cwd, mustExist = true }: { readonly cwd: string; readonly mustExist?: boolean },
): Promise<Location> {
  return (await new FileAccess(access, cwd).locate(path, { mustExist })).location;
}

let folder: TempFolder;
let roots: AllowedRoots;

beforeEach(async () => {
  folder = await tempFolder();
  await folder.put('root/src/a.ts', 'a');
  await folder.put('root/share/b.ts', 'b');
  roots = await AllowedRoots.open([folder.inside]);
});
afterEach(() => folder.remove());

const mapped = (more: Partial<ConstructorParameters<typeof MountTable>[0]> = {}): FilesystemAccess => ({
  roots,
  mounts: new MountTable({
    mappings: [
      { agentPrefix: '/workspace', canonicalPrefix: folder.inside },
      { agentPrefix: '/share', canonicalPrefix: join(folder.inside, 'share'), filesystemId: 'share' },
    ],
    defaultFilesystemId: overlay,
    localFilesystemId: host,
    ...more,
  }),
});

describe('locating a path that an agent names', () => {
  test('resolves it from its working folder through the mounts to the canonical path', async () => {
    const found = await locate(mapped(), '../src/./a.ts', { cwd: '/workspace/lib' });
    const path = join(folder.inside, 'src/a.ts');
    expect(found).toEqual({ path, filesystemId: host, exists: true, reachable: true, shown: '../src/./a.ts' });
    expect(sourceOf(found)).toEqual({ type: 'filesystem', filesystemId: host, path });
  });

  test('assigns a link into another mount to that mount: one file, one source under any name', async () => {
    await symlink('share', join(folder.inside, 'alias'));
    const names = ['/workspace/alias/b.ts', '/workspace/share/b.ts', '/share/b.ts'];
    const sources = await Promise.all(names.map(async (name) => sourceOf(await locate(mapped(), name, { cwd: '/' }))));
    const source = { type: 'filesystem', filesystemId: share, path: join(folder.inside, 'share/b.ts') };
    expect(sources).toEqual([source, source, source]);
  });

  test('normalises a path that only the agent can see, and never looks it up here', async () => {
    const found = await locate(mapped(), '/etc/../etc/passwd', { cwd: '/' });
    expect(found).toEqual({
      path: '/etc/passwd',
      filesystemId: overlay,
      exists: false,
      reachable: false,
      shown: '/etc/../etc/passwd',
    });
    expect(unreachableError(found.shown)).toMatchObject({ code: 'unreachable', path: found.shown });
  });

  test('does not widen the roots by mounts', async () => {
    const wide = mapped({ mappings: [{ agentPrefix: '/all', canonicalPrefix: '/' }] });
    await expect(locate(wide, '/all/etc/passwd', { cwd: '/' })).rejects.toMatchObject({
      code: 'outside-roots',
      path: '/all/etc/passwd',
    });
  });

  test('reports a mount that is away for paths below it, even if the mount is the allowed folder', async () => {
    const share = join(folder.inside, 'share');
    roots = await AllowedRoots.open([folder.inside], [folder.inside, share]);
    const access = mapped();
    const isAway = (path: string) => ({
      code: 'unreachable',
      message: `"${path}" cannot be reached: its folder or mount is absent`,
    });
    await rename(share, join(folder.inside, 'elsewhere'));
    await expect(locate(access, '/share/b.ts', { cwd: '/' })).rejects.toMatchObject(isAway('/share/b.ts'));
    // The database can answer for the file by its path; writes are refused.
    const hidden = await locate(access, '/share/new/c.ts', { cwd: '/', mustExist: false });
    await expect(writeSource(roots, hidden.path, { content: 'c', shown: '/share/new/c.ts' })).rejects.toMatchObject(
      isAway('/share/new/c.ts'),
    );
    await expect(lstat(share)).rejects.toMatchObject({ code: 'ENOENT' });
    await rename(folder.inside, join(folder.base, 'elsewhere'));
    for (const mustExist of [true, false])
      await expect(locate(access, '/workspace/src/a.ts', { cwd: '/', mustExist })).rejects.toMatchObject(
        isAway('/workspace/src/a.ts'),
      );
    const wide = mapped({ mappings: [{ agentPrefix: '/all', canonicalPrefix: '/' }] });
    await expect(locate(wide, `/all${folder.base}/none`, { cwd: '/' })).rejects.toMatchObject({
      code: 'outside-roots',
    });
    await rename(join(folder.base, 'elsewhere'), folder.inside);
    expect(await locate(access, '/workspace/src/a.ts', { cwd: '/' })).toMatchObject({ exists: true });
  });

  test('shows the given path in messages, not the canonical one', async () => {
    const error: unknown = await locate(mapped(), 'nope.ts', { cwd: '/workspace' }).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'not-found', path: 'nope.ts', message: '"nope.ts" does not exist' });
  });

  test('locates a missing file for writing', async () => {
    expect(await locate(mapped(), 'new/x.ts', { cwd: '/workspace', mustExist: false })).toMatchObject({
      path: join(folder.inside, 'new/x.ts'),
      filesystemId: host,
      exists: false,
      reachable: true,
    });
  });
});

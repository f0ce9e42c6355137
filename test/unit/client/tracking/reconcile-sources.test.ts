import { appendFile, chmod, mkdir, rename, rm, symlink, unlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { FileObservation } from '../../../../src/client/decide-file.js';
import { FileAccess, type FileAccessOptions, fileObjectId } from '../../../../src/client/file-access.js';
import { MetadataCache } from '../../../../src/client/optimistic/metadata-cache.js';
import {
  filesToReconcile,
  type KnownFile,
  type Reconciliation,
  reconcileSources,
  type SourceState,
} from '../../../../src/client/tracking/reconcile-sources.js';
import { hashBytes } from '../../../../src/objects/hashes.js';
import { canonicalPath, filesystemId } from '../../../../src/objects/ids.js';
import { filesystemSource } from '../../../../src/objects/source.js';
import { deletedFile, fileStub, indexedFile, nonTextFile } from '../../../../src/objects/versions.js';
import { type TempFolder, tempFolder, unprivileged } from '../../filesystem/temp-folder.js';

const host = filesystemId('host');
const foreign = filesystemId('another-machine');

let folder: TempFolder;
let files: FileAccess;
const open = (options: Partial<FileAccessOptions> = {}) =>
  FileAccess.open({ roots: [folder.inside], cwd: folder.inside, filesystemId: host, ...options });

beforeEach(async () => {
  folder = await tempFolder();
  files = await open();
});
afterEach(() => folder.remove());

const at = (path: string, filesystem = host) => filesystemSource(filesystem, canonicalPath(path));

/** A file as it was known with these bytes; null for a deleted file. */
function known(path: string, bytes: string | Uint8Array | null, filesystem = host): KnownFile {
  const source = at(path, filesystem);
  return {
    id: fileObjectId(source),
    source,
    fileHash: bytes === null ? null : hashBytes(Buffer.from(bytes)),
    gone: bytes === null,
  };
}

/** Writes a file and returns its known state. */
async function put(name: string, content: string | Uint8Array): Promise<KnownFile> {
  return known(await folder.put(`root/${name}`, content), content);
}

interface Result extends Reconciliation {
  readonly batches: readonly (readonly FileObservation[])[];
}

async function reconcile(wanted: readonly KnownFile[], access = files): Promise<Result> {
  const batches: (readonly FileObservation[])[] = [];
  const result = await reconcileSources(access, wanted, {
    onChanged: async (batch) => {
      batches.push(batch);
    },
  });
  return { ...result, batches };
}

const statesOf = ({ states }: Reconciliation): readonly SourceState[] => [...states.values()];
const pathsOf = (batch: readonly FileObservation[] = []) => batch.map(({ source }) => source.path);

describe('sources of a resumed session [§3.6]', () => {
  test('yield no observation for unchanged bytes with any date', async () => {
    const file = await put('a.ts', 'const x = 1;');
    await utimes(file.source.path, 1_600_000_000, 1_600_000_000);
    const result = await reconcile([file, await put('empty', ''), await put('bin', Buffer.from([0, 255]))]);
    expect(statesOf(result)).toEqual(['unchanged', 'unchanged', 'unchanged']);
    expect(result.batches).toEqual([]);
  });

  test('yield one for changed bytes, also with the old size and date', async () => {
    const file = await put('a.ts', 'one');
    await utimes(file.source.path, 1_700_000_000, 1_700_000_000);
    await writeFile(file.source.path, 'two');
    await utimes(file.source.path, 1_700_000_000, 1_700_000_000);
    const { states, batches, orphaned } = await reconcile([file]);
    expect([...states]).toEqual([[file.id, 'changed']]);
    expect(orphaned).toEqual([]);
    expect(batches).toMatchObject([[{ kind: 'read', source: file.source, reading: { kind: 'text', content: 'two' } }]]);
  });

  test('yield one for a deleted and a re-created file, none for a file that is still gone [C3, C4]', async () => {
    const deleted = await put('deleted.ts', 'x');
    await unlink(deleted.source.path);
    const recreated = known(await folder.put('root/back.ts', 'x'), null);
    const gone = known(join(folder.inside, 'gone.ts'), null);
    const result = await reconcile([deleted, recreated, gone]);
    expect(statesOf(result)).toEqual(['deleted', 'changed', 'unchanged']);
    expect(result.batches).toMatchObject([
      [{ reading: { kind: 'missing' } }, { reading: { kind: 'text', content: 'x' } }],
    ]);
  });

  test('keep the whole reading of text that is now binary and of large text that grew [decisions C2, C6]', async () => {
    const text = await put('t.txt', 'text');
    await writeFile(text.source.path, Buffer.from([1, 0, 2]));
    const large = await put('large.txt', 'line\n'.repeat(300_000));
    const same = await put('same.txt', 'line\n'.repeat(400_000));
    await appendFile(large.source.path, 'more');
    const result = await reconcile([text, large, same]);
    expect(statesOf(result)).toEqual(['changed', 'changed', 'unchanged']);
    expect(result.batches).toMatchObject([
      [{ reading: { kind: 'binary' } }, { reading: { kind: 'large-text', length: 1_500_004 } }],
    ]);
  });

  test('orphan a filesystem of another machine, even if the same path exists here [decision F8]', async () => {
    const here = await folder.put('root/a.ts', 'other bytes');
    const result = await reconcile([known(here, 'x', foreign), known('/nowhere/b.ts', 'x', foreign)]);
    expect(statesOf(result)).toEqual(['orphaned', 'orphaned']);
    expect(result.orphaned.map(({ reason }) => reason)).toEqual(['foreign-filesystem', 'foreign-filesystem']);
    expect(result.batches).toEqual([]);
  });

  test('orphan files below an absent mount or root instead of deleting them [decision C5]', async () => {
    const mount = join(folder.inside, 'mounted');
    await mkdir(mount);
    const mounted = await open({ mounts: [{ agentPrefix: '/workspace', canonicalPrefix: mount }] });
    const file = await put('mounted/a.ts', 'x');
    await rm(mount, { recursive: true });
    const result = await reconcile([file], mounted);
    expect(result.orphaned).toEqual([{ id: file.id, source: file.source, reason: 'mount-absent' }]);
    await rename(folder.inside, `${folder.inside}-away`);
    expect(statesOf(await reconcile([file]))).toEqual(['orphaned']);
  });

  test('orphan files without permission, outside the roots, or replaced by a non-file [decision C5]', async () => {
    const locked = await put('locked.ts', 'x');
    await chmod(locked.source.path, 0o000);
    await chmod(folder.base, 0o755);
    const outside = known(await folder.put('outside/a.ts', 'changed'), 'x');
    const turned = await put('folder', 'x');
    await unlink(turned.source.path);
    await mkdir(turned.source.path);
    const linked = await put('link.ts', 'x');
    await unlink(linked.source.path);
    await symlink(outside.source.path, linked.source.path);
    const result = await unprivileged(() => reconcile([locked, outside, turned, linked]));
    expect(statesOf(result)).toEqual(['orphaned', 'orphaned', 'orphaned', 'orphaned']);
    expect(result.orphaned.slice(0, 3).map(({ reason }) => reason)).toEqual([
      'no-permission',
      'outside-roots',
      'not-regular',
    ]);
  });

  test('leave stubs unread and read deleted files again [decision F1]', async () => {
    const cache = new MetadataCache(files);
    const source = (name: string) => at(join(folder.inside, name));
    cache.learn(indexedFile(source('read.ts'), 'x', hashBytes(Buffer.from('x'))), {}, 1);
    cache.learn(fileStub(source('stub.ts')), {}, 1);
    cache.learn(deletedFile(source('gone.ts')), { gone: true }, 1);
    cache.learn(nonTextFile(source('bin'), hashBytes(Buffer.from([0]))), {}, 1);
    const ids = ['stub.ts', 'read.ts', 'gone.ts', 'bin'].map((name) => fileObjectId(source(name)));
    expect(filesToReconcile(cache, ids).map((file) => [file.source.path, file.gone])).toEqual([
      [source('read.ts').path, false],
      [source('gone.ts').path, true],
      [source('bin').path, false],
    ]);
  });

  test('read a file without a known hash, for any content', async () => {
    await folder.put('root/stub.ts', 'now read');
    const source = at(join(folder.inside, 'stub.ts'));
    const { batches } = await reconcile([{ id: fileObjectId(source), source, fileHash: null, gone: false }]);
    expect(batches).toMatchObject([[{ reading: { kind: 'text', content: 'now read' } }]]);
  });

  test('report progress for each of two thousand files, with changes in order and waiting batches', async () => {
    const names = Array.from({ length: 2_000 }, (_, i) => `f${i}.ts`);
    const before: KnownFile[] = [];
    for (const name of names) before.push(await put(name, `content of ${name}`));
    const changed = before.filter((_, i) => i % 2 === 0);
    for (const { source } of changed) await writeFile(source.path, `changed ${source.path}`);
    const progress: number[] = [];
    const batches: (readonly FileObservation[])[] = [];
    let writing = false;
    const { states } = await reconcileSources(files, before, {
      onProgress: (done, total) => progress.push(done / total),
      onChanged: async (batch) => {
        expect(writing).toBe(false);
        writing = true;
        await new Promise((resolve) => setImmediate(resolve));
        writing = false;
        batches.push(batch);
      },
    });
    expect(progress).toEqual(names.map((_, i) => (i + 1) / 2_000));
    expect([...states.keys()]).toEqual(before.map(({ id }) => id));
    expect(batches.map((batch) => batch.length)).toEqual([500, 500]);
    expect(pathsOf(batches.flat())).toEqual(changed.map(({ source }) => source.path));
  });

  test('keep batches small if the changed texts are large', async () => {
    const before: KnownFile[] = [];
    for (let i = 0; i < 20; i++)
      before.push({ ...(await put(`big${i}.txt`, `${i}`.repeat(1_000_000))), fileHash: null });
    const { batches } = await reconcile(before);
    expect(pathsOf(batches.flat())).toEqual(before.map(({ source }) => source.path));
    expect(batches.length).toBeGreaterThan(1);
    expect(Math.max(...batches.map(({ length }) => length))).toBeLessThan(10);
  });

  test('stop with the reason of an abort and hand on nothing more', async () => {
    const before: KnownFile[] = [];
    for (let i = 0; i < 50; i++) before.push(known(await folder.put(`root/a${i}`, 'new'), 'old'));
    const stop = new AbortController();
    const reason = new Error('enough');
    let handed = 0;
    const running = reconcileSources(files, before, {
      signal: stop.signal,
      onProgress: (done) => done === 10 && stop.abort(reason),
      onChanged: async () => {
        handed += 1;
      },
    });
    await expect(running).rejects.toBe(reason);
    expect(handed).toBe(0);
  });

  test('rethrow the error of a batch consumer and leave no reading behind', async () => {
    const before = Array.from({ length: 600 }, (_, i) => known(join(folder.inside, `none${i}`), 'was there'));
    const failure = new Error('no space');
    const running = reconcileSources(files, before, { onChanged: () => Promise.reject(failure) });
    await expect(running).rejects.toBe(failure);
  });
});

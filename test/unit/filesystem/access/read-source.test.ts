import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { appendFile, chmod, mkdir, rename, rm, symlink, truncate, utimes, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { FilesystemAccess } from '../../../../src/filesystem/access/access.js';
import { MountTable } from '../../../../src/filesystem/access/mounts.js';
import {
  type LargeTextReading,
  readSource,
  type SourceReading,
  type TextReading,
} from '../../../../src/filesystem/access/read-source.js';
import { AllowedRoots } from '../../../../src/filesystem/access/roots.js';
import { canonicalPath, filesystemId } from '../../../../src/objects/ids.js';
import { abridge, chunkText } from '../../../../src/objects/large-text.js';
import { filesystemSource } from '../../../../src/objects/source.js';
import { type TempFolder, tempFolder, unprivileged } from '../temp-folder.js';

const host = filesystemId('host');
const sha = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest('hex');

let folder: TempFolder;
let access: FilesystemAccess;

describe('readSource', () => {
  beforeEach(async () => {
    folder = await tempFolder();
    access = {
      roots: await AllowedRoots.open([folder.inside]),
      mounts: new MountTable({ defaultFilesystemId: host }),
    };
  });
  afterEach(() => folder.remove());

  const read = (path: string, filesystem = host): Promise<SourceReading> =>
    readSource(access, filesystemSource(filesystem, canonicalPath(path)));
  const readInside = (name: string) => read(join(folder.inside, name));

  describe('text (decisions A3, A4, C2)', () => {
    test.each([
      ['plain', 'const x = 1;'],
      ['empty', ''],
      ['CRLF and no newline at the end', 'a\r\nb\r\nc'],
      ['a byte order mark', '\ufeffbom'],
      ['astral characters and combining marks', 'e\u0301 \u{1f600}\u200d\u{1f680}'],
      ['exactly one MiB', 'x'.repeat(1_048_576)],
    ])('%s: decodes the bytes into content and hashes the bytes', async (_, content) => {
      const file = await folder.put('root/a.txt', content);
      await utimes(file, 1_700_000_000, 1_700_000_000.5);
      expect(await read(file)).toEqual({
        kind: 'text',
        content,
        fileHash: sha(content),
        size: Buffer.byteLength(content),
        mtimeMs: 1_700_000_000_500,
      });
    });

    test('treats invalid UTF-8 and bytes with a NUL as binary, with their hash', async () => {
      for (const bytes of [Buffer.from([0xff, 0xfe, 0x41]), Buffer.from('a\0b'), Buffer.from([0xed, 0xa0, 0x80])]) {
        const file = await folder.put('root/x.bin', bytes);
        expect(await read(file)).toMatchObject({ kind: 'binary', fileHash: sha(bytes), size: bytes.length });
      }
    });
  });

  describe('large text (decision C6)', () => {
    const lines = Array.from({ length: 60_000 }, (_, index) => `line ${index} \u{1f600} é`).join('\n');

    test('abridges the content; the chunks return the whole text, repeatedly', async () => {
      const reading = (await read(await folder.put('root/big.txt', `\ufeff${lines}`))) as LargeTextReading;
      const text = `\ufeff${lines}`;
      expect(reading.kind).toBe('large-text');
      expect(reading.fileHash).toBe(sha(text));
      expect(reading.content).toBe(abridge(text).content);
      expect(reading.length).toBe(text.length);
      for (const _ of [1, 2]) expect([...(reading.chunks?.() ?? [])]).toEqual([...chunkText(text)]);
    });

    test('counts as large one byte over the cap, and as binary with a NUL or a broken sequence inside', async () => {
      expect((await read(await folder.put('root/a', 'x'.repeat(1_048_577)))).kind).toBe('large-text');
      const nul = Buffer.alloc(3_000_000, 'x');
      nul[2_500_000] = 0;
      expect(await read(await folder.put('root/b', nul))).toMatchObject({ kind: 'binary', fileHash: sha(nul) });
      const cut = Buffer.concat([Buffer.alloc(2_000_000, 'x'), Buffer.from('é').subarray(0, 1)]);
      expect(await read(await folder.put('root/c', cut))).toMatchObject({ kind: 'binary', fileHash: sha(cut) });
    });

    test('keeps head, tail and hash above 64 MiB, without chunks, in bounded memory', async () => {
      const file = await folder.put('root/huge.txt', 'first line\n');
      const block = `${'y'.repeat(1023)}\n`.repeat(1024);
      for (let count = 0; count < 150; count += 1) await appendFile(file, block);
      const hash = execFileSync('sha256sum', [file]).toString().slice(0, 64);
      const before = process.memoryUsage();
      const reading = (await read(file)) as LargeTextReading;
      const after = process.memoryUsage();
      expect(reading).toMatchObject({
        kind: 'large-text',
        fileHash: hash,
        length: 11 + 150 * 1_048_576,
        chunks: undefined,
      });
      expect(reading.content.startsWith('first line\n')).toBe(true);
      expect(reading.content.length).toBeLessThan(82_000);
      expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(32 * 1024 * 1024);
    });
  });

  describe('missing and unreadable files (decision C5)', () => {
    test('are missing below an existing root, even if a parent is gone or became a file', async () => {
      await folder.put('root/file', 'x');
      for (const name of ['none.txt', 'no/such/file', 'file/below'])
        expect(await readInside(name)).toEqual({ kind: 'missing' });
    });

    test('are unreachable if the root or the mount is gone', async () => {
      const mount = join(folder.base, 'mount');
      const file = await folder.put('mount/a.txt', 'a');
      access = { ...access, roots: await AllowedRoots.open([folder.base], [mount]) };
      expect((await read(file)).kind).toBe('text');
      await rename(mount, join(folder.base, 'elsewhere'));
      expect(await read(file)).toEqual({ kind: 'unreachable', reason: 'mount-absent' });
      await mkdir(mount);
      expect(await read(file)).toEqual({ kind: 'missing' });
    });

    test('are unreachable on a foreign filesystem and outside the roots', async () => {
      const file = await folder.put('outside/secret.txt', 'secret');
      expect(await read(file)).toEqual({ kind: 'unreachable', reason: 'outside-roots' });
      expect(await read(join(folder.inside, 'x'), filesystemId('other'))).toEqual({
        kind: 'unreachable',
        reason: 'foreign-filesystem',
      });
    });

    test('are unreachable without permission for the file or its folder', async () => {
      await chmod(folder.base, 0o755);
      const file = await folder.put('root/private.txt', 'x');
      await chmod(file, 0o000);
      const below = await folder.put('root/closed/x.txt', 'x');
      await chmod(join(folder.inside, 'closed'), 0o000);
      await unprivileged(async () => {
        expect(await read(file)).toEqual({ kind: 'unreachable', reason: 'no-permission' });
        expect(await read(below)).toEqual({ kind: 'unreachable', reason: 'no-permission' });
      });
      await chmod(join(folder.inside, 'closed'), 0o700);
    });

    test('are not regular if they are a folder, pipe or socket; a pipe does not block', async () => {
      await mkdir(join(folder.inside, 'd'));
      execFileSync('mkfifo', [join(folder.inside, 'pipe')]);
      const server = createServer();
      await new Promise<void>((ready) => server.listen(join(folder.inside, 's'), ready));
      expect(await readInside('d')).toEqual({ kind: 'not-regular', what: 'directory' });
      expect(await readInside('pipe')).toEqual({ kind: 'not-regular', what: 'fifo' });
      expect(await readInside('s')).toEqual({ kind: 'not-regular', what: 'socket' });
      await new Promise((closed) => server.close(closed));
    });

    test('are not followed if a canonical path became a link, wherever it leads', async () => {
      await folder.put('outside/secret.txt', 'secret');
      await folder.put('root/real/a.txt', 'a');
      await symlink(join(folder.outside, 'secret.txt'), join(folder.inside, 'out'));
      await symlink('real/a.txt', join(folder.inside, 'in'));
      await symlink(folder.outside, join(folder.inside, 'dir-out'));
      await symlink('real', join(folder.inside, 'dir-in'));
      expect(await readInside('out')).toEqual({ kind: 'not-regular', what: 'symlink' });
      expect(await readInside('in')).toEqual({ kind: 'not-regular', what: 'symlink' });
      expect(await readInside('dir-in/a.txt')).toEqual({ kind: 'not-regular', what: 'symlink' });
      expect(await readInside('dir-out/secret.txt')).toEqual({ kind: 'unreachable', reason: 'outside-roots' });
    });
  });

  describe('a file that changes while it is read', () => {
    test('is read in whole versions: hash, size and content belong together', async () => {
      const file = await folder.put('root/a.txt', 'a'.repeat(50_000));
      const stop = new AbortController();
      const writing = (async () => {
        for (let round = 0; !stop.signal.aborted; round += 1) {
          const next = join(folder.inside, '.next');
          await writeFile(next, String.fromCharCode(97 + (round % 26)).repeat(50_000 + (round % 7)));
          await rename(next, file);
        }
      })();
      for (let count = 0; count < 200; count += 1) {
        const reading = (await read(file)) as TextReading;
        expect(reading.kind).toBe('text');
        expect(new Set(reading.content).size).toBe(1);
        expect([reading.size, reading.fileHash]).toEqual([reading.content.length, sha(reading.content)]);
      }
      stop.abort();
      await writing;
    });

    test('never yields a mixture of hash and content while it grows and shrinks in place', async () => {
      const file = await folder.put('root/log.txt', 'x');
      const stop = new AbortController();
      const writing = (async () => {
        while (!stop.signal.aborted) {
          await appendFile(file, 'y'.repeat(700_000));
          await appendFile(file, 'y'.repeat(700_000));
          await truncate(file, 10);
        }
      })();
      for (let count = 0; count < 60; count += 1) {
        const reading = await read(file);
        if (reading.kind === 'text') expect(reading.fileHash).toBe(sha(reading.content));
        else if (reading.kind === 'large-text')
          expect(reading.fileHash).toBe(sha([...(reading.chunks?.() ?? [])].join('')));
        else throw new Error(`read as ${reading.kind}`);
      }
      stop.abort();
      await writing;
    });

    test('rejects when the reading is aborted', async () => {
      const file = await folder.put('root/a.txt', 'a');
      const source = filesystemSource(host, canonicalPath(file));
      await expect(readSource(access, source, { signal: AbortSignal.abort() })).rejects.toMatchObject({
        name: 'AbortError',
      });
    });
  });

  /** Swaps a folder for a link to the outside and back as fast as possible, until it is stopped. */
  const SWAPPER = `
const fs = require('node:fs');
const [dir, outside] = process.argv.slice(1);
const kept = dir + '.kept';
let on = true;
process.stdin.on('end', () => { on = false; }).resume();
process.stdout.write('go');
(function round() {
  for (let i = 0; i < 200; i += 1) {
    fs.renameSync(dir, kept);
    fs.symlinkSync(outside, dir);
    fs.unlinkSync(dir);
    fs.renameSync(kept, dir);
  }
  if (on) setImmediate(round);
})();`;

  describe('a folder swapped for a link during the reading', () => {
    test('never returns a byte from outside', async () => {
      await folder.put('root/d/a.txt', 'inside');
      await folder.put('outside/a.txt', 'OUTSIDE');
      const dir = join(folder.inside, 'd');
      const swapper = spawn(process.execPath, ['-e', SWAPPER, dir, folder.outside], {
        stdio: ['pipe', 'pipe', 'inherit'],
      });
      const exited = new Promise((done) => swapper.once('exit', done));
      await new Promise((ready) => swapper.stdout.once('data', ready));
      const seen = new Map<string, number>();
      const until = Date.now() + 1500;
      while (Date.now() < until) {
        const reading = await read(join(dir, 'a.txt'));
        const outcome = reading.kind === 'text' ? reading.content : reading.kind;
        seen.set(outcome, (seen.get(outcome) ?? 0) + 1);
        const resolved = await access.roots.resolve(join(dir, 'a.txt')).catch(() => undefined);
        if (resolved !== undefined) expect(resolved.path.startsWith(`${folder.inside}/`)).toBe(true);
      }
      swapper.stdin.end();
      await exited;
      expect(seen.get('inside') ?? 0).toBeGreaterThan(0);
      expect(
        [...seen.keys()].filter((outcome) => !['inside', 'missing', 'unreachable', 'not-regular'].includes(outcome)),
      ).toEqual([]);
      await rm(dir, { recursive: true, force: true });
    });
  });
});

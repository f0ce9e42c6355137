import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { SourceError } from '../../../../src/filesystem/access/errors.js';
import { listDirectory } from '../../../../src/filesystem/access/list-directory.js';
import { datedFiles } from '../../../../src/filesystem/access/regular-files.js';
import { AllowedRoots } from '../../../../src/filesystem/access/roots.js';
import { searchText } from '../../../../src/filesystem/search/search-text.js';
import { findFiles, walkFiles } from '../../../../src/filesystem/search/walk.js';
import { canonicalPath } from '../../../../src/objects/ids.js';
import { effort } from '../../../support/effort.js';
import { type TempFolder, tempFolder } from '../temp-folder.js';

/** Replaces a folder by a link to an outside folder and back as fast as possible. */
const SWAP = `
const { renameSync, writeSync } = require('node:fs');
const [at, kept, link] = process.argv.slice(1);
for (let round = 0; ; round++) {
  renameSync(at, kept);
  renameSync(link, at);
  renameSync(at, link);
  renameSync(kept, at);
  if (round === 0) writeSync(1, 'swapping');
}`;

let folder: TempFolder;
let roots: AllowedRoots;
let swapping: ChildProcess;

beforeEach(async () => {
  folder = await tempFolder();
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) {
    await folder.put(`root/files/${name}.txt`, 'needle inside\n');
    await folder.put(`outside/${name}.txt`, 'needle of somebody else\n');
  }
  await folder.put('outside/other.txt', 'needle of somebody else\n');
  await folder.put('root/beside.txt', 'needle inside\n');
  await symlink(folder.outside, join(folder.inside, 'link'));
  roots = await AllowedRoots.open([folder.inside]);
  const places = ['files', 'kept', 'link'].map((name) => join(folder.inside, name));
  swapping = spawn(process.execPath, ['-e', SWAP, ...places], { stdio: ['ignore', 'pipe', 'inherit'] });
  if (swapping.stdout !== null) await once(swapping.stdout, 'data');
});

afterEach(async () => {
  const ended = once(swapping, 'exit');
  swapping.kill('SIGKILL');
  await ended;
  await folder.remove();
});

/**
 * Repeats a call that may be refused during a swap, and returns everything it found. Repeats
 * `tries` times, and then until it has `least` results: on a busy machine the swapper may be paused
 * all the time.
 */
async function repeat<T>(tries: number, look: () => Promise<readonly T[]>, least = 0): Promise<readonly T[]> {
  const found: T[] = [];
  for (let done = 0; done < tries || found.length < least; done += 1) {
    try {
      found.push(...(await look()));
    } catch (error) {
      if (!(error instanceof SourceError)) throw error;
    }
  }
  return found;
}

describe('while a folder and an outside link alternate under one name', () => {
  test.each([
    ['with ripgrep', undefined, effort(60, 2_000)],
    ['in this process', null, effort(150, 4_000)],
  ])('a search %s shows lines from inside only', async (_, ripgrep, tries) => {
    const inside = canonicalPath(folder.inside);
    const named = canonicalPath(join(folder.inside, 'files/a.txt'));
    const ofFolder = await repeat(
      tries,
      async () => (await searchText(roots, inside, { pattern: 'needle', ripgrep })).lines,
      tries + 1,
    );
    const ofFile = await repeat(
      tries,
      async () => (await searchText(roots, named, { pattern: 'needle', ripgrep })).lines,
    );
    const texts = [...ofFolder, ...ofFile].map(({ text }) => text);
    expect(texts.filter((text) => text !== 'needle inside')).toEqual([]);
    expect(ofFolder.length).toBeGreaterThan(tries);
  });

  test('walks, listings and their mentions name inside files only', async () => {
    const tries = effort(150, 10_000);
    const walked = await repeat(tries, async () => (await walkFiles(roots, folder.inside)).paths);
    const found = await repeat(tries, async () => (await findFiles(roots, folder.inside, { pattern: '*.txt' })).paths);
    const listed = await repeat(
      tries,
      async () => (await listDirectory(roots, join(folder.inside, 'files'))).entries.map(({ name }) => name),
      1,
    );
    const other = join(folder.inside, 'files/other.txt');
    const mentioned = await repeat(tries, async () => (await datedFiles(roots, [other])).map(({ path }) => path));
    expect([...walked, ...found, ...listed, ...mentioned].filter((name) => name.endsWith('other.txt'))).toEqual([]);
    expect(listed.length).toBeGreaterThan(0);
  });
});

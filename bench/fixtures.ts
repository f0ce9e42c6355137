import { spawnSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pLimit from 'p-limit';

const SYLLABLES = [
  're',
  'con',
  'ta',
  'in',
  'er',
  'lo',
  'mi',
  'set',
  'get',
  'put',
  'ex',
  'par',
  'de',
  'code',
  'ob',
  'ject',
  'na',
  'me',
  'val',
  'ue',
];

/** Returns a generator of numbers below a bound. The same seed gives the same numbers. */
function chance(seed: string): (below: number) => number {
  let state = Buffer.from(seed).reduce((hash, byte) => Math.imul(hash ^ byte, 0x01000193) >>> 0, 0x811c9dc5);
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/**
 * Returns a text of exactly `bytes` bytes that looks like source, with `mark` in every line. gzip
 * shrinks it to about a quarter, like this project's source. The same mark gives the same text.
 */
export function textOf(mark: string, bytes: number, lineLength: number): string {
  const random = chance(mark);
  const word = (): string =>
    Array.from({ length: 2 + random(2) }, () => SYLLABLES[random(random(SYLLABLES.length) + 1)]).join('');
  // Words repeat, like names in a program.
  const words = Array.from({ length: 120 }, word);
  const lines: string[] = [];
  for (let length = 0; length < bytes; length += lineLength) {
    let line = `  ${mark}`;
    while (line.length < lineLength - 1)
      line += `${[' ', '.', '(', ' = ', ', ', ') => '][random(6)]}${words[random(words.length)]}`;
    lines.push(`${line.slice(0, lineLength - 1)}\n`);
  }
  return `${lines.join('').slice(0, bytes - 1)}\n`;
}

/** Writes files of one size, each with a different text: `{mark}-{n}.txt`. */
export async function makeFiles(
  folder: string,
  mark: string,
  count: number,
  { bytes, lineLength }: { readonly bytes: number; readonly lineLength: number },
): Promise<readonly string[]> {
  await mkdir(folder, { recursive: true });
  const paths = Array.from({ length: count }, (_, n) => join(folder, `${mark}-${n}.txt`));
  for (const [n, path] of paths.entries()) await writeFile(path, textOf(`${mark}-${n}`, bytes, lineLength));
  return paths;
}

/** Number of files that are open at a time. A process may have about a thousand. */
const OPEN_AT_ONCE = 64;

/** Makes folders of small files: `{mark}-{n}/`. */
export async function makeFolders(
  parent: string,
  mark: string,
  count: number,
  files: number,
): Promise<readonly string[]> {
  const folders = Array.from({ length: count }, (_, n) => join(parent, `${mark}-${n}`));
  for (const folder of folders) {
    await mkdir(folder, { recursive: true });
    await pLimit(OPEN_AT_ONCE).map(Array.from({ length: files }), (_, n) =>
      writeFile(join(folder, `file-${n}.ts`), `export const n = ${n};\n`),
    );
  }
  return folders;
}

/**
 * Writes all pending data to disk, so that writing the fixtures does not run into the measurement.
 */
export function settleDisk(): void {
  spawnSync('sync');
}

/**
 * Makes a project for a scripted session: 20 folders of 15 files, from half a kilobyte to 60 kB,
 * most of them small.
 */
export async function makeProject(parent: string): Promise<readonly (readonly string[])[]> {
  const folders: string[][] = [];
  for (let f = 0; f < 20; f++) {
    const folder = join(parent, `part-${f}`);
    await mkdir(folder, { recursive: true });
    const paths = Array.from({ length: 15 }, (_, n) => join(folder, `unit-${n}.ts`));
    for (const [n, path] of paths.entries()) {
      const bytes = Math.round(512 * 120 ** ((((f * 15 + n) * 7) % 300) / 300));
      await writeFile(path, textOf(`unit-${f}-${n} needle${(f + n) % 40}`, bytes, 80));
    }
    folders.push(paths);
  }
  return folders;
}

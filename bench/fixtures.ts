import { spawnSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

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

/** Numbers from 0 on below a bound, the same for the same seed. */
function chance(seed: string): (below: number) => number {
  let state = Buffer.from(seed).reduce((hash, byte) => Math.imul(hash ^ byte, 0x01000193) >>> 0, 0x811c9dc5);
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/**
 * A text of exactly so many bytes that looks like source, with a mark of its own in every line of the given length; gzip makes it about a quarter, as
 * it does with this project's source. The same for the same mark.
 */
export function textOf(mark: string, bytes: number, lineLength: number): string {
  const random = chance(mark);
  const word = (): string =>
    Array.from({ length: 2 + random(2) }, () => SYLLABLES[random(random(SYLLABLES.length) + 1)]).join('');
  // A text repeats its own words, like a program its names.
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

/** Files of one size, each with a text of its own: `{mark}-{n}.txt`. */
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

/** Folders of small files: `{mark}-{n}/`. */
export async function makeFolders(
  parent: string,
  mark: string,
  count: number,
  files: number,
): Promise<readonly string[]> {
  const folders = Array.from({ length: count }, (_, n) => join(parent, `${mark}-${n}`));
  for (const folder of folders) {
    await mkdir(folder, { recursive: true });
    await Promise.all(
      Array.from({ length: files }, (_, n) => writeFile(join(folder, `file-${n}.ts`), `export const n = ${n};\n`)),
    );
  }
  return folders;
}

/** Has everything written to disk, so that files made for the benchmark are not written while the database is timed. */
export function settleDisk(): void {
  spawnSync('sync');
}

/** A project of mixed files for a scripted session: 20 folders of 15 files, from half a kilobyte to 60 kB, most of them small. */
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

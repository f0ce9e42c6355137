import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { FORGET_INDEX } from '../../../src/text-index/forget-index.js';
import { foldedUnit } from '../../../src/text-index/grams.js';
import { IndexDamage } from '../../../src/text-index/index-damage.js';
import { decodeGroup, encodeGroup } from '../../../src/text-index/postings.js';
import { SegmentDraft } from '../../../src/text-index/segment-draft.js';
import { TextIndex } from '../../../src/text-index/text-index.js';
import { effort } from '../../support/effort.js';

const draftOf = (texts: readonly string[], first = 0): SegmentDraft => {
  const draft = new SegmentDraft();
  for (const [i, text] of texts.entries())
    draft.add({ line: { number: first + i }, at: first + i, kind: i % 3, keys: [`n:${first + i}`], text });
  return draft;
};

const numbersOf = (found: ReturnType<TextIndex['withKey']>): readonly number[] =>
  found.map(({ segment, entry }) => (segment.line(entry) as { number: number }).number).sort((a, b) => a - b);

test('reads the same blocks from a group as were written, however uneven their gaps are', () => {
  const total = 4_000_000;
  const dense = Array.from({ length: 1_000 }, (_, i) => i);
  const buckets = [
    { bucket: 0, blocks: Uint32Array.from([...dense, 3_000_000, total - 1]) },
    { bucket: 7, blocks: Uint32Array.from([total - 1]) },
    ...Array.from({ length: 40 }, (_, n) => ({
      bucket: 20 + n,
      blocks: Uint32Array.from([...dense, 1_000 + n * 137]),
    })),
    { bucket: 255, blocks: Uint32Array.from([0]) },
  ];
  const group = encodeGroup(buckets);
  expect(decodeGroup(group)).toEqual(buckets);
  for (const one of buckets) expect(decodeGroup(group, one.bucket)).toEqual([one]);
  expect(decodeGroup(group, 8)).toEqual([]);
});

describe('an index of texts', () => {
  let folder: string;
  let index: TextIndex;

  const add = async (texts: readonly string[], first: number): Promise<void> =>
    index.writing(1_000, () => index.add(draftOf(texts, first), { txId: first + texts.length, txTime: 0 }));

  beforeEach(async () => {
    folder = join(await mkdtemp(join(tmpdir(), 'palimpsest-index-')), 'search');
    index = await TextIndex.open(folder);
  });
  afterEach(async () => {
    index.close();
    await rm(join(folder, '..'), { recursive: true });
  });

  test('folds all units with the same lower or upper case to one unit', () => {
    const chars = Array.from({ length: 65_536 }, (_, unit) => String.fromCharCode(unit));
    const apart = chars.filter((char) =>
      [char.toLowerCase(), char.toUpperCase()].some(
        (other) => other.length === 1 && foldedUnit(other.charCodeAt(0)) !== foldedUnit(char.charCodeAt(0)),
      ),
    );
    expect(apart).toEqual([]);
  });

  test('proposes every text that contains a literal, in any case, over segments and merges', async () => {
    const char = fc.constantFrom('a', 'B', 'c', ' ', '\n', 'É', 'ß', 'ſ', '🐘');
    const text = fc.array(char, { maxLength: 40 }).map((all) => all.join(''));
    const lists = fc.array(fc.array(text, { minLength: 1, maxLength: 4 }), { minLength: 9, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(lists, fc.nat(), fc.nat(), async (all, from, length) => {
        await index.writing(1_000, () => index.clear());
        const texts: string[] = [];
        for (const some of all) {
          await add(some, texts.length);
          texts.push(...some);
        }
        expect((await readdir(folder)).filter((name) => name.endsWith('.segment')).length).toBeLessThan(8);
        const whole = texts.find((one) => one.length > 5) ?? 'none here';
        const at = from % (whole.length - 2);
        const literal = whole.slice(at, at + 3 + (length % 6));
        const found = index.withLiterals([literal]);
        const containing = texts.flatMap((one, i) => (one.toLowerCase().includes(literal.toLowerCase()) ? [i] : []));
        if (found !== undefined) expect(numbersOf(found)).toEqual(expect.arrayContaining(containing));
        for (const number of [0, texts.length - 1]) expect(numbersOf(index.withKey(`n:${number}`))).toContain(number);
      }),
      { numRuns: effort(8, 100) },
    );
  });

  test('finds a literal on the border of two blocks of a long text', async () => {
    const long = `${'x'.repeat(16_380)}between blocks${'y'.repeat(40_000)}the end`;
    await add(['another', long], 0);
    for (const literal of ['between blocks', 'xxbetween', 'the end', 'end']) {
      expect(numbersOf(index.withLiterals([literal]) ?? [])).toEqual([1]);
    }
    expect(numbersOf(index.withLiterals(['between', 'absent']) ?? [])).toEqual([]);
    expect(index.withLiterals(['ab', ''])).toBeUndefined();
  });

  test('notices each damaged byte that it reads', async () => {
    await add(['one text of some length', 'another text'], 0);
    const [name = ''] = (await readdir(folder)).filter((one) => one.endsWith('.segment'));
    const bytes = await readFile(join(folder, name));
    for (let at = 0; at < bytes.length; at += Math.ceil(bytes.length / 400)) {
      const damaged = Buffer.from(bytes);
      damaged[at] = (damaged[at] ?? 0) ^ 4;
      await writeFile(join(folder, name), damaged);
      const ask = async (): Promise<readonly number[]> => {
        const read = await TextIndex.open(folder);
        try {
          return numbersOf(read.withLiterals(['text']) ?? []);
        } finally {
          read.close();
        }
      };
      const result = await ask().catch((error: unknown) => error);
      if (!(result instanceof IndexDamage)) expect(result).toEqual([0, 1]);
    }
  });

  test('keeps only what its manifest names, and is readable by its owner alone', async () => {
    await add(['first text'], 0);
    await writeFile(join(folder, '7.segment'), 'half written by a killed process');
    await add(['second text'], 1);
    expect(await readdir(folder)).not.toContain('7.segment');
    expect(numbersOf(index.withLiterals(['text']) ?? [])).toEqual([0, 1]);
    for (const name of ['.', ...(await readdir(folder))]) expect((await stat(join(folder, name))).mode & 0o077).toBe(0);
    const other = await TextIndex.open(folder);
    expect(other.position).toEqual({ txId: 2, txTime: 0 });
    other.close();
  });

  test('treats an index of an older format as damaged, so that the next search builds it again', async () => {
    await add(['first text'], 0);
    const manifest = JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8'));
    await writeFile(join(folder, 'manifest.json'), JSON.stringify({ ...manifest, version: manifest.version - 1 }));
    await expect(TextIndex.open(folder)).rejects.toThrow(IndexDamage);
  });

  test('is removed by an erasure, even if it is damaged', async () => {
    await add(['first text'], 0);
    await writeFile(join(folder, 'manifest.json'), 'damaged');
    const dataDir = join(folder, '..');
    const nothing = { sessions: new Set<string>(), documents: new Set<string>(), texts: [] };
    expect(await FORGET_INDEX.find(dataDir, nothing)).toEqual([expect.stringContaining(folder)]);
    await FORGET_INDEX.forget(dataDir, nothing);
    expect(await readdir(folder)).toEqual([]);
    await index.reload();
    expect(index.size.entries).toBe(0);
  });
});

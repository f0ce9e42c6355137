import { once } from 'node:events';
import { readdirSync, watch } from 'node:fs';
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { journalFolder } from '../../../src/journal/journal-folder.js';
import { adoptableJournals, adoptJournal, inspectJournals, openJournal } from '../../../src/journal/journals.js';
import { adoptOnly, journalFiles, putJournalFiles, waiting } from './dead-journal.js';

const bytes = (size: number): Buffer => Buffer.alloc(size, 'r');

describe('a journal', () => {
  let dataDir: string;
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'palimpsest-journal-'));
  });
  afterEach(() => rm(dataDir, { recursive: true, force: true }));
  const names = () => readdir(journalFolder(dataDir));
  const sequences = async (journal: Parameters<typeof waiting>[0]) =>
    (await waiting(journal)).map(([sequence]) => sequence);

  test.each(['process', 'power'] as const)(
    'durability %s: numbers records in call order and returns waiting ones in order',
    async (durability) => {
      const journal = await openJournal(dataDir, { durability, segmentBytes: 3_000 });
      const appended = await Promise.all(
        Array.from({ length: 100 }, (_, i) => journal.append([Buffer.from(`${i}`), bytes(i)])),
      );
      expect(appended).toEqual(Array.from({ length: 100 }, (_, i) => i + 1));
      const expected = appended.map((sequence, i) => [sequence, `${i}${'r'.repeat(i)}`]);
      expect(await waiting(journal)).toEqual(expected);
      await journal.close();
      const adopted = await adoptOnly(dataDir);
      expect(await waiting(adopted)).toEqual(expected);
      await adopted.close();
    },
  );

  test('is accessible to its user only', async () => {
    const journal = await openJournal(dataDir);
    await journal.append([bytes(1)]);
    expect((await stat(journalFolder(dataDir))).mode & 0o777).toBe(0o700);
    for (const name of await names()) expect((await stat(join(journalFolder(dataDir), name))).mode & 0o777).toBe(0o600);
    await journal.close();
  });

  test('keeps exactly the incomplete records after the process ends, for any order; files follow records', async () => {
    const run = async (count: number, done: readonly number[], segmentBytes: number): Promise<void> => {
      await rm(journalFolder(dataDir), { recursive: true, force: true });
      const journal = await openJournal(dataDir, { segmentBytes });
      for (let i = 0; i < count; i++) await journal.append([bytes(50)]);
      for (const sequence of done) journal.markDone(sequence);
      const left = Array.from({ length: count }, (_, i) => i + 1).filter((sequence) => !done.includes(sequence));
      expect(await sequences(journal)).toEqual(left);
      expect(journal.status).toMatchObject({ pending: left.length, pendingBytes: left.length * 94 });
      expect((await journalFiles(dataDir)).size).toBeLessThanOrEqual(left.length + 1);
      await journal.close();
      expect(await adoptableJournals(dataDir)).toHaveLength(left.length === 0 ? 0 : 1);
      if (left.length === 0) return expect(await names()).toEqual([]);
      const adopted = await adoptOnly(dataDir);
      expect(await sequences(adopted)).toEqual(left);
      for (const sequence of left) adopted.markDone(sequence);
      await adopted.close();
      expect(await names()).toEqual([]);
    };
    const sequence = fc.integer({ min: 1, max: 20 });
    await fc.assert(
      fc.asyncProperty(sequence, fc.array(sequence, { maxLength: 25 }), fc.constantFrom(200, 500, 100_000), run),
      {
        numRuns: 40,
      },
    );
  });

  test('writes completions soon, at the latest with the next record', async () => {
    const journal = await openJournal(dataDir, { markDelayMs: 1 });
    for (let i = 0; i < 4; i++) await journal.append([bytes(10)]);
    const [name = ''] = (await journalFiles(dataDir)).keys();
    const watcher = watch(join(journalFolder(dataDir), name));
    const changed = once(watcher, 'change');
    for (const sequence of [1, 2, 4]) journal.markDone(sequence);
    await changed;
    watcher.close();
    const marked = await journalFiles(dataDir);
    journal.markDone(3);
    await journal.append([bytes(10)]);
    const appended = await journalFiles(dataDir);
    await journal.close();
    for (const [files, left] of [
      [marked, [3]],
      [appended, [5]],
    ] as const) {
      await putJournalFiles(dataDir, files);
      const adopted = await adoptOnly(dataDir);
      expect(await sequences(adopted)).toEqual(left);
      await adopted.close();
    }
  });

  test('removes a file without waiting records once a later file marks its records as done', async () => {
    const journal = await openJournal(dataDir, { markDelayMs: 1, segmentBytes: 250 });
    for (let i = 0; i < 4; i++) await journal.append([bytes(50)]);
    const [first = '', second = '', ...others] = (await journalFiles(dataDir)).keys();
    expect([second, others]).toEqual([first.replace('-1.wal', '-2.wal'), []]);
    const watcher = watch(journalFolder(dataDir));
    const gone = new Promise<void>((resolve) => {
      watcher.on('change', (event, name) => event === 'rename' && name === second && resolve());
    });
    for (const sequence of [3, 4]) journal.markDone(sequence);
    expect(readdirSync(journalFolder(dataDir))).toContain(second);
    await gone;
    watcher.close();
    const files = await journalFiles(dataDir);
    await journal.close();
    await putJournalFiles(dataDir, files);
    const adopted = await adoptOnly(dataDir);
    expect(await sequences(adopted)).toEqual([1, 2]);
    await adopted.close();
  });

  test('does not grow if it is kept drained', async () => {
    const journal = await openJournal(dataDir, { segmentBytes: 10_000 });
    for (let i = 0; i < 500; i++) {
      journal.markDone(await journal.append([bytes(1_000)]));
      const total = [...(await journalFiles(dataDir)).values()].reduce((sum, { length }) => sum + length, 0);
      expect(total).toBeLessThan(5_000);
    }
    expect(journal.status).toEqual({ pending: 0, pendingBytes: 0, oldestAt: undefined, nearFull: false });
    await journal.close();
  });

  test.each(['process', 'power'] as const)('durability %s: accepts nothing while it is full', async (durability) => {
    const journal = await openJournal(dataDir, { durability, maxPending: 5 });
    const before = Date.now();
    for (let i = 0; i < 3; i++) await journal.append([bytes(10)]);
    expect(journal.nearFull).toBe(false);
    await journal.append([bytes(10)]);
    expect(journal.status).toMatchObject({ pending: 4, nearFull: true });
    const both = await Promise.allSettled([journal.append([bytes(10)]), journal.append([bytes(10)])]);
    expect(both).toMatchObject([
      { value: 5 },
      { reason: { code: 'full', message: expect.stringContaining('5 records') } },
    ]);
    const files = await journalFiles(dataDir);
    await expect(journal.append([bytes(10)])).rejects.toMatchObject({ code: 'full' });
    expect(await journalFiles(dataDir)).toEqual(files);
    expect(journal.status.oldestAt).toBeGreaterThanOrEqual(before);
    journal.markDone(2);
    expect(await journal.append([bytes(10)])).toBe(6);
    await journal.close();
  });

  test('counts bytes toward its limit as well', async () => {
    const journal = await openJournal(dataDir, { maxPendingBytes: 10_000 });
    await expect(journal.append([bytes(10_000)])).rejects.toMatchObject({ code: 'full' });
    await journal.append([bytes(8_000)]);
    expect(journal.nearFull).toBe(true);
    await expect(journal.append([bytes(2_000)])).rejects.toMatchObject({ code: 'full' });
    journal.markDone(1);
    expect(await journal.append([bytes(2_000)])).toBe(2);
    await journal.close();
  });

  test('does not read a record that completes during the reading of others', async () => {
    const journal = await openJournal(dataDir, { segmentBytes: 100 });
    for (let i = 0; i < 6; i++) await journal.append([bytes(100)]);
    const seen: number[] = [];
    for await (const { sequence } of journal.recover()) {
      seen.push(sequence);
      journal.markDone(sequence);
      if (sequence === 2) for (const other of [3, 4]) journal.markDone(other);
    }
    expect(seen).toEqual([1, 2, 5, 6]);
    await journal.close();
  });

  test('closes once after earlier requests, and then accepts nothing', async () => {
    const journal = await openJournal(dataDir, { durability: 'power' });
    const appends = [1, 2, 3].map(() => journal.append([bytes(10)]));
    await Promise.all([journal.close(), journal.close()]);
    expect(await inspectJournals(dataDir)).toMatchObject([{ holder: undefined, state: 'sound', pending: 3 }]);
    expect(await Promise.all(appends)).toEqual([1, 2, 3]);
    await expect(journal.append([bytes(1)])).rejects.toMatchObject({ code: 'closed' });
    journal.markDone(1);
    await journal.close();
    const adopted = await adoptOnly(dataDir);
    expect(await sequences(adopted)).toEqual([1, 2, 3]);
    expect(await adoptJournal(dataDir, adopted.owner)).toBeUndefined();
    await adopted.close();
  });

  test('names a folder that it cannot create', async () => {
    const file = join(dataDir, 'file');
    await writeFile(file, '');
    await expect(openJournal(file)).rejects.toMatchObject({ code: 'io', message: expect.stringContaining(file) });
  });
});

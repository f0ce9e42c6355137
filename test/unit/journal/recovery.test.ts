import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { JournalError } from '../../../src/journal/errors.js';
import { journalFolder } from '../../../src/journal/journal-folder.js';
import { adoptableJournals, damagedFiles, openJournal } from '../../../src/journal/journals.js';
import { effort } from '../../support/effort.js';
import { type Acknowledged, adoptOnly, journalFiles, putJournalFiles, waiting, writeJournal } from './dead-journal.js';

const asPairs = (records: readonly Acknowledged[]) =>
  records.map(({ sequence, payload }) => [sequence, payload.toString('latin1')] as const);
const payloads = (...sizes: readonly number[]): readonly Buffer[] =>
  sizes.map((size, i) => Buffer.alloc(size, `${i}:record `));
const payload = fc.oneof(
  fc.uint8Array({ maxLength: 60 }),
  fc.string({ maxLength: 60 }).map((text) => Buffer.from(text)),
);

/** Returns the bytes of a file with one flipped bit. */
function flipped(bytes: Buffer, at: number, bit: number): Buffer {
  const copy = Buffer.from(bytes);
  copy.writeUInt8((copy[at] ?? 0) ^ (1 << bit), at);
  return copy;
}

describe('the journal of a dead process', () => {
  let dataDir: string;
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'palimpsest-recovery-'));
  });
  afterEach(() => rm(dataDir, { recursive: true, force: true }));

  /** Tries to adopt it. Returns the records, or the code of the error. */
  async function attempt(): Promise<{
    readonly records?: Awaited<ReturnType<typeof waiting>>;
    readonly code?: string;
  }> {
    try {
      const journal = await adoptOnly(dataDir);
      const records = await waiting(journal);
      await journal.close();
      return { records };
    } catch (error) {
      if (error instanceof JournalError) return { code: error.code };
      throw error;
    }
  }

  test('yields exactly the records before a cut at any byte of its last file', async () => {
    const run = async (contents: readonly Uint8Array[]): Promise<void> => {
      const { acknowledged, files } = await writeJournal(dataDir, contents);
      const [[name, bytes] = ['', Buffer.alloc(0)]] = files;
      for (let length = 1; length <= bytes.length; length++) {
        await putJournalFiles(dataDir, new Map([[name, bytes.subarray(0, length)]]));
        const journal = await adoptOnly(dataDir);
        const whole = acknowledged.filter(({ end }) => end <= length);
        expect(await waiting(journal)).toEqual(asPairs(whole));
        const isTorn = !acknowledged.some(({ end }) => end === length) && whole.length > 0;
        if (isTorn)
          expect(journal.torn).toMatchObject([
            { offset: whole.at(-1)?.end, length: length - (whole.at(-1)?.end ?? 0) },
          ]);
        const next = await journal.append([Buffer.from('next')]);
        expect((await waiting(journal)).at(-1)).toEqual([next, 'next']);
        await journal.close();
        const again = await adoptOnly(dataDir);
        expect([...again.torn, ...again.damage]).toEqual([]);
        expect(await waiting(again)).toEqual([...asPairs(whole), [whole.length + 1, 'next']]);
        await again.close();
      }
      await rm(journalFolder(dataDir), { recursive: true });
    };
    await fc.assert(fc.asyncProperty(fc.array(payload, { minLength: 1, maxLength: 5 }), run), {
      numRuns: effort(2, 8),
    });
  });

  test('loses at most one record to any flipped bit, names it, and keeps the file unchanged', async () => {
    const { acknowledged, files } = await writeJournal(dataDir, payloads(30, 0, 80, 25, 40), { segmentBytes: 200 });
    expect(files.size).toBeGreaterThan(2);
    const all = asPairs(acknowledged);
    for (const [name, bytes] of files) {
      for (let at = 0; at < bytes.length; at += effort(3, 1)) {
        const damaged = flipped(bytes, at, at % 8);
        await putJournalFiles(dataDir, new Map([...files, [name, damaged]]));
        const journal = await adoptOnly(dataDir);
        const saved = await waiting(journal);
        const missing = all
          .filter(([sequence]) => !saved.some(([one]) => one === sequence))
          .map(([sequence]) => sequence);
        expect(saved).toEqual(all.filter(([sequence]) => !missing.includes(sequence)));
        expect(missing.length).toBeLessThanOrEqual(1);
        expect(journal.loss.isUncounted || journal.loss.records.flat().every((one) => missing.includes(one))).toBe(
          true,
        );
        if (missing.length > 0 && !journal.loss.isUncounted)
          expect(journal.loss.records).toEqual([[missing[0], missing[0]]]);
        expect(journal.damage).toMatchObject([{ file: join(journalFolder(dataDir), name) }]);
        expect(await readFile(join(journalFolder(dataDir), `${name}.damaged`))).toEqual(damaged);
        await journal.close();
      }
    }
  });

  test('names file, place and loss of damage in the middle, delivers the rest, and keeps the file', async () => {
    const { acknowledged, files } = await writeJournal(dataDir, payloads(50, 60, 70, 80));
    const [[name, bytes] = ['', Buffer.alloc(0)]] = files;
    const start = acknowledged[1]?.end ?? 0;
    await putJournalFiles(dataDir, new Map([[name, flipped(bytes, start + 60, 3)]]));
    const file = join(journalFolder(dataDir), name);
    const damage = {
      file,
      offset: start,
      length: (acknowledged[2]?.end ?? 0) - start,
      readableBefore: 2,
      readableAfter: 1,
    };
    const journal = await adoptOnly(dataDir);
    expect(journal.damage).toEqual([damage]);
    expect(journal.loss).toEqual({ records: [[3, 3]], isUncounted: false });
    expect((await waiting(journal)).map(([sequence]) => sequence)).toEqual([1, 2, 4]);
    await journal.close();
    // A second process adopts it: same result, and the file is kept once.
    const again = await adoptOnly(dataDir);
    expect(again.loss).toEqual({ records: [[3, 3]], isUncounted: false });
    expect(await damagedFiles(dataDir)).toBe(1);
    for (const sequence of [1, 2, 4]) again.markDone(sequence);
    await again.close();
    expect(await readdir(journalFolder(dataDir))).toEqual([`${name}.damaged`]);
    expect(await readFile(`${file}.damaged`)).toEqual(flipped(bytes, start + 60, 3));
    expect(await adoptableJournals(dataDir)).toEqual([]);
  });

  test('loses nothing to damage in records that the database already has', async () => {
    const journal = await openJournal(dataDir);
    for (const payload of payloads(50, 60)) await journal.append([payload]);
    for (const sequence of [1, 2]) journal.markDone(sequence);
    for (const payload of payloads(70, 80)) await journal.append([payload]);
    const [[name, bytes] = ['', Buffer.alloc(0)]] = await journalFiles(dataDir);
    await journal.close();
    await putJournalFiles(dataDir, new Map([[name, flipped(bytes, bytes.indexOf('0:record') + 3, 3)]]));
    const adopted = await adoptOnly(dataDir);
    expect(adopted.loss).toEqual({ records: [], isUncounted: false });
    expect((await waiting(adopted)).map(([sequence]) => sequence)).toEqual([3, 4]);
    await adopted.close();
  });

  test('detects a lost file end by the next file', async () => {
    const { acknowledged, files } = await writeJournal(dataDir, payloads(50, 60, 70, 80), { segmentBytes: 250 });
    const [first = ''] = files.keys();
    const inFirst = acknowledged.filter(({ file }) => file === first);
    const cut = inFirst.at(-2)?.end ?? 0;
    await putJournalFiles(
      dataDir,
      new Map([...files, [first, (files.get(first) ?? Buffer.alloc(0)).subarray(0, cut)]]),
    );
    const journal = await adoptOnly(dataDir);
    expect(journal).toMatchObject({
      damage: [{ offset: cut, length: 0 }],
      loss: { records: [[inFirst.length, inFirst.length]] },
    });
    expect((await waiting(journal)).map(([sequence]) => sequence)).toEqual(
      [1, 2, 3, 4].filter((one) => one !== inFirst.length),
    );
    await journal.close();
  });

  test('cuts off zeros after the last record, as a power failure leaves them', async () => {
    const { acknowledged, files } = await writeJournal(dataDir, payloads(50, 60));
    const [[name, bytes] = ['', Buffer.alloc(0)]] = files;
    await putJournalFiles(dataDir, new Map([[name, Buffer.concat([bytes, Buffer.alloc(4_096)])]]));
    const journal = await adoptOnly(dataDir);
    expect(await waiting(journal)).toEqual(asPairs(acknowledged));
    expect((await stat(join(journalFolder(dataDir), name))).size).toBe(bytes.length);
    await journal.close();
  });

  test('rejects a frame of another file, also whole within a record', async () => {
    const other = await writeJournal(join(dataDir, 'other'), payloads(40, 40, 40));
    const [foreign = Buffer.alloc(0)] = other.files.values();
    const { acknowledged, files } = await writeJournal(dataDir, [Buffer.from('one'), foreign]);
    const [[name, bytes] = ['', Buffer.alloc(0)]] = files;
    await putJournalFiles(dataDir, new Map([[name, bytes.subarray(0, bytes.length - 1)]]));
    const { records } = await attempt();
    expect(records).toEqual(asPairs(acknowledged.slice(0, 1)));
  });

  test.each([
    [
      'power',
      'records that shared a sync which never ended are cut off, whichever of them the disk kept',
      { records: [1, 2] },
    ],
    ['process', 'the same damage is a loss where writing was acknowledging', { records: [1, 2, 4] }],
  ] as const)('durability %s: %s', async (durability, _what, expected) => {
    const journal = await openJournal(dataDir, { durability });
    const [one = Buffer.alloc(0), ...batch] = payloads(50, 60, 70, 80);
    await journal.append([one]);
    const [[name, { length: start }] = ['', Buffer.alloc(0)]] = await journalFiles(dataDir);
    // The first of these is written alone, because nothing else is pending. The others share one
    // later sync.
    await Promise.all(batch.map((bytes) => journal.append([bytes])));
    const [bytes = Buffer.alloc(0)] = (await journalFiles(dataDir)).values();
    await journal.close();
    const second = start + 44 + 60;
    await putJournalFiles(dataDir, new Map([[name, flipped(bytes, second + 50, 0)]]));
    const { records, code } = await attempt();
    expect({ code, records: records?.map(([sequence]) => sequence) }).toEqual(expected);
  });

  test('refuses a journal of a later format by name and leaves it unchanged', async () => {
    const { files } = await writeJournal(dataDir, payloads(50));
    const [[name, bytes] = ['', Buffer.alloc(0)]] = files;
    const newer = Buffer.from(bytes);
    newer.writeUInt32LE(7, 8);
    newer.writeUInt32LE(crc32(newer.subarray(0, 12)), 12);
    await putJournalFiles(dataDir, new Map([[name, newer]]));
    await expect(adoptOnly(dataDir)).rejects.toMatchObject({
      code: 'newer-format',
      message: expect.stringContaining('format 7'),
    });
    expect((await journalFiles(dataDir)).get(name)).toEqual(newer);
  });
});

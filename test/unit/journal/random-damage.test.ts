import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { journalFolder } from '../../../src/journal/journal-folder.js';
import { type Damage, damage, damaged } from '../../support/damage.js';
import { adoptOnly, putJournalFiles, waiting, writeJournal } from './dead-journal.js';

const RECORDS = 60;
let dataDir: string;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'palimpsest-damage-'));
});
afterEach(() => rm(dataDir, { recursive: true, force: true }));

test('returns every readable record once and in order, and names the rest, after 200 random damages', async () => {
  const contents = Array.from({ length: RECORDS }, (_, i) => Buffer.alloc(40 + ((i * 37) % 300), `${i + 1}:record `));
  const { acknowledged, files } = await writeJournal(dataDir, contents);
  const [[name, bytes] = ['', Buffer.alloc(0)]] = files;
  const starts = acknowledged.map(({ end, payload }) => end - payload.length - 44);
  const run = async (what: Damage): Promise<void> => {
    const after = damaged(bytes, what);
    await putJournalFiles(dataDir, new Map([[name, after]]));
    const journal = await adoptOnly(dataDir);
    const found = await waiting(journal);
    await journal.close();
    const whole = acknowledged.filter(({ end }, i) => after.includes(bytes.subarray(starts[i], end)));
    expect(found).toEqual(whole.map(({ sequence, payload }) => [sequence, payload.toString('latin1')]));
    // Every other record is named up to the last readable one. The rest is named by its bytes,
    // unless the file just ends.
    const last = whole.at(-1)?.sequence ?? 0;
    const lost = acknowledged
      .filter((one) => one.sequence < last && !whole.includes(one))
      .map(({ sequence }) => sequence);
    const named = journal.loss.records.flatMap(([first, end]) =>
      Array.from({ length: end - first + 1 }, (_, i) => first + i),
    );
    expect(named).toEqual(lost);
    const isNoted = journal.damage.length > 0 || journal.torn.length > 0;
    if (last < RECORDS && what.kind !== 'truncate') expect(isNoted).toBe(true);
    if (lost.length > 0 || journal.loss.isUncounted) {
      const [kept = ''] = (await readdir(journalFolder(dataDir))).filter((one) => one.endsWith('.damaged'));
      expect(await readFile(join(journalFolder(dataDir), kept))).toEqual(after);
    }
  };
  await fc.assert(fc.asyncProperty(damage, run), { numRuns: 200 });
});

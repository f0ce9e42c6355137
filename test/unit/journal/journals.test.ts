import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { journalFolder } from '../../../src/journal/journal-folder.js';
import { adoptableJournals, adoptJournal, inspectJournals, openJournal } from '../../../src/journal/journals.js';
import { effort } from '../../support/effort.js';
import { adoptOnly, journalFiles, putJournalFiles, waiting } from './dead-journal.js';
import { buildJournalWriter, type JournalWriter, startJournalWriter } from './journal-writer.js';

describe('journals of several processes', () => {
  let programs: string;
  let program: string;
  let dataDir: string;
  const writers: JournalWriter[] = [];
  const start = async (limitBytes?: number): Promise<JournalWriter> => {
    const writer = await startJournalWriter(program, limitBytes);
    writers.push(writer);
    return writer;
  };

  beforeAll(async () => {
    programs = await mkdtemp(join(tmpdir(), 'palimpsest-journal-program-'));
    program = await buildJournalWriter(programs);
  });
  afterAll(() => rm(programs, { recursive: true, force: true }));
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'palimpsest-journals-'));
  });
  afterEach(async () => {
    await Promise.all(writers.splice(0).map((writer) => writer.kill()));
    await rm(dataDir, { recursive: true, force: true });
  });

  test('lose no acknowledged record of a process that is killed repeatedly while writing', async () => {
    for (let run = 0; run < effort(8, 40); run++) {
      const size = [0, 20, 1_000, 30_000][run % 4] ?? 0;
      const doneBehind = run % 2 === 0 ? 0 : 3;
      const durability = run % 5 === 4 ? 'power' : 'process';
      const writer = await start();
      await writer.ask('open', dataDir, { durability, segmentBytes: 50_000, maxPending: 1_000_000 });
      const said = await writer.storm(20 + (run % 20) * 17, size, doneBehind);
      const last = said.at(-1) ?? 0;
      expect(said).toEqual(Array.from({ length: last }, (_, i) => i + 1));

      const journal = await adoptOnly(dataDir);
      const records = await waiting(journal);
      const [first = [0]] = records;
      expect(first[0]).toBeLessThanOrEqual(doneBehind === 0 ? 1 : last - doneBehind + 1);
      expect(records.length).toBeGreaterThanOrEqual(last - first[0] + 1);
      expect(records).toEqual(records.map((_, i) => [first[0] + i, `${first[0] + i}:${'x'.repeat(size)}`]));
      // A completion is written with the next record. So the last completed record may return
      // beside the incomplete ones.
      if (doneBehind > 0) expect(records.length).toBeLessThanOrEqual(doneBehind + 3);
      for (const [sequence] of records) journal.markDone(sequence);
      await journal.close();
      expect(await readdir(journalFolder(dataDir))).toEqual([]);
    }
  }, 180_000);

  test('have one writer each; only those of dead processes can be adopted, oldest first', async () => {
    const [one, two, three] = [await start(), await start(), await start()];
    const owners: unknown[] = [];
    for (const writer of [one, two, three]) owners.push((await writer.ask('open', dataDir)).value);
    expect(new Set(owners).size).toBe(3);
    await Promise.all([one, two, three].map((writer, i) => writer.ask('append', i, 10)));
    expect(await adoptableJournals(dataDir)).toEqual([]);
    expect(await adoptJournal(dataDir, String(owners[0]))).toBeUndefined();
    await two.kill();
    expect(await adoptableJournals(dataDir)).toEqual([owners[1]]);
    await one.kill();
    expect(await adoptableJournals(dataDir)).toEqual([owners[0], owners[1]]);
    expect((await three.ask('append', 7, 10)).value).toBe(2);
  });

  test('go to one of several concurrent adopters, and after its death to another', async () => {
    const owner = await start();
    const name = (await owner.ask('open', dataDir)).value;
    for (let n = 1; n <= 5; n++) await owner.ask('append', n, 10);
    await owner.kill();
    const adopters = await Promise.all([start(), start(), start(), start()]);
    const results = await Promise.all(adopters.map((adopter) => adopter.ask('adopt', dataDir, name)));
    expect(results.map(({ value }) => value).filter((value) => value !== undefined)).toEqual([5]);
    const winner = adopters[results.findIndex(({ value }) => value === 5)];
    await winner?.ask('done', 1);
    await winner?.ask('done', 2);
    await winner?.ask('append', 6, 10);
    await winner?.kill();
    const journal = await adoptOnly(dataDir);
    expect((await waiting(journal)).map(([sequence]) => sequence)).toEqual([3, 4, 5, 6]);
    for (const sequence of [3, 4, 5, 6]) journal.markDone(sequence);
    await journal.close();
    expect(await readdir(journalFolder(dataDir))).toEqual([]);
  });

  test('keep no lock of a dead process that has no records', async () => {
    const writer = await start();
    await writer.ask('open', dataDir);
    await writer.kill();
    expect(await readdir(journalFolder(dataDir))).toHaveLength(1);
    expect(await adoptableJournals(dataDir)).toEqual([]);
    const journal = await openJournal(dataDir);
    expect(await readdir(journalFolder(dataDir))).toEqual([`${journal.owner}.1.lock`]);
    await journal.close();
  });

  test('show their writers, waiting records and damage from outside, without changes', async () => {
    const [living, torn, corrupt] = [await start(), await start(), await start()];
    const owners: unknown[] = [];
    for (const writer of [living, torn, corrupt]) {
      owners.push((await writer.ask('open', dataDir, { what: 'palimpsest mcp', markDelayMs: 1_000_000 })).value);
      for (let n = 1; n <= 3; n++) await writer.ask('append', n, 100);
    }
    await torn.kill();
    await corrupt.kill();
    const files = await journalFiles(dataDir);
    const tornName = `${owners[1]}-1.wal`;
    const corruptName = `${owners[2]}-1.wal`;
    const folder = journalFolder(dataDir);
    await writeFile(join(folder, tornName), files.get(tornName)?.subarray(0, -5) ?? '');
    await writeFile(join(folder, corruptName), files.get(corruptName)?.fill(0, 200, 250) ?? '');
    const before = [await readdir(folder), await journalFiles(dataDir)];
    const seen = await inspectJournals(dataDir);
    expect([await readdir(folder), await journalFiles(dataDir)]).toEqual(before);
    expect(seen).toMatchObject([
      {
        owner: owners[0],
        holder: { pid: living.child.pid, what: 'palimpsest mcp' },
        state: 'sound',
        pending: 3,
        pendingBytes: 438,
        damage: [],
      },
      { owner: owners[1], holder: undefined, state: 'torn', pending: 2, damage: [{ file: join(folder, tornName) }] },
      {
        owner: owners[2],
        holder: undefined,
        state: 'corrupt',
        damage: [{ file: join(folder, corruptName), readableBefore: 0 }],
      },
    ]);
    expect(seen[0]?.oldestAt).toBeGreaterThan(Date.now() - 60_000);
  });

  test('are never reported damaged while they are written and trimmed', async () => {
    for (let looks = 0; looks <= 20; ) {
      const writer = await start();
      await writer.ask('open', dataDir, { segmentBytes: 4_000 });
      let running = true;
      const storm = writer.storm(5_000, 700, 2).finally(() => {
        running = false;
      });
      for (; running; looks++) {
        const held = (await inspectJournals(dataDir)).filter(({ holder }) => holder !== undefined);
        for (const journal of held) expect(journal).toMatchObject({ state: 'sound', damage: [], reason: undefined });
      }
      await storm;
    }
  });

  test('acknowledge only records on disk when a file may not grow, and continue with records that fit', async () => {
    const writer = await start(100_000);
    await writer.ask('open', dataDir);
    expect((await writer.ask('append', 1, 60_000)).value).toBe(1);
    const [[name = ''] = []] = await journalFiles(dataDir);
    const { size } = await stat(join(journalFolder(dataDir), name));
    expect(await writer.ask('append', 2, 60_000)).toMatchObject({
      code: 'no-space',
      message: expect.stringContaining(name),
    });
    expect((await stat(join(journalFolder(dataDir), name))).size).toBe(size);
    expect((await writer.ask('append', 3, 20_000)).value).toBe(2);
    await writer.kill();
    const journal = await adoptOnly(dataDir);
    expect(journal.damage).toEqual([]);
    expect((await waiting(journal)).map(([sequence, text]) => [sequence, text.slice(0, 2)])).toEqual([
      [1, '1:'],
      [2, '3:'],
    ]);
    await journal.close();
  });

  test('cannot be adopted twice at a time, even if the dead process left no lock', async () => {
    const writer = await start();
    await writer.ask('open', dataDir);
    await writer.ask('append', 1, 10);
    const files = await journalFiles(dataDir);
    await writer.kill();
    await putJournalFiles(dataDir, files);
    const journal = await adoptOnly(dataDir);
    const other = await start();
    expect((await other.ask('adoptable', dataDir)).value).toEqual([]);
    expect((await other.ask('adopt', dataDir, journal.owner)).value).toBeUndefined();
    await journal.close();
    expect((await other.ask('adopt', dataDir, journal.owner)).value).toBe(1);
  });
});

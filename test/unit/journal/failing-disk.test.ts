import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { journalFolder } from '../../../src/journal/journal-folder.js';
import { openJournal } from '../../../src/journal/journals.js';
import { adoptOnly, journalFiles, waiting } from './dead-journal.js';

const run = (command: string, ...args: readonly string[]): unknown => execFileSync(command, args, { stdio: 'ignore' });
const mountSmall = (folder: string): unknown => run('mount', '-t', 'tmpfs', '-o', 'size=512k', 'tmpfs', folder);

/** Returns whether this machine permits an operation; tries it in a temporary folder. */
function can(attempt: (folder: string) => void): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'palimpsest-probe-'));
  try {
    attempt(folder);
    return true;
  } catch {
    return false;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const canMount = can((folder) => {
  mountSmall(folder);
  run('umount', folder);
});
const canFreeze = can((folder) => {
  const file = join(folder, 'file');
  writeFileSync(file, '');
  run('chattr', '+i', file);
  run('chattr', '-i', file);
});

describe.each(['process', 'power'] as const)('a failing disk, durability %s', (durability) => {
  let dataDir: string;
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'palimpsest-disk-'));
  });
  afterEach(() => rm(dataDir, { recursive: true, force: true }));
  const letters = async (journal: Parameters<typeof waiting>[0]) =>
    (await waiting(journal)).map(([sequence, text]) => `${sequence}${text[0]}`);

  (canMount ? test : test.skip)(
    'a full disk refuses the record, loses none, and takes the next when there is space again',
    async () => {
      mountSmall(dataDir);
      try {
        const journal = await openJournal(dataDir, { durability });
        expect(await journal.append([Buffer.alloc(100_000, 'a')])).toBe(1);
        await writeFile(join(dataDir, 'filler'), Buffer.alloc(380_000));
        const before = await journalFiles(dataDir);
        const refused = await Promise.allSettled(
          ['b', 'c'].map((letter) => journal.append([Buffer.alloc(100_000, letter)])),
        );
        const reason = { code: 'no-space', message: expect.stringContaining('free some space') };
        expect(refused).toMatchObject([{ reason }, { reason }]);
        expect(await journalFiles(dataDir)).toEqual(before);
        expect(journal.status.pending).toBe(1);
        await rm(join(dataDir, 'filler'));
        expect(await journal.append([Buffer.alloc(100_000, 'd')])).toBe(2);
        expect(await letters(journal)).toEqual(['1a', '2d']);
        await journal.close();
      } finally {
        run('umount', dataDir);
      }
    },
  );

  (canMount ? test : test.skip)('a disk without space for the first file leaves none behind', async () => {
    mountSmall(dataDir);
    try {
      const journal = await openJournal(dataDir, { durability });
      await writeFile(join(dataDir, 'filler'), Buffer.alloc(500_000)).catch(() => undefined);
      await expect(journal.append([Buffer.alloc(100_000)])).rejects.toMatchObject({ code: 'no-space' });
      await rm(join(dataDir, 'filler'));
      expect(await journal.append([Buffer.from('a')])).toBe(1);
      expect(await letters(journal)).toEqual(['1a']);
      await journal.close();
    } finally {
      run('umount', dataDir);
    }
  });

  (canFreeze ? test : test.skip)(
    'after a failure that cannot be undone nothing more is taken, and what was acknowledged is found',
    async () => {
      const journal = await openJournal(dataDir, { durability });
      await journal.append([Buffer.from('a')]);
      const [name = ''] = (await journalFiles(dataDir)).keys();
      const file = join(journalFolder(dataDir), name);
      run('chattr', '+i', file);
      await expect(journal.append([Buffer.from('b')])).rejects.toMatchObject({
        code: 'unwritable',
        message: expect.stringContaining(file),
      });
      run('chattr', '-i', file);
      await expect(journal.append([Buffer.from('c')])).rejects.toMatchObject({
        code: 'closed',
        message: expect.stringContaining(file),
      });
      await journal.close();
      const adopted = await adoptOnly(dataDir);
      expect(await letters(adopted)).toEqual(['1a']);
      await adopted.close();
    },
  );
});

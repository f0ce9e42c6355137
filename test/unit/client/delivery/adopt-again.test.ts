import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ClientJournal } from '../../../../src/client/delivery/client-journal.js';
import { encodeWrite } from '../../../../src/client/delivery/write-record.js';
import { inspectJournals, openJournal } from '../../../../src/journal/journals.js';
import { encodePayload } from '../../../../src/journal/payload.js';
import { RefusedNote } from '../../../../src/journal/refused-note.js';
import { sessionId } from '../../../../src/objects/ids.js';

const ALL = ['s0', 's1', 's2', 's3'].map(sessionId);
let dataDir: string;
let journal: ClientJournal;

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'palimpsest-adopt-'));
  const dead = await openJournal(dataDir, { segmentBytes: 200 });
  for (const session of ALL) await dead.append(encodePayload(encodeWrite({ session, files: [], heads: [], at: 1 })));
  await dead.close();
  journal = await ClientJournal.open({ dataDir, durability: 'process', what: 'test', onNotice: () => undefined });
});
afterEach(async () => {
  await journal.close();
  await rm(dataDir, { recursive: true });
});

test('continues a partly read journal at the next adoption', async () => {
  const folder = join(dataDir, 'journal');
  const last = join(
    folder,
    (await readdir(folder))
      .filter((one) => one.endsWith('.wal'))
      .sort()
      .at(-2) ?? '',
  );
  const seen: string[] = [];
  let moved: Promise<unknown> | undefined;
  const adopting = journal.adoptAll(({ write }) => {
    seen.push(write.session);
    // Simulates a disk error on the last file.
    moved ??= rename(last, `${last}.x`).then(() => mkdir(last));
  });
  await expect(adopting).rejects.toThrow();
  await moved;
  expect(seen.length).toBeLessThan(ALL.length);
  await rm(last, { recursive: true });
  await rename(`${last}.x`, last);
  await journal.adoptAll(({ write }) => void seen.push(write.session));
  expect(seen).toEqual(ALL);
});

test('waits for a running adoption until everything is handed over', async () => {
  const seen: string[] = [];
  const first = journal.adoptAll(({ write }) => void seen.push(write.session));
  // By now the first adopter holds the lock of the journal.
  while (journal.waiting === 0) await new Promise((resolve) => setImmediate(resolve));
  expect(seen).toEqual([]);
  await journal.adoptAll(() => undefined);
  expect(seen).toEqual(ALL);
  await first;
});

test('drops the note of a dead process’s refusals once the database accepts an entry of its journal', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'palimpsest-adopt-'));
  try {
    const dead = await openJournal(folder);
    for (const session of ALL) await dead.append(encodePayload(encodeWrite({ session, files: [], heads: [], at: 1 })));
    const note = { session: 's0', steps: null, records: 1, reason: 'read only', at: new Date().toISOString() };
    dead.noteRefused(() => [note]);
    await dead.close();
    const next = await ClientJournal.open({
      dataDir: folder,
      durability: 'process',
      what: 'test',
      onNotice: () => undefined,
    });
    await next.adoptAll(({ write, receipt }) => {
      if (write.session === 's0') receipt.done();
    });
    await next.close();
    expect(await inspectJournals(folder)).toMatchObject([{ pending: 3, refused: [] }]);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('builds a note of thousands of refusals once when it is written, not per refusal', async () => {
  const note = new RefusedNote(dataDir, 'any');
  let asked = 0;
  for (let i = 0; i < 10_000; i++)
    note.set(() => {
      asked++;
      return [];
    });
  await note.written();
  expect(asked).toBe(1);
});

import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createContextClient } from '../../../src/harness/create-client.js';
import { openClient } from '../../../src/host/open-client.js';
import { readSettings } from '../../../src/host/settings.js';
import { findingsOf } from '../../../src/maintenance/findings.js';
import { inspectDataFolder } from '../../../src/maintenance/inspect-data-folder.js';

describe.each([
  ['newer', '{"format":1000000}', 'data-newer', 'format 1000000'],
  ['damaged', '{"form', 'data-corrupt', 'does not say which format'],
  ['of no format', '{"format":"one"}', 'data-corrupt', 'does not say which format'],
  ['missing beside a database', undefined, 'data-corrupt', 'holds a database (golden)'],
])('a data folder whose marker is %s', (_what, marker, code, said) => {
  let dataDir: string;
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'palimpsest-format-'));
    await mkdir(join(dataDir, 'golden'));
    if (marker !== undefined) await writeFile(join(dataDir, 'palimpsest.json'), marker);
  });
  afterEach(() => rm(dataDir, { recursive: true, force: true }));

  test('is refused before a client could acknowledge anything, and nothing is written there', async () => {
    const before = await readdir(dataDir);
    const refusal = { code, message: expect.stringContaining(said) };
    await expect(createContextClient({ dataDir, roots: [dataDir], cwd: dataDir })).rejects.toMatchObject(refusal);
    const settings = readSettings({}, { data: dataDir });
    await expect(openClient(settings, { roots: [dataDir], cwd: dataDir })).rejects.toMatchObject(refusal);
    // The journals for a remote node are in the same folder.
    const remote = readSettings({ XTDB_URL: 'http://127.0.0.1:9' }, { data: dataDir });
    await expect(openClient(remote, { roots: [dataDir], cwd: dataDir })).rejects.toMatchObject(refusal);
    expect(await readdir(dataDir)).toEqual(before);
  });

  test('is unhealthy for the doctor, which names the reason', async () => {
    const inspected = await inspectDataFolder(dataDir);
    expect(inspected).toMatchObject({ formatTrouble: { message: expect.stringContaining(said) } });
    expect(findingsOf(inspected, Date.now())).toMatchObject([
      { code: inspected.formatTrouble?.code, weight: 'repair' },
    ]);
  });
});

test('is healthy if it is missing or holds no database yet', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'palimpsest-format-'));
  for (const folder of [dataDir, join(dataDir, 'none')]) {
    const inspected = await inspectDataFolder(folder);
    expect(inspected.formatTrouble).toBeNull();
    expect(findingsOf(inspected, Date.now())).toEqual([]);
  }
  await rm(dataDir, { recursive: true });
});

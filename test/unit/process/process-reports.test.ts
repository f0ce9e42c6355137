import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { identifyProcess } from '../../../src/process/process-identity.js';
import { TrackerReportFile, type TrackerState, trackerReports } from '../../../src/process/process-reports.js';

const STATE: TrackerState = {
  attached: 3,
  orphaned: 1,
  resuming: 0,
  sweptFolders: 0,
  unreadable: [{ path: '/a.ts', reason: 'no-permission' }],
};

describe('tracking reports of a process', () => {
  let dataDir: string;
  const folder = () => join(dataDir, 'trackers');

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'palimpsest-trackers-'));
  });
  afterEach(() => rm(dataDir, { recursive: true, force: true }));

  test('are read in their last form, by their user alone, until they are removed', async () => {
    expect(await trackerReports(dataDir)).toEqual([]);
    const file = new TrackerReportFile(dataDir, 'a test');
    await file.remove();
    expect(await readdir(dataDir)).toEqual([]);
    await file.write({ ...STATE, attached: 1 });
    await file.write(STATE);
    const [report, ...others] = await trackerReports(dataDir);
    expect(others).toEqual([]);
    expect(report).toMatchObject({ ...STATE, pid: process.pid, what: 'a test' });
    const [name = ''] = await readdir(folder());
    expect((await stat(join(folder(), name))).mode & 0o777).toBe(0o600);
    await file.remove();
    await file.remove();
    expect(await trackerReports(dataDir)).toEqual([]);
  });

  test('do not make a deleted data folder anew', async () => {
    await rm(dataDir, { recursive: true });
    await expect(new TrackerReportFile(dataDir, 'a test').write(STATE)).rejects.toMatchObject({ code: 'ENOENT' });
    expect(existsSync(dataDir)).toBe(false);
  });

  test('are separate for two clients of one process', async () => {
    const files = ['one', 'two'].map((what) => new TrackerReportFile(dataDir, what));
    await Promise.all(files.map((file) => file.write(STATE)));
    expect((await trackerReports(dataDir)).map(({ what }) => what).sort()).toEqual(['one', 'two']);
  });

  test('are ignored for a killed process, and removed with the next first report, like incomplete ones', async () => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6); console.log("up")'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    const identity = await identifyProcess(child.pid ?? 0);
    const mine = new TrackerReportFile(dataDir, 'mine');
    await mine.write(STATE);
    const [name = ''] = await readdir(folder());
    const text = JSON.parse(await readFile(join(folder(), name), 'utf8'));
    await writeFile(join(folder(), 'other.json'), JSON.stringify({ ...text, ...identity, what: 'other' }));
    await writeFile(join(folder(), 'half.json'), '{"pid":');
    expect((await trackerReports(dataDir)).map(({ what }) => what).sort()).toEqual(['mine', 'other']);
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect((await trackerReports(dataDir)).map(({ what }) => what)).toEqual(['mine']);
    await mine.write({ ...STATE, attached: 4 });
    expect(await readdir(folder())).toHaveLength(3);
    await new TrackerReportFile(dataDir, 'next').write(STATE);
    expect(await readdir(folder())).toHaveLength(2);
  });
});

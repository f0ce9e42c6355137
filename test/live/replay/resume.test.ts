import { spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { replayFile } from '../../../src/replay/replay-file.js';
import type { ReplayReport } from '../../../src/replay/report/replay-report.js';
import { testAddress } from '../../support/context.js';
import { config, longRecording, recordingFolder, suiteDatabase } from '../../support/replays.js';
import { runCli } from '../../support/run-cli.js';

let recordings: Awaited<ReturnType<typeof recordingFolder>>;
let dataDir: string;
beforeEach(async () => {
  recordings = await recordingFolder();
  dataDir = await mkdtemp(join(tmpdir(), 'palimpsest-replay-data-'));
});
afterEach(async () => {
  await runCli(['node', 'stop', '--data', dataDir]);
  await recordings.remove();
  await rm(dataDir, { recursive: true, force: true });
});

const keptLines = async (): Promise<number> => {
  const [log] = await readdir(join(dataDir, 'replays')).catch(() => []);
  return log === undefined ? 0 : (await readFile(join(dataDir, 'replays', log), 'utf8')).split('\n').length - 1;
};

/** Kills the command the hard way once it has got so far. */
async function killedAfter(contexts: number, args: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, ['dist/cli.js', ...args], {
    env: { ...process.env, NODE_OPTIONS: undefined },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    said += chunk;
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const until = Date.now() + 90_000;
  // The only thing that can be seen of another process is what it wrote.
  while ((await keptLines()) < contexts && child.exitCode === null && Date.now() < until) await delay(5);
  expect({ exitCode: child.exitCode, said: child.exitCode === null ? '' : said }).toEqual({ exitCode: null, said: '' });
  child.kill('SIGKILL');
  await ended;
}

describe('an interrupted replay', () => {
  test('killed twice at any point goes on where it was and ends with the digest of one that was not', async () => {
    const lines = longRecording(20);
    const here = lines.place;
    for (let i = 0; i < 10; i++)
      lines.user(`undone ${i}`).reads(`toolu_u${i}`, `/p/src/undone-${i}.ts`, `export const undone = ${i};\n`).says('read');
    lines.back(here);
    for (let i = 0; i < 20; i++) lines.user(`on ${i}`).reads(`toolu_o${i}`, `/p/src/on-${i}.ts`, `export const on = ${i};\n`).says('read');
    const path = await recordings.write('long.jsonl', lines.text);
    const whole = await replayFile(path, suiteDatabase(), { config: config() });
    const configFile = await recordings.write('config.json', JSON.stringify({ tokens: false }));
    const args = ['replay', path, '--data-dir', dataDir, '--config', configFile, '--json'];
    expect(whole.sessions.map(({ relation }) => relation)).toEqual([undefined, 'branch']);
    await killedAfter(9, args);
    await killedAfter(50, args);
    // In the branch, behind what was undone.
    await killedAfter((whole.sessions[0]?.contexts ?? 0) + 5, args);
    const { code, stdout, stderr } = await runCli(args);
    expect({ code, said: code === 0 ? '' : `${stdout}${stderr}` }).toEqual({ code: 0, said: '' });
    expect(JSON.parse(stdout) as ReplayReport).toEqual(JSON.parse(JSON.stringify(whole)));
    expect(await keptLines()).toBe(whole.contexts.count);
  }, 180_000);

  test('that was finished is compared, writes nothing and has the same report', async () => {
    const path = await recordings.write('a.jsonl', longRecording(3).text);
    const database = { address: testAddress(), dataDir, close: async () => undefined };
    const options = { config: config(), variant: `again-${process.pid}-${Date.now()}` };
    const first = await replayFile(path, database, options);
    expect(await replayFile(path, database, options)).toEqual(first);
  });

  test('into a session that holds something else is refused', async () => {
    const into = `mine-${process.pid}-${Date.now()}`;
    const one = await recordings.write('one.jsonl', longRecording(3).text);
    const two = await recordings.write('two.jsonl', longRecording(3, 1).text);
    const database = { address: testAddress(), dataDir, close: async () => undefined };
    await replayFile(one, database, { config: config(), into });
    const refused = replayFile(two, database, { config: config(), into });
    await expect(refused).rejects.toMatchObject({ code: 'other-session', message: expect.stringContaining(into) });
    const shorter = await recordings.write('three.jsonl', longRecording(1).text);
    await expect(replayFile(shorter, database, { config: config(), into })).rejects.toMatchObject({ code: 'other-session' });
  });
});

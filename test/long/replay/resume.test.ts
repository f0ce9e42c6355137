import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { replayFile } from '../../../src/lab/report/replay-file.js';
import type { ReplayReport } from '../../../src/lab/report/replay-report.js';
import { testAddress } from '../../support/context.js';
import { effort } from '../../support/effort.js';
import { config, longRecording, recordingFolder, suiteDatabase } from '../../support/replays.js';
import { runCli } from '../../support/run-cli.js';

const EVERY_PLACE = effort(0, 1) === 1;
const KILL_AT = join(import.meta.dirname, '..', '..', 'support', 'kill-at.mjs');

let recordings: Awaited<ReturnType<typeof recordingFolder>>;
let dataDir: string;
beforeEach(async () => {
  recordings = await recordingFolder();
  dataDir = join(recordings.folder, 'data');
});
afterEach(async () => {
  await runCli(['node', 'stop', '--data', dataDir]);
  await recordings.remove();
});

const keptLines = async (): Promise<number> => {
  const [log] = await readdir(join(dataDir, 'replays')).catch(() => []);
  return log === undefined ? 0 : (await readFile(join(dataDir, 'replays', log), 'utf8')).split('\n').length - 1;
};

/**
 * Runs the command until it kills itself before or after the n-th stored measure or journal record.
 */
async function killedAt(
  place: `${'line' | 'record'} ${'before' | 'after'} ${number}`,
  args: readonly string[],
): Promise<void> {
  const child = spawn(process.execPath, ['--import', KILL_AT, 'dist/cli.js', ...args], {
    env: { ...process.env, NODE_OPTIONS: undefined, PALIMPSEST_KILL_AT: place },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      said += chunk;
    });
  }
  const [code, signal] = await once(child, 'close');
  expect({ code, signal, said: signal === null ? said : '' }).toEqual({ code: null, signal: 'SIGKILL', said: '' });
}

describe('an interrupted replay', () => {
  test('continues after kills at several places and ends with the same digest', async () => {
    const lines = longRecording(20);
    const here = lines.place;
    for (let i = 0; i < 10; i++)
      lines
        .user(`undone ${i}`)
        .reads(`toolu_u${i}`, `/p/src/undone-${i}.ts`, `export const undone = ${i};\n`)
        .says('read');
    lines.back(here);
    for (let i = 0; i < 20; i++)
      lines.user(`on ${i}`).reads(`toolu_o${i}`, `/p/src/on-${i}.ts`, `export const on = ${i};\n`).says('read');
    const path = await recordings.write('long.jsonl', lines.text);
    const whole = await replayFile(path, suiteDatabase(), { config: config() });
    const configFile = await recordings.write('config.json', JSON.stringify({ tokens: false }));
    const args = ['replay', path, '--data', dataDir, '--config', configFile, '--json'];
    expect(whole.sessions.map(({ relation }) => relation)).toEqual([undefined, 'branch']);
    if (EVERY_PLACE) {
      await killedAt('line after 9', args);
      expect(await keptLines()).toBe(9);
      await killedAt('record before 60', args);
    }
    await killedAt('record after 60', args);
    // In the branch, after the undone part.
    const left = whole.sessions[0]?.contexts ?? 0;
    await killedAt(`line before ${left + 5 - (await keptLines())}`, args);
    expect(await keptLines()).toBe(left + 4);
    const { code, stdout, stderr } = await runCli(args);
    expect({ code, said: code === 0 ? '' : `${stdout}${stderr}` }).toEqual({ code: 0, said: '' });
    expect(JSON.parse(stdout) as ReplayReport).toEqual(JSON.parse(JSON.stringify(whole)));
    expect(await keptLines()).toBe(whole.contexts.count);
  });

  test('is compared if it was finished, writes nothing, and has the same report', async () => {
    const path = await recordings.write('a.jsonl', longRecording(3).text);
    const database = { address: testAddress(), dataDir, close: async () => undefined };
    const options = { config: config(), variant: `again-${process.pid}-${Date.now()}` };
    const first = await replayFile(path, database, options);
    expect(await replayFile(path, database, options)).toEqual(first);
  });

  test('is refused for a session with other content', async () => {
    const into = `mine-${process.pid}-${Date.now()}`;
    const one = await recordings.write('one.jsonl', longRecording(3).text);
    const two = await recordings.write('two.jsonl', longRecording(3, 1).text);
    const database = { address: testAddress(), dataDir, close: async () => undefined };
    await replayFile(one, database, { config: config(), into });
    const refused = replayFile(two, database, { config: config(), into });
    await expect(refused).rejects.toMatchObject({ code: 'other-session', message: expect.stringContaining(into) });
    const shorter = await recordings.write('three.jsonl', longRecording(1).text);
    await expect(replayFile(shorter, database, { config: config(), into })).rejects.toMatchObject({
      code: 'other-session',
    });
  });
});

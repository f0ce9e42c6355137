import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { cliPath } from '../../support/mcp-clients.js';
import { runCli } from '../../support/run-cli.js';

const KILL_AT = join(import.meta.dirname, '..', '..', 'support', 'kill-at.mjs');
/** More files than any of these programs writes. */
const MOST = 60;

let folder: string;
let dataDir: string;
let project: string;
beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-left-')));
  [dataDir, project] = [join(folder, 'data'), join(folder, 'project')];
  await mkdir(project);
});
afterEach(async () => {
  await runCli(['node', 'stop', '--data', dataDir]);
  await rm(folder, { recursive: true, force: true });
});

/** Returns the files with names of drafts. A draft's name begins with that of the finished file. */
const drafts = async (): Promise<readonly string[]> =>
  (await readdir(folder, { recursive: true })).filter((path) =>
    /\.draft$|\.(?:json|lock)\.|filesystem-id\.|^\.palimpsest/.test(basename(path)),
  );

const REQUESTS = [
  {
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'a test', version: '1' } },
  },
  { method: 'notifications/initialized' },
  { id: 2, method: 'tools/call', params: { name: 'write', arguments: { path: 'a.txt', content: 'text' } } },
].map((request) => `${JSON.stringify({ jsonrpc: '2.0', ...request })}\n`);

/**
 * Runs a program that kills itself just before its n-th whole file gets its name. Returns false if
 * it writes fewer.
 */
async function isKilled(n: number, args: readonly string[], requests: readonly string[] = []): Promise<boolean> {
  const child = spawn(process.execPath, ['--import', KILL_AT, cliPath, ...args, '--data', dataDir], {
    cwd: project,
    env: { ...process.env, NODE_OPTIONS: undefined, PALIMPSEST_KILL_AT: `name before ${n}` },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  child.stdin.on('error', () => undefined);
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (line.includes('"id":2')) child.stdin.end();
  });
  if (requests.length === 0) child.stdin.end();
  else child.stdin.write(requests.join(''));
  const [code, signal] = await new Promise<readonly [number | null, string | null]>((resolve) => {
    child.on('close', (...ended) => resolve(ended));
  });
  if (signal === 'SIGKILL') return true;
  expect([code, signal]).toEqual([0, null]);
  return false;
}

const START = { args: ['node', 'start'], requests: [] };
const SERVE = { args: ['mcp'], requests: REQUESTS };

test('the next start removes what kill -9 left at any point of a start and of a call', async () => {
  const left = new Set<string>();
  for (const { args, requests } of [START, SERVE]) {
    let goesOn = true;
    for (let n = 1; goesOn && n <= MOST; n++) {
      // Runs twice, because the second run does not write the files that the first run has
      // finished.
      for (let run = 0; run < 2; run++) {
        goesOn = await isKilled(n, args, requests);
        for (const path of await drafts()) left.add(path);
      }
    }
  }
  expect(await isKilled(MOST, SERVE.args, SERVE.requests)).toBe(false);
  expect(await drafts()).toEqual([]);
  const kinds = [
    /palimpsest\.json\./,
    /start\.lock\./,
    /node\.json\./,
    /users\//,
    /journal\/.*\.lock\./,
    /sessions\/.*\.lock\./,
    /project\/\.palimpsest/,
  ];
  expect(kinds.filter((kind) => ![...left].some((path) => kind.test(path)))).toEqual([]);
});

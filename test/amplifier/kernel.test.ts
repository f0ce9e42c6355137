import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Serve, startServe, temporaryRoot } from '../support/mcp-clients.js';

const run = promisify(execFile);
const MODULE = resolve('integrations/amplifier/amplifier-module-context-palimpsest');
const KERNEL = '2.0.2';
const PACKAGES = [`amplifier-core==${KERNEL}`, 'pytest==9.2.0', 'pytest-asyncio==1.5.0'];
const LIMIT_MS = 240_000;

let root: string;
let remove: () => Promise<void>;
let serve: Serve;
let python: string;

/**
 * Returns a virtual environment with the kernel and our module from this checkout. First use
 * creates it in the user's cache folder.
 */
async function environment(): Promise<string> {
  const folder = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'palimpsest', `amplifier-${KERNEL}`);
  const program = join(folder, 'bin', 'python');
  if (!existsSync(program)) await run('python3', ['-m', 'venv', folder], { timeout: LIMIT_MS });
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
  await run(program, [...pip, ...PACKAGES], { timeout: LIMIT_MS });
  await run(program, [...pip, '--no-deps', '--editable', MODULE], { timeout: LIMIT_MS });
  return program;
}

beforeAll(async () => {
  ({ root, remove } = await temporaryRoot());
  [python, serve] = await Promise.all([environment(), startServe([], root)]);
}, 2 * LIMIT_MS);

afterAll(async () => {
  expect(await serve.close()).toBe(0);
  await remove();
});

test('the kernel takes our module: its behavioural tests, its validator, ten turns in two processes', async () => {
  const env = {
    ...process.env,
    PALIMPSEST_URL: serve.url,
    PALIMPSEST_TOKEN: serve.token ?? '',
    PYTHONDONTWRITEBYTECODE: '1',
  };
  const work = run(python, ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', 'tests'], {
    cwd: MODULE,
    env,
    timeout: LIMIT_MS,
  });
  const { stdout } = await work.catch((error: { readonly stdout?: string; readonly stderr?: string }) => {
    throw new Error(`pytest failed:\n${(error.stdout ?? '').slice(-8_000)}\n${(error.stderr ?? '').slice(-2_000)}`);
  });
  expect(stdout).toMatch(/\d+ passed/);
  expect(stdout).not.toMatch(/failed|skipped|error/i);
});

import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { stopNode } from '../../../src/node/stop-node.js';
import { cliPath } from '../../support/mcp-clients.js';

const run = promisify(execFile);

/** Releases of Node after the one that the suites run on, from the registry of packages. */
describe.each(['22', '24'])('Node %s', (release) => {
  let folder: string;
  let node: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'palimpsest-newer-'));
    await writeFile(join(folder, 'package.json'), '{"private":true}');
    await run('npm', ['install', '--no-audit', '--no-fund', `node@${release}`], { cwd: folder });
    node = join(folder, 'node_modules', 'node', 'bin', 'node');
  });
  afterAll(async () => {
    await stopNode(join(folder, 'data'));
    await rm(folder, { recursive: true, force: true });
  });

  const said = (...args: readonly string[]) => run(node, [cliPath, ...args], { cwd: folder });

  test('is the one that runs', async () => {
    expect((await run(node, ['--version'])).stdout).toMatch(new RegExp(`^v${release}\\.`));
  });

  test.each(['--help', 'log --help', 'report --help', 'verify --help', 'node --help'])(
    '%s prints the help without a line on stderr',
    async (args) => {
      const { stdout, stderr } = await said(...args.split(' '));
      expect(stdout).toMatch(/^Usage: palimpsest/);
      expect(stderr).toBe('');
    },
  );

  test('starts a node and reads from it without a line on stderr', async () => {
    const data = ['--data', join(folder, 'data')];
    await said('node', 'start', ...data, '--profile', 'memory');
    expect(await said('sessions', ...data)).toEqual({ stdout: expect.stringContaining('no sessions'), stderr: '' });
    expect(await said('verify', '--all', ...data)).toMatchObject({ stderr: '' });
  });
});

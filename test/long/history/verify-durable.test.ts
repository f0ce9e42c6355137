import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createContextClient, stopNode } from '../../../src/index.js';
import { HarnessApi } from '../../support/harness-api.js';
import { startServe } from '../../support/mcp-clients.js';
import { runCli } from '../../support/run-cli.js';

describe('proofs of a database on disk', () => {
  let folder: string;
  let dataDir: string;

  beforeEach(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-proof-')));
    dataDir = join(folder, 'data');
  });

  afterEach(async () => {
    await stopNode(dataDir);
    await rm(folder, { recursive: true, force: true });
  });

  test('survive kill -9 right after the delivery and a restart of the node; the exit code reports it', async () => {
    const root = join(folder, 'a.ts');
    await writeFile(root, 'const a = 1;\n');
    const serve = await startServe(['--data', dataDir, '--profile', 'rocksdb'], folder);
    const api = new HarnessApi(serve);
    const { id } = await api.call('openSession', undefined, { system_prompt: 'You are a coding agent.' });
    const handed: string[] = [];
    for (let turn = 1; turn <= 3; turn++) {
      const { record } = await api.call('beginTurn', id, { messages: [{ role: 'user', content: `turn ${turn}` }] });
      handed.push(record.sha256);
      const call = { id: `call_${turn}`, name: 'Read', args: { file_path: root }, content: 'const a = 1;\n' };
      await api.call('reportToolCalls', id, { calls: [call] });
    }
    const { record } = await api.call('beginTurn', id, { format: 'messages' });
    handed.push(record.sha256);
    await serve.kill();
    await api.close();
    await stopNode(dataDir);
    await rm(root);

    // The next client of the data folder delivers what the dead one had acknowledged.
    const next = await createContextClient({ dataDir, roots: [folder], cwd: folder });
    await next.client.backpressure(0, 60_000);
    expect(await next.close()).toEqual({ unflushed: 0 });
    const verified = await runCli(['verify', id, '--data', dataDir, '--json']);
    expect({ code: verified.code, stderr: verified.stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(verified.stdout)).toMatchObject({
      ok: true,
      sessions: [
        { session: id, contexts: { total: 4, equal: 4, byDelivery: { http: 4 } }, answers: { total: 3, equal: 3 } },
      ],
    });
    const people = await runCli(['verify', '--all', '--data', dataDir]);
    expect(people.stdout).toContain('contexts  4 of 4 rebuilt byte for byte (4 http)');
    expect((await runCli(['verify', 'nobody', '--data', dataDir])).code).toBe(1);
    expect((await runCli(['verify', '--data', dataDir])).code).toBe(64);
    // The test starts a node twice and the program five times, which takes seconds each on a busy
    // machine.
  });
});

import { cp, mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type FoundCheckpoint, listCheckpoints, manifestText } from '../../src/node/checkpoint.js';
import { FolderStore } from '../../src/node/folder-store.js';
import { stopNode } from '../../src/node/stop-node.js';
import { stdioAgent } from '../support/mcp-clients.js';
import { type CliResult, runCli } from '../support/run-cli.js';
import { type PostgresServer, postgresServer } from './postgres-server.js';

describe('checkpoints of an index', () => {
  let folder: string;
  let postgres: PostgresServer;
  let store: string;
  const nodes = new Set<string>();
  const data = (name: string): string => join(folder, name);

  const start = (name: string, more: readonly string[] = [], database = 'log'): Promise<CliResult> => {
    nodes.add(name);
    const log = `postgresql://${postgres.user}@127.0.0.1:${postgres.port}/${database}`;
    const flags = ['--profile', 'postgres', '--log', log, '--password-file', join(folder, 'password')];
    return runCli(['node', 'start', '--data', data(name), ...flags, ...more]);
  };

  const work = async (name: string, session: string, texts: readonly string[]): Promise<void> => {
    const agent = await stdioAgent(join(folder, 'project'), ['--data', data(name), '--session', session]);
    try {
      for (const text of texts) {
        expect(await agent.call('write', { path: `${session}.txt`, content: text })).toMatchObject({ isError: false });
        await agent.call('context');
      }
    } finally {
      await agent.close();
    }
  };

  const checkpoint = (name: string, more: readonly string[] = []) =>
    runCli(['node', 'checkpoint', store, '--data', data(name), '--json', ...more]);
  const newest = async (): Promise<FoundCheckpoint> => {
    const [found] = await listCheckpoints(new FolderStore(store));
    if (found === undefined) throw new Error('there is no checkpoint');
    return found;
  };
  /**
   * Returns the message of a node that refuses a checkpoint. Checks that it leaves nothing behind.
   */
  const refused = async (name: string, from: string, database = 'log'): Promise<string> => {
    const { code, stderr } = await start(name, ['--restore', from], database);
    expect(code).toBe(1);
    expect((await readdir(data(name))).filter((entry) => entry.startsWith('index'))).toEqual([]);
    return stderr;
  };

  beforeAll(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-checkpoints-')));
    store = join(folder, 'checkpoints');
    postgres = await postgresServer(['log', 'other']);
    await writeFile(join(folder, 'password'), postgres.password);
    await mkdir(join(folder, 'project'));
    for (const name of ['a', 'b']) expect(await start(name)).toMatchObject({ code: 0 });
    await work('a', 'first', ['one', 'two', 'three']);
  });

  afterAll(async () => {
    await Promise.all([...nodes].map((name) => stopNode(data(name))));
    await postgres?.remove();
    await rm(folder, { recursive: true, force: true });
  });

  test('are written when the newest is too old, by one host at a time; the oldest go', async () => {
    expect(JSON.parse((await checkpoint('a')).stdout)).toMatchObject({ written: true, removed: [] });
    const first = await newest();
    expect(JSON.parse((await checkpoint('a')).stdout)).toMatchObject({
      written: false,
      checkpoint: { path: first.path },
    });
    await work('b', 'second', ['one', 'two']);
    const both = await Promise.all([checkpoint('a'), checkpoint('b')]);
    const said = both.map(({ stdout }) => JSON.parse(stdout));
    expect(said.filter(({ written }) => written === true).length).toBeGreaterThanOrEqual(1);
    for (const one of said) if (one.error !== undefined) expect(one.error.code).toBe('busy');
    expect((await newest()).txId).toBeGreaterThan(first.txId);
    expect((await readdir(store)).filter((name) => name.includes('draft') || name === 'writing.json')).toEqual([]);
    await work('a', 'first', ['four']);
    expect(JSON.parse((await checkpoint('a', ['--behind', '1000000'])).stdout)).toMatchObject({ written: false });
    const left = `${(await newest()).name}.1-abcdef12-0123456789abcdef.draft`;
    await mkdir(join(store, left));
    await writeFile(join(store, 'letter.draft'), 'of somebody else');
    expect(JSON.parse((await checkpoint('a', ['--keep', '1'])).stdout)).toMatchObject({ written: true });
    expect(await readdir(store)).toEqual([(await newest()).name, 'letter.draft']);
    const { stdout } = await runCli(['node', 'status', '--data', data('a')]);
    expect(stdout).toContain(`checkpoint  ${(await newest()).path}: `);
    expect(stdout).toMatch(/0 steps of the log behind/);
  });

  test('provide the index of a new node, which reads the rest from the log', async () => {
    await work('a', 'first', ['five']);
    const started = await start('c', ['--restore', store]);
    expect(started).toMatchObject({ code: 0, stderr: expect.stringContaining('Copying the index from a checkpoint') });
    const { files } = await newest();
    const index = await readdir(join(data('c'), 'index'));
    const tables = files.map(({ path }) => path).filter((path) => path.endsWith('.sst'));
    expect(tables.filter((path) => index.includes(path)).length).toBeGreaterThan(0);
    expect(await runCli(['verify', 'first', '--data', data('c')])).toMatchObject({ code: 0 });
    expect(
      (await runCli(['cat', join(folder, 'project', 'first.txt'), '--session', 'first', '--data', data('c')])).stdout,
    ).toBe('five');
    // Nothing is put over an index, neither of a node that runs nor of one that does not.
    for (const stop of [async () => undefined, () => stopNode(data('c'))]) {
      await stop();
      expect(await start('c', ['--restore', store])).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/has an index already.*without --restore.*remove .*index first/),
      });
    }
    expect(await start('c', [])).toMatchObject({ code: 0 });
    expect(await start('alone', ['--restore', join(folder, 'nothing')])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('there is no checkpoint'),
    });
  });

  test('are refused without a trace if altered, of another log, or of another format', async () => {
    const { path, name: _name, ...manifest } = await newest();
    const altered = async (name: string, change: (dir: string) => Promise<unknown>): Promise<string> => {
      const copy = join(folder, name);
      await cp(path, copy, { recursive: true });
      await change(copy);
      return copy;
    };
    const table = manifest.files.find((file) => file.path.endsWith('.sst'))?.path ?? '';
    const flip = async (dir: string): Promise<void> => {
      const file = join(dir, 'index', table);
      const bytes = await readFile(file);
      bytes[100] = (bytes[100] ?? 0) ^ 1;
      await writeFile(file, bytes);
    };
    const rewritten = (change: object) => (dir: string) =>
      writeFile(join(dir, 'manifest.json'), manifestText({ ...manifest, ...change }));
    expect(await refused('d', await altered('flipped', flip))).toMatch(/has other contents/);
    expect(await refused('d', await altered('missing', (dir) => rm(join(dir, 'index', table))))).toMatch(/is missing/);
    expect(
      await refused('d', await altered('more', (dir) => writeFile(join(dir, 'index', '999999.sst'), 'x'))),
    ).toMatch(/not one of its files/);
    const changed = async (dir: string) =>
      writeFile(
        join(dir, 'manifest.json'),
        (await readFile(join(dir, 'manifest.json'), 'utf8')).replace('txId', 'txid'),
      );
    expect(await refused('d', await altered('manifest', changed))).toMatch(/has changed since it was written/);
    expect(await refused('d', await altered('newer', rewritten({ dataFormat: 9 })))).toMatch(
      /has data format 9.*newer version/,
    );
    expect(await refused('d', await altered('older', rewritten({ dataFormat: 1 })))).toMatch(
      /has data format 1.*builds its index from the log/,
    );
    // The index itself has the log's name, so the manifest does not matter.
    expect(await refused('e', store, 'other')).toMatch(
      /The log is empty, and the index in this data folder was made from one that is not/,
    );
    expect(await start('f', [], 'other')).toMatchObject({ code: 0 });
    expect(await refused('g', store, 'other')).toMatch(/was made from another log/);
    expect(await start('g', [], 'other')).toMatchObject({ code: 0 });
  });

  test('reports the state of every named node, and one over another log', async () => {
    const address = async (name: string): Promise<string> => {
      const { stdout } = await runCli(['node', 'status', '--json', '--data', data(name)]);
      return `unix:${JSON.parse(stdout).address.socketPath}`;
    };
    const [a, b, f] = await Promise.all([address('a'), address('b'), address('f')]);
    const all = (urls: readonly string[], more: readonly string[] = []) =>
      runCli(['node', 'status', '--all', '--data', data('a'), ...more], { XTDB_URL: urls.join(',') });
    const well = await all([a, b], ['--json']);
    expect(well.code).toBe(0);
    const { own, remote } = JSON.parse(well.stdout);
    expect(own).toMatchObject({
      format: 2,
      formatTrouble: null,
      status: { running: true, log: { format: 2, reachable: true } },
    });
    expect(remote).toMatchObject([
      { address: a, health: 'ready', behind: 0, log: { name: own.status.log.name, format: 2 }, trouble: null },
      { address: b, health: 'ready', log: { name: own.status.log.name, format: 2 }, trouble: null },
    ]);
    const gone = `unix:${join(folder, 'gone.sock')}`;
    const ill = await all([a, gone, f]);
    expect(ill.code).toBe(3);
    expect(ill.stdout).toMatch(/ready, 0 steps of the log behind, log .* of format 2/);
    expect(ill.stdout).toMatch(/gone\.sock: UNREACHABLE/);
    expect(ill.stdout).toMatch(/HAS A DIFFERENT LOG/);
  });
});

import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readdir, readFile, realpath, rm, utimes, writeFile } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type CheckpointStore, type FoundCheckpoint, listCheckpoints } from '../../src/node/checkpoint.js';
import { checkpointStore } from '../../src/node/checkpoint-store.js';
import { stopNode } from '../../src/node/stop-node.js';
import { stdioAgent } from '../support/mcp-clients.js';
import { type CliResult, runCli } from '../support/run-cli.js';
import { type PostgresServer, postgresServer } from './postgres-server.js';
import { type S3Server, s3Server } from './s3/s3-server.js';

let folder: string;
let s3: S3Server;
/** Contains awkward characters, which must be signed as sent. */
const PREFIX = 'some team/a+b=ü';

beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-buckets-')));
  s3 = await s3Server(['checkpoints', 'stores']);
});

afterAll(async () => {
  await s3?.remove();
  await rm(folder, { recursive: true, force: true });
});

describe('a place in a bucket', () => {
  const place = (
    name: string,
    environment: Readonly<Record<string, string>> = s3.environment,
  ): Promise<CheckpointStore> => checkpointStore(`s3://stores/${name}`, environment);

  test('stores a folder with more files than one list names, and returns it byte for byte', async () => {
    const from = join(folder, 'many');
    await mkdir(join(from, 'below'), { recursive: true });
    const names = Array.from({ length: 1_003 }, (_, n) => `f${String(n).padStart(4, '0')}`);
    await Promise.all(names.map((name) => writeFile(join(from, name), name)));
    const bytes = Buffer.from(Array.from({ length: 3_000_000 }, (_, i) => (i * 31) % 251));
    await writeFile(join(from, 'below', 'large & +.bin'), bytes);
    const store = await place(PREFIX);
    await store.write('one', from, (files) => `the manifest of ${files.length}`);
    expect(store.addressOf('one')).toBe(`s3://stores/${PREFIX}/one`);
    expect(await store.names()).toEqual(['one']);
    expect(await store.text('one/manifest.json')).toBe('the manifest of 1004');
    expect(await store.filesBelow('one/index')).toEqual(['below/large & +.bin', ...names]);
    const to = join(folder, 'back');
    expect(await store.fetch('one/index/below/large & +.bin', to)).toMatchObject({ size: bytes.length });
    expect((await readFile(to)).equals(bytes)).toBe(true);
    await store.remove('one');
    expect(await store.names()).toEqual([]);
  });

  test('lets one of many concurrent clients create a file, and only its owner remove it', async () => {
    const store = await place('claims');
    const made = await Promise.all(
      ['a', 'b', 'c', 'd'].map(async (who) => ((await store.createOnce('writing.json', who)) ? who : undefined)),
    );
    const [winner = '', ...others] = made.filter((who) => who !== undefined);
    expect(others).toEqual([]);
    expect(await store.text('writing.json')).toBe(winner);
    await store.removeIf('writing.json', 'somebody else');
    expect(await store.text('writing.json')).toBe(winner);
    expect(await store.ageMs('writing.json')).toBeLessThan(3_600_000);
    const file = join(s3.files, 'stores', 'claims', 'writing.json');
    await utimes(file, 0, 0);
    expect(await store.ageMs('writing.json')).toBeGreaterThan(3_600_000);
    await store.removeIf('writing.json', winner);
    expect(await store.text('writing.json')).toBeUndefined();
    expect(await store.ageMs('writing.json')).toBeUndefined();
  });

  test('refuses unusable access with a remedy: no or wrong credentials, no bucket, no server, no place', async () => {
    const { AWS_SECRET_ACCESS_KEY: _secret, ...lacking } = s3.environment;
    await expect(place('x', lacking)).rejects.toMatchObject({
      code: 'io',
      message: expect.stringMatching(/AWS_SECRET_ACCESS_KEY are not both set/),
    });
    const denied = await place('x', { ...s3.environment, AWS_SECRET_ACCESS_KEY: 'another' });
    await expect(denied.names()).rejects.toMatchObject({
      code: 'io',
      message: expect.stringMatching(/403 SignatureDoesNotMatch.*AWS_ACCESS_KEY_ID/s),
    });
    await expect(denied.names()).rejects.not.toMatchObject({ message: expect.stringContaining('another') });
    const nowhere = await checkpointStore('s3://no-such-bucket/x', s3.environment);
    await expect(nowhere.createOnce('writing.json', 'x')).rejects.toMatchObject({
      code: 'io',
      message: expect.stringMatching(/404 NoSuchBucket.*Create the bucket/),
    });
    await expect(nowhere.text('writing.json')).rejects.toMatchObject({
      code: 'io',
      message: expect.stringMatching(/no bucket no-such-bucket/),
    });
    const silent = await place('x', { ...s3.environment, AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:1' });
    await expect(silent.names()).rejects.toMatchObject({
      code: 'io',
      message: expect.stringMatching(/not answered by 127\.0\.0\.1:1/),
    });
    for (const text of ['s3://B/x', 's3://', 's3://bucket/../x', 'gs://bucket/x', 'https://host/x'])
      await expect(checkpointStore(text, s3.environment)).rejects.toMatchObject({
        code: 'io',
        message: expect.stringMatching(/not a place for checkpoints/),
      });
    await expect(place('x', { ...s3.environment, AWS_ENDPOINT_URL: 'host:9000' })).rejects.toMatchObject({
      message: expect.stringMatching(/AWS_ENDPOINT_URL/),
    });
  });

  test('copies a file again after a broken copy, and works with a store without conditional removal', async () => {
    let cuts = 2;
    let refusals = 0;
    const relay = createServer((incoming, outgoing) => {
      if (incoming.method === 'DELETE' && incoming.headers['if-match'] !== undefined) {
        refusals += 1;
        outgoing.writeHead(501).end('<Error><Code>NotImplemented</Code></Error>');
        return;
      }
      const passed = request(
        `${s3.origin}${incoming.url}`,
        { method: incoming.method, headers: incoming.headers },
        (answer) => {
          outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
          if (incoming.method === 'GET' && incoming.url?.endsWith('/index/large') && cuts-- > 0)
            answer.once('data', (piece: Buffer) => outgoing.write(piece, () => outgoing.destroy()));
          else answer.pipe(outgoing);
        },
      );
      incoming.pipe(passed);
    }).listen(0, '127.0.0.1');
    try {
      await once(relay, 'listening');
      const store = await place('broken', {
        ...s3.environment,
        AWS_ENDPOINT_URL: `http://127.0.0.1:${(relay.address() as AddressInfo).port}`,
      });
      const from = join(folder, 'broken');
      await mkdir(from);
      await writeFile(join(from, 'large'), Buffer.alloc(2_000_000, 'text '));
      await store.write('one', from, ([file]) => file?.sha256 ?? '');
      const copied = await store.fetch('one/index/large', join(folder, 'mended'));
      expect(cuts).toBeLessThan(1);
      expect(copied).toEqual({ size: 2_000_000, sha256: await store.text('one/manifest.json') });
      expect(await store.createOnce('writing.json', 'a')).toBe(true);
      await store.removeIf('writing.json', 'a');
      expect(refusals).toBe(1);
      expect(await store.text('writing.json')).toBeUndefined();
    } finally {
      relay.close();
      relay.closeAllConnections();
    }
  });

  test('refuses a store that lets two clients create one file, which allows no election', async () => {
    const open = await s3Server(['stores'], { open: true });
    const relay = createServer((incoming, outgoing) => {
      const { 'if-none-match': _condition, ...headers } = incoming.headers;
      const passed = request(`${open.origin}${incoming.url}`, { method: incoming.method, headers }, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      });
      incoming.pipe(passed);
    }).listen(0, '127.0.0.1');
    try {
      await once(relay, 'listening');
      const store = await place('x', {
        ...s3.environment,
        AWS_ENDPOINT_URL: `http://127.0.0.1:${(relay.address() as AddressInfo).port}`,
      });
      await expect(store.createOnce('writing.json', 'a')).rejects.toMatchObject({
        code: 'unfit',
        message: expect.stringMatching(/If-None-Match/),
      });
      expect(await store.names()).toEqual([]);
    } finally {
      relay.close();
      relay.closeAllConnections();
      await open.remove();
    }
  });
});

describe('checkpoints in a bucket', () => {
  const address = `s3://checkpoints/${PREFIX}`;
  const bucket = (): string => join(s3.files, 'checkpoints', PREFIX);
  const data = (name: string): string => join(folder, name);
  const nodes = new Set<string>();
  let postgres: PostgresServer;

  const start = (name: string, more: readonly string[] = []): Promise<CliResult> => {
    nodes.add(name);
    const log = `postgresql://${postgres.user}@127.0.0.1:${postgres.port}/log`;
    const flags = ['--profile', 'postgres', '--log', log, '--password-file', join(folder, 'password')];
    return runCli(['node', 'start', '--data', data(name), ...flags, ...more], s3.environment);
  };
  const checkpoint = (name: string, more: readonly string[] = []) =>
    runCli(['node', 'checkpoint', address, '--data', data(name), '--json', ...more], s3.environment);
  const found = async (): Promise<readonly FoundCheckpoint[]> =>
    listCheckpoints(await checkpointStore(address, s3.environment));
  const write = async (name: string, text: string): Promise<void> => {
    const agent = await stdioAgent(join(folder, 'project'), ['--data', data(name), '--session', name]);
    await agent.call('write', { path: `${name}.txt`, content: text });
    await agent.call('context');
    await agent.close();
  };

  beforeAll(async () => {
    postgres = await postgresServer(['log']);
    await writeFile(join(folder, 'password'), postgres.password);
    await mkdir(join(folder, 'project'));
    for (const name of ['a', 'b']) expect(await start(name)).toMatchObject({ code: 0 });
    await write('a', 'one');
  });

  afterAll(async () => {
    await Promise.all([...nodes].map((name) => stopNode(data(name))));
    await postgres?.remove();
  });

  test('are written by one host; leftovers of a killed writer go, and a claim an hour old is ignored', async () => {
    // The files of a killed writer, without a manifest.
    await mkdir(join(bucket(), 'checkpoint-00000000-000000000001', 'index'), { recursive: true });
    await writeFile(join(bucket(), 'checkpoint-00000000-000000000001', 'index', '000001.sst'), 'x');
    // Files of others stay, also under such names.
    await mkdir(join(bucket(), 'checkpoint-500'));
    await writeFile(join(bucket(), 'checkpoint-500', 'weights.bin'), 'x');
    const claim = join(bucket(), 'writing.json');
    await writeFile(claim, JSON.stringify({ pid: 1, started: null, boot: 'another', host: `not-${hostname()}` }));
    expect(JSON.parse((await checkpoint('a')).stdout)).toMatchObject({ error: { code: 'busy' } });
    await utimes(claim, 0, 0);
    expect(JSON.parse((await checkpoint('a')).stdout)).toMatchObject({ written: true });
    expect(await readdir(join(bucket(), 'checkpoint-500'))).toEqual(['weights.bin']);
    expect(await readdir(bucket())).toHaveLength(2);
    expect(JSON.parse((await checkpoint('b')).stdout)).toMatchObject({ written: false });
    await write('b', 'two');
    const both = (await Promise.all([checkpoint('a'), checkpoint('b')])).map(({ stdout }) => JSON.parse(stdout));
    expect(both.some(({ written }) => written === true)).toBe(true);
    for (const one of both) if (one.error !== undefined) expect(one.error.code).toBe('busy');
    await write('a', 'three');
    expect(JSON.parse((await checkpoint('a', ['--keep', '1'])).stdout)).toMatchObject({ written: true });
    expect(await found()).toHaveLength(1);
    const { stdout } = await runCli(['node', 'status', '--data', data('a')], s3.environment);
    expect(stdout).toContain(`checkpoint  ${(await found())[0]?.path}: 0 steps of the log behind`);
  });

  test('provide the index of a new node; an altered, missing or foreign one leaves nothing', async () => {
    const started = await start('c', ['--restore', address]);
    expect(started).toMatchObject({ code: 0, stderr: expect.stringContaining('Copying the index from a checkpoint') });
    expect(await runCli(['verify', 'a', '--data', data('c')])).toMatchObject({ code: 0 });
    const [newest] = await found();
    const table = newest?.files.find(({ path }) => path.endsWith('.sst'))?.path ?? '';
    const refused = async (name: string, change: (index: string) => Promise<unknown>): Promise<string> => {
      const copy = join(s3.files, 'checkpoints', name);
      await cp(join(bucket(), newest?.name ?? ''), copy, { recursive: true });
      await change(join(copy, 'index'));
      const { code, stderr } = await start('d', ['--restore', `s3://checkpoints/${name}`]);
      expect(code).toBe(1);
      expect((await readdir(data('d'))).filter((entry) => entry.startsWith('index'))).toEqual([]);
      return stderr;
    };
    expect(
      await refused('flipped', async (index) =>
        writeFile(join(index, table), (await readFile(join(index, table))).fill(0, 100, 101)),
      ),
    ).toMatch(/has other contents/);
    expect(await refused('missing', (index) => rm(join(index, table)))).toMatch(/is missing/);
    expect(await refused('more', (index) => writeFile(join(index, '999999.sst'), 'x'))).toMatch(/not one of its files/);
    expect(await start('d', ['--restore', 's3://checkpoints/nothing'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/there is no checkpoint in s3:/),
    });
    expect(await start('d', ['--restore', `${address}/${newest?.name ?? ''}`])).toMatchObject({ code: 0 });
  });
});

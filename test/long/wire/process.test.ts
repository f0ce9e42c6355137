import { mkdir, readdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { CONFIGS, privateFolder, runFront, startFront } from '../../support/front-process.js';
import { until } from '../../support/until.js';
import { errorKey, readEdn, submitAndWait, Wire } from '../../support/wire.js';
import { testNodeAddress } from '../../support/xtdb.js';

let dir: string;
let remove: () => Promise<void>;
let socket: string;
beforeEach(async () => {
  ({ dir, remove } = await privateFolder());
  socket = join(dir, 's');
});
afterEach(() => remove());

const memory = (...flags: readonly string[]): string[] => ['--config', CONFIGS.memory, '--socket', socket, ...flags];

describe('a front’s process', () => {
  test('reports readiness in one line, serves its socket to its user alone, ends cleanly on SIGTERM', async () => {
    const front = await startFront(memory('--lock', join(dir, 'lock')));
    expect(front.ready).toEqual({ ready: true, pid: front.run.process.pid, socket, port: null, version: '1.24.3' });
    const { code: ended, stdout } = await front.stop();
    expect([ended, stdout.trimEnd().split('\n')]).toEqual([0, [JSON.stringify(front.ready)]]);
    expect(await readdir(dir)).toEqual(['lock']);
  });

  test('replaces a dead process’s socket, and exits when idle for a while', async () => {
    const killed = await startFront(memory());
    killed.run.process.kill('SIGKILL');
    await killed.run.ended;
    expect(await readdir(dir)).toEqual(['s']);
    const front = await startFront(memory('--idle-exit', '10'));
    const wire = new Wire({ socketPath: socket });
    expect((await wire.get('/status')).status).toBe(200);
    await wire.close();
    expect((await front.run.ended).code).toBe(0);
    expect(await readdir(dir)).toEqual([]);
  });

  test('takes no lock if its supervisor ends before it has written down the process', async () => {
    const lock = join(dir, 'lock');
    // `runFront` closes the input, as the end of a supervisor does.
    const front = await runFront(memory('--lock', lock, '--start-on-input'));
    expect((await front.ended).code).toBe(0);
    expect(await readdir(dir)).toEqual([]);
  });

  test('keeps web pages out on TCP without a token', async () => {
    const front = await startFront(['--config', CONFIGS.memory, '--port', '0']);
    const wire = new Wire({ origin: `http://127.0.0.1:${front.ready.port}` });
    expect((await wire.get('/status')).status).toBe(200);
    for (const headers of [
      { origin: 'https://evil.example' },
      { 'sec-fetch-site': 'cross-site' },
      { host: 'evil.example' },
    ]) {
      expect([headers, (await wire.get('/status', { headers })).status]).toEqual([headers, 403]);
    }
    await wire.close();
    expect((await front.stop()).code).toBe(0);
  });

  test('exits for a restart by its supervisor if a query cannot be stopped', async () => {
    const front = await startFront(memory('--query-timeout', '5000'));
    const wire = new Wire({ socketPath: socket });
    // One row whose expression compares two large sets two thousand times, at about 15 ms each.
    // XTDB does not check for an interrupt in between.
    const numbers = Array.from({ length: 150_000 }, (_, n) => n).join(' ');
    const compared = `{:find [(count [${'(= a b) '.repeat(2_000)}])] :in [a b]}`;
    const ask = (...sets: readonly string[]) =>
      wire
        .post('/query', `{:query ${compared} :in-args [${sets.map((set) => `#{${set}}`).join(' ')}]}`)
        .then(({ status }) => status, String);
    // On a busy machine the query may be stopped while it is compiled or gets its sets. The answer
    // is then a 500, and the next attempt gets further.
    await until(
      () => ask('1', '2'),
      (answer) => answer === 200,
    );
    const answered = await until(
      () => ask(`${numbers} 777777`, `${numbers} 888888`),
      (answer) => answer !== 500,
    );
    expect(answered).toEqual(expect.any(String));
    expect((await front.run.ended).code).toBe(3);
    await wire.close();
  });

  test('answers a malformed request without an HTML page', async () => {
    const address = testNodeAddress();
    const suite = address.kind === 'unix' ? address.socketPath : '';
    const text = await new Promise<string>((resolve, reject) => {
      const client = connect(suite, () =>
        client.write('GET /_xtdb/status HTTP/1.1\r\nHost: a b c\r\nBroken Header\r\n\r\n'),
      );
      let received = '';
      client.setEncoding('utf8').on('data', (piece: string) => {
        received += piece;
      });
      client.on('error', reject).on('close', () => resolve(received));
    });
    expect(text).toMatch(/^HTTP\/1\.1 400 /);
    expect(text).not.toMatch(/<html|Jetty/i);
  });
});

describe('a front on RocksDB', () => {
  const rocksdb = (): string[] => ['--config', CONFIGS.rocksdb, '--data', join(dir, 'data'), '--socket', socket];

  test('keeps acknowledged data through kill -9, and no refused poison pill returns with the next start', async () => {
    await mkdir(join(dir, 'data'), { mode: 0o700 });
    const first = await startFront(rocksdb());
    const wire = new Wire({ socketPath: socket });
    const text = 'x'.repeat(100_000);
    await submitAndWait(wire, `[:xtdb.api/put {:xt/id "kept" :text "${text}"}]`);
    const pill = await wire.post('/submit-tx', '{:tx-ops [[:xtdb.api/put {:xt/id :f :crux.db/fn 1}]]}');
    expect([pill.status, errorKey(pill)]).toEqual([400, 'reserved-key']);
    const last = await wire.post('/submit-tx', '{:tx-ops [[:xtdb.api/put {:xt/id "last"}]]}');
    expect(last.status).toBe(202);
    first.run.process.kill('SIGKILL');
    await first.run.ended;
    const second = await startFront(rocksdb());
    expect((await wire.get('/entity', { params: { eid: 'kept', 'await-tx-id': 1 } })).text).toContain(text);
    expect((await wire.get('/entity', { params: { eid: 'last' } })).status).toBe(200);
    expect(readEdn((await wire.get('/status')).text)).toMatchObject({ 'ingester-failed?': false });
    await wire.close();
    expect((await second.stop()).code).toBe(0);
  });
});

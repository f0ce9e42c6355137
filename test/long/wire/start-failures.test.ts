import { mkdir, readdir, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { CONFIGS, failToStart, privateFolder, startFront } from '../../support/front-process.js';
import { submitAndWait, Wire } from '../../support/wire.js';

let dir: string;
let remove: () => Promise<void>;
let socket: string;
beforeEach(async () => {
  ({ dir, remove } = await privateFolder());
  socket = join(dir, 's');
});
afterEach(() => remove());

const memory = (...flags: readonly string[]): string[] => ['--config', CONFIGS.memory, '--socket', socket, ...flags];

describe('a front that cannot start', () => {
  test('reports that another process holds its lock or its socket', async () => {
    const front = await startFront(memory('--lock', join(dir, 'lock')));
    const again = memory('--lock', join(dir, 'lock'));
    expect(await failToStart(again)).toEqual([75, `front: locked: Another process holds ${join(dir, 'lock')}`]);
    const [code, reason] = await failToStart(memory());
    expect([code, reason]).toEqual([70, expect.stringMatching(/^front: bind-failed: .*Another process listens/)]);
    await front.stop();
  });

  test('reports the fault of its flags, its configuration or its place', async () => {
    expect((await failToStart(['--config', CONFIGS.memory]))[0]).toBe(64);
    expect((await failToStart(memory('--max-rows', 'many')))[0]).toBe(64);
    // An address beyond loopback requires a token.
    expect(await failToStart(['--config', CONFIGS.memory, '--port', '0', '--host', '0.0.0.0'])).toEqual([
      64,
      expect.stringMatching(/--host 0\.0\.0\.0 needs --token-file/),
    ]);
    const broken = join(dir, 'broken.edn');
    await writeFile(broken, '{:xtdb/tx-log {:xtdb/module nowhere.at-all/->log}}');
    expect(await failToStart(['--config', broken, '--socket', socket])).toEqual([
      70,
      expect.stringMatching(/^front: config-invalid: /),
    ]);
    expect(await failToStart(['--config', CONFIGS.rocksdb, '--socket', socket])).toEqual([
      70,
      expect.stringMatching(/^front: config-invalid: .*--data/),
    ]);
    const shared = join(dir, 'shared');
    await mkdir(shared, { mode: 0o755 });
    expect(await failToStart(['--config', CONFIGS.memory, '--socket', join(shared, 's')])).toEqual([
      70,
      expect.stringMatching(/^front: bind-failed: .*chmod 700/),
    ]);
  });
});

describe('a front on RocksDB', () => {
  const rocksdb = (): string[] => ['--config', CONFIGS.rocksdb, '--data', join(dir, 'data'), '--socket', socket];

  test('rebuilds a lost index, and does not start on a lost log or a damaged store', async () => {
    const data = join(dir, 'data');
    await mkdir(data, { mode: 0o700 });
    const wire = new Wire({ socketPath: socket });
    const first = await startFront(rocksdb());
    await submitAndWait(wire, '[:xtdb.api/put {:xt/id "kept"}]');
    await first.stop();
    await rm(join(data, 'index'), { recursive: true });
    const second = await startFront(rocksdb());
    expect((await wire.get('/entity', { params: { eid: 'kept', 'await-tx-id': 0 } })).status).toBe(200);
    await wire.close();
    await second.stop();
    const manifest = (await readdir(join(data, 'index'))).find((name) => name.startsWith('MANIFEST'));
    await truncate(join(data, 'index', String(manifest)), 10);
    expect(await failToStart(rocksdb())).toEqual([70, expect.stringMatching(/^front: corrupt-data: /)]);
    await rm(join(data, 'index'), { recursive: true });
    await (await startFront(rocksdb())).stop();
    await rm(join(data, 'golden'), { recursive: true });
    const [code, reason] = await failToStart(rocksdb());
    expect([code, reason]).toEqual([70, expect.stringMatching(/^front: corrupt-data: The transaction log ends/)]);
  });
});

import { execFile, execFileSync } from 'node:child_process';
import { cp, mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ensureNode } from '../../src/node/ensure-node.js';
import { stopNode } from '../../src/node/stop-node.js';
import { sessionId } from '../../src/objects/ids.js';
import type { ObjectVersion } from '../../src/objects/seal.js';
import { ObjectStore } from '../../src/store/object-store.js';
import { XtdbClient } from '../../src/xtdb/xtdb-client.js';
import { type Agent, stdioAgent } from '../support/mcp-clients.js';
import { type CliResult, runCli } from '../support/run-cli.js';
import { freePort } from './free-port.js';
import { type PostgresServer, postgresServer, startOver } from './postgres-server.js';

const run = promisify(execFile);

/** Returns the folder of an installed PostgreSQL with its tools. The jar has only the server. */
function installedPrograms(): string | undefined {
  for (const config of ['pg_config', '/usr/lib/postgresql/17/bin/pg_config', '/usr/lib/postgresql/15/bin/pg_config']) {
    try {
      const bin = execFileSync(config, ['--bindir'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
      for (const program of ['postgres', 'initdb', 'pg_dump', 'pg_basebackup'])
        execFileSync(join(bin, program), ['--version'], { stdio: 'ignore' });
      return bin;
    } catch {
      // The next one.
    }
  }
  return undefined;
}

const bin = installedPrograms() ?? '';
const withTools = bin === '' ? test.skip : test;

describe('a backup of log and documents in PostgreSQL', () => {
  let folder: string;
  let archive: string;
  let postgres: PostgresServer;
  let agent: Agent;
  let isWriting = true;
  let written = 0;
  let restored = 0;
  const nodes = new Set<string>();
  const data = (name: string): string => join(folder, name);

  /** A node over a database of the server at a port. */
  const start = (name: string, [database, port]: readonly [database: string, port: number]): Promise<CliResult> => {
    nodes.add(name);
    const log = `postgresql://${postgres.user}@127.0.0.1:${port}/${database}`;
    return runCli([
      'node',
      'start',
      '--data',
      data(name),
      '--profile',
      'postgres',
      '--log',
      log,
      '--password-file',
      join(folder, 'password'),
    ]);
  };

  /** Runs a tool of PostgreSQL on a server. */
  const tool = async (program: string, args: readonly string[], port = postgres.port): Promise<string> => {
    const env = {
      ...process.env,
      PGPASSWORD: postgres.password,
      PGHOST: '127.0.0.1',
      PGPORT: String(port),
      PGUSER: postgres.user,
    };
    return (await run(join(bin, program), [...args], { env })).stdout;
  };

  const write = async (text: string): Promise<void> => {
    expect(await agent.call('write', { path: 'file.txt', content: text })).toMatchObject({ isError: false });
    await agent.call('context');
    written += 1;
  };

  /** Writes without a pause while some work runs. */
  const whileWriting = async <T>(work: () => Promise<T>): Promise<T> => {
    isWriting = true;
    const writing = (async () => {
      while (isWriting) await write(`text ${written}`);
    })();
    const from = written;
    try {
      return await work();
    } finally {
      isWriting = false;
      await writing;
      expect(written).toBeGreaterThan(from);
    }
  };

  /** Every text that the session of a node has written, oldest first. */
  const texts = async (name: string): Promise<readonly unknown[]> => {
    const { address, release } = await ensureNode({ dataDir: data(name) });
    const xtdb = new XtdbClient(address);
    try {
      const snapshot = await new ObjectStore(xtdb).latest();
      const steps = await snapshot.steps(sessionId('worked'));
      expect(steps.map(({ seq }) => seq)).toEqual(steps.map((_, i) => i + 1));
      const calls = steps.flatMap(({ call }) => (call === undefined ? [] : [call.id]));
      const versions = await snapshot.getMany(calls);
      return calls.flatMap((id) => {
        const version = versions.get(id)?.version as ObjectVersion<'toolcall'> | undefined;
        return version?.tool === 'write' ? [(version.args as { readonly content: string }).content] : [];
      });
    } finally {
      await xtdb.close();
      await release();
    }
  };

  /** Continues the session from the end of the backup, through a new node. */
  const goesOn = async (name: string): Promise<void> => {
    restored += 1;
    const other = await stdioAgent(join(folder, 'project'), ['--data', data(name), '--session', 'worked']);
    try {
      expect(
        await other.call('write', { path: `restored-${restored}.txt`, content: 'after the restore' }),
      ).toMatchObject({
        isError: false,
      });
    } finally {
      await other.close();
    }
    expect(await runCli(['verify', 'worked', '--data', data(name)])).toMatchObject({ code: 0 });
  };

  beforeAll(async () => {
    if (bin === '') return;
    folder = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-backup-')));
    archive = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-wal-')));
    await run('chmod', ['0777', archive]);
    const settings = ['archive_mode=on', `archive_command=cp %p ${archive}/%f`];
    postgres = await postgresServer(['log', 'restored'], { bin, settings });
    await writeFile(join(folder, 'password'), postgres.password);
    await mkdir(join(folder, 'project'));
    expect(await start('a', ['log', postgres.port])).toMatchObject({ code: 0 });
    agent = await stdioAgent(join(folder, 'project'), ['--data', data('a'), '--session', 'worked']);
    for (let i = 0; i < 5; i++) await write(`text ${written}`);
    // A query waits until the database has what was acknowledged.
    expect(await runCli(['verify', 'worked', '--data', data('a')])).toMatchObject({ code: 0 });
  });

  afterAll(async () => {
    if (bin === '') return;
    await agent?.close();
    await Promise.all([...nodes].map((name) => stopNode(data(name))));
    await postgres?.remove();
    for (const dir of [folder, archive]) await rm(dir, { recursive: true, force: true });
  });

  withTools(
    'by pg_dump during writes, restored into another database, is whole up to a moment; an old index is refused',
    async () => {
      const dump = join(folder, 'dump');
      await whileWriting(() => tool('pg_dump', ['--format=custom', '--file', dump, 'log']));
      await write('last');
      await tool('pg_restore', ['--dbname', 'restored', '--exit-on-error', dump]);
      expect(await start('r', ['restored', postgres.port])).toMatchObject({ code: 0 });
      expect(await runCli(['verify', 'worked', '--data', data('r')])).toMatchObject({ code: 0 });
      const [there, all] = [await texts('r'), await texts('a')];
      expect(there.length).toBeGreaterThanOrEqual(5);
      expect(there).toEqual(all.slice(0, there.length));
      expect(all).toContain('last');
      expect(there).not.toContain('last');

      // The index of the old log has transactions that the restored log lacks. It is refused even
      // after other transactions take their place.
      const stale = async (name: string): Promise<void> => {
        await stopNode(data('a'));
        await cp(join(data('a'), 'index'), join(data(name), 'index'), { recursive: true });
        await cp(join(data('a'), 'palimpsest.json'), join(data(name), 'palimpsest.json'));
        expect(await start('a', ['log', postgres.port])).toMatchObject({ code: 0 });
        expect(await start(name, ['restored', postgres.port])).toMatchObject({
          code: 1,
          stderr: expect.stringMatching(/The log was set back/),
        });
        await rm(join(data(name), 'index'), { recursive: true });
        expect(await start(name, ['restored', postgres.port])).toMatchObject({ code: 0 });
      };
      await stale('s');
      for (let i = 0; i < 3; i++) await goesOn('r');
      const newest = async (name: string): Promise<number> =>
        JSON.parse((await runCli(['node', 'status', '--json', '--data', data(name)])).stdout).log.submitted;
      while ((await newest('r')) <= (await newest('a'))) await goesOn('r');
      await stale('t');
    },
  );

  withTools('with archived WAL goes back to any moment', async () => {
    const base = join(postgres.dir, 'base');
    await whileWriting(() => tool('pg_basebackup', ['--pgdata', base, '--checkpoint=fast']));
    await write('last');
    await runCli(['verify', 'worked', '--data', data('a')]);
    await tool('psql', ['--dbname', 'log', '--command', "SELECT pg_create_restore_point('before the mistake')"]);
    await write('after');
    await runCli(['verify', 'worked', '--data', data('a')]);
    await tool('psql', ['--dbname', 'log', '--command', 'SELECT pg_switch_wal()']);
    // The server confirms that the moment's WAL is in the archive. A server that ends earlier
    // archives it at its next start.
    await tool('psql', [
      '--dbname',
      'log',
      '--command',
      "DO $$ BEGIN WHILE (SELECT coalesce(last_archived_wal, '') < " +
        'pg_walfile_name(pg_current_wal_lsn() - 1) FROM pg_stat_archiver) ' +
        'LOOP PERFORM pg_sleep(0.1); PERFORM pg_stat_clear_snapshot(); END LOOP; END $$',
    ]);
    const port = await freePort();
    await writeFile(join(base, 'recovery.signal'), '');
    const settings = [
      `restore_command=cp ${archive}/%f %p`,
      'recovery_target_name=before the mistake',
      'recovery_target_action=promote',
    ];
    const stop = await startOver(bin, base, { port, settings });
    try {
      expect(await start('p', ['log', port])).toMatchObject({ code: 0 });
      expect(await runCli(['verify', 'worked', '--data', data('p')])).toMatchObject({ code: 0 });
      const there = await texts('p');
      expect(there.at(-1)).toBe('last');
      expect(there).toEqual((await texts('a')).slice(0, there.length));
      await goesOn('p');
    } finally {
      await stopNode(data('p'));
      await stop();
    }
  });
});

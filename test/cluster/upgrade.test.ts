import { EventEmitter, once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { nodeStatus } from '../../src/node/node-status.js';
import { type Agent, cliPath, stdioAgent } from '../support/mcp-clients.js';
import { type CliResult, runCli } from '../support/run-cli.js';
import { buildOfCommit, buildOfFormat, hasCommit, type OtherBuild } from './other-build.js';
import { type PostgresServer, postgresServer } from './postgres-server.js';

/**
 * The first version whose client uses several nodes over one log. It has the current format, but no
 * checkpoints and fewer checks.
 */
const FORMER = '8f860e3';
const hasFormer = await hasCommit(FORMER);

let folder: string;
let postgres: PostgresServer;
const data = (name: string): string => join(folder, name);
/** The program that last started a node, which also stops it. */
const nodes = new Map<string, string>();

function start(name: string, program: string, database = 'log'): Promise<CliResult> {
  nodes.set(name, program);
  const log = `postgresql://${postgres.user}@127.0.0.1:${postgres.port}/${database}`;
  const flags = ['--profile', 'postgres', '--log', log, '--password-file', join(folder, 'password')];
  return runCli(['node', 'start', '--data', data(name), ...flags], {}, program);
}

async function urlOf(name: string): Promise<string> {
  const status = await nodeStatus(data(name));
  if (!status.running || status.address?.kind !== 'unix') throw new Error(`node ${name} does not run on a socket`);
  return `unix:${status.address.socketPath}`;
}

beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-upgrade-')));
  postgres = await postgresServer(['log', 'newer']);
  await writeFile(join(folder, 'password'), postgres.password);
  await mkdir(join(folder, 'project'));
});

afterAll(async () => {
  for (const [name, program] of nodes) await runCli(['node', 'stop', '--data', data(name)], {}, program);
  await postgres?.remove();
  await rm(folder, { recursive: true, force: true });
});

/**
 * An agent with a session, run by the program of one version. It records its acknowledged answers.
 */
class Worker {
  readonly session: string;
  readonly #agent: Agent;
  #calls = 0;

  private constructor(session: string, agent: Agent) {
    this.session = session;
    this.#agent = agent;
  }

  static async open(session: string, program: string, urls: readonly string[]): Promise<Worker> {
    const args = ['--data', data(`client-${session}`), '--session', session];
    return new Worker(
      session,
      await stdioAgent(join(folder, 'project'), args, { XTDB_URL: urls.join(',') }, { program }),
    );
  }

  /** Writes and reads one more file and asks for its context. */
  async work(): Promise<void> {
    const path = `${this.session}-${this.#calls++}-${Math.random().toString(36).slice(2)}.txt`;
    const content = `text of ${path}\n`;
    expect(await this.#agent.call('write', { path, content })).toMatchObject({ isError: false });
    expect(await this.#agent.call('read', { path })).toMatchObject({
      isError: false,
      text: expect.stringContaining(content.trim()),
    });
    expect(await this.#agent.call('context')).toMatchObject({ isError: false });
  }

  close(): Promise<void> {
    return this.#agent.close();
  }
}

(hasFormer ? describe : describe.skip)('nodes and clients of two versions over one log', () => {
  let former: OtherBuild;
  const said = new Map<string, number>();
  /** The agents of one version begin with different nodes. */
  const urlsOf = (session: string): Promise<readonly string[]> =>
    Promise.all((session.endsWith('0') ? ['a', 'b'] : ['b', 'a']).map(urlOf));

  beforeAll(async () => {
    former = await buildOfCommit(FORMER);
    expect(await start('a', former.program)).toMatchObject({ code: 0 });
    expect(await start('b', cliPath)).toMatchObject({ code: 0 });
  });

  afterAll(async () => {
    // The nodes are stopped by their own program, which is removed next.
    for (const name of ['a', 'b']) await runCli(['node', 'stop', '--data', data(name)], {}, nodes.get(name));
    for (const name of ['a', 'b']) nodes.delete(name);
    await former?.remove();
  });

  /**
   * One version works on a session for a number of rounds. Each round has three acknowledged calls.
   */
  const worked = async (session: string, program: string, wanted: (round: number) => boolean): Promise<void> => {
    const worker = await Worker.open(session, program, await urlsOf(session));
    let rounds = 0;
    try {
      for (; wanted(rounds); rounds++) await worker.work();
    } finally {
      await worker.close();
      said.set(session, (said.get(session) ?? 0) + 3 * rounds);
    }
  };
  const times = (rounds: number) => (round: number) => round < rounds;

  const verified = async (): Promise<void> => {
    for (const [session, calls] of said) {
      // An agent that ended during a delivery left steps in its journal. The next query of its
      // nodes delivers them first.
      const asked = await runCli(['sessions', '--data', data(`client-${session}`)], {
        XTDB_URL: (await urlsOf(session)).join(','),
      });
      expect(asked).toMatchObject({ code: 0 });
      for (const [program, name] of [
        [former.program, 'a'],
        [cliPath, 'a'],
        [former.program, 'b'],
        [cliPath, 'b'],
      ] as const) {
        const { code, stdout } = await runCli(
          ['verify', session, '--data', data(`client-${session}`)],
          { XTDB_URL: await urlOf(name) },
          program,
        );
        expect({ session, program, name, code, stdout }).toMatchObject({
          code: 0,
          stdout: expect.stringMatching(new RegExp(`answers {3}\\d+ of ${calls} rebuilt`)),
        });
      }
    }
  };

  test('each version continues the other’s work, and verifies all of it through either node', async () => {
    await Promise.all([
      worked('former-0', former.program, times(3)),
      worked('former-1', former.program, times(3)),
      worked('new-0', cliPath, times(3)),
      worked('new-1', cliPath, times(3)),
    ]);
    await Promise.all([
      worked('former-0', cliPath, times(2)),
      worked('former-1', cliPath, times(2)),
      worked('new-0', former.program, times(2)),
      worked('new-1', former.program, times(2)),
    ]);
    await verified();
  });

  test('each node is upgraded while agents of both versions work, and nothing acknowledged is lost', async () => {
    expect(await runCli(['node', 'stop', '--data', data('b')])).toMatchObject({ code: 0 });
    expect(await start('b', former.program)).toMatchObject({ code: 0 });
    let isExchanged = false;
    const workers = ['former-rolling-0', 'new-rolling-0', 'former-rolling-1', 'new-rolling-1'];
    const rounds = new Map<string, number>();
    /** Exchanges a node. Returns how many rounds each worker has completed meanwhile. */
    const exchange = async (name: string): Promise<readonly number[]> => {
      const before = new Map(rounds);
      expect(await runCli(['node', 'stop', '--data', data(name)], {}, former.program)).toMatchObject({ code: 0 });
      expect(await start(name, cliPath)).toMatchObject({ code: 0 });
      return workers.map((session) => (rounds.get(session) ?? 0) - (before.get(session) ?? 0));
    };
    const progress = new EventEmitter();
    const allBegun = once(progress, 'begun');
    const working = workers.map((session) => {
      const program = session.startsWith('former') ? former.program : cliPath;
      const wanted = (round: number): boolean => {
        rounds.set(session, round);
        if (workers.every((worker) => (rounds.get(worker) ?? 0) > 0)) progress.emit('begun');
        return !isExchanged;
      };
      return worked(session, program, wanted).catch((error: unknown) => {
        isExchanged = true;
        progress.emit('error', error);
        throw error;
      });
    });
    const exchanging = (async () => {
      try {
        await allBegun;
        return [...(await exchange('a')), ...(await exchange('b'))];
      } finally {
        isExchanged = true;
      }
    })();
    const [ended] = await Promise.all([exchanging, ...working]);
    expect(Math.min(...ended)).toBeGreaterThan(0);
    await verified();
  });
});

describe('nodes and clients of another format', () => {
  let newer: OtherBuild;
  const marker = (name: string): Promise<string> => readFile(join(data(name), 'palimpsest.json'), 'utf8');

  beforeAll(async () => {
    newer = await buildOfFormat(3);
    expect(await start('own', cliPath)).toMatchObject({ code: 0 });
    expect(await start('newer', newer.program, 'newer')).toMatchObject({ code: 0 });
  });

  afterAll(async () => {
    await runCli(['node', 'stop', '--data', data('newer')], {}, newer?.program);
    nodes.delete('newer');
    await newer?.remove();
  });

  test('let a newer node refuse a log of this format and leave the data folder to this version', async () => {
    expect(await start('fresh', newer.program)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/The log has format 2; this version writes format 3/),
    });
    expect(await readdir(data('fresh'))).not.toContain('shared-log.json');
    expect(await runCli(['node', 'stop', '--data', data('own')])).toMatchObject({ code: 0 });
    expect(await start('own', newer.program)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/The log has format 2/),
    });
    expect(await marker('own')).toBe('{"format":2}\n');
    expect(await start('own', cliPath)).toMatchObject({ code: 0 });
  });

  test('let clients refuse nodes of the other format, own and remote, without writing', async () => {
    const [own, other] = [await urlOf('own'), await urlOf('newer')];
    const asked = (program: string, flags: readonly string[], url?: string) =>
      runCli(['sessions', ...flags], { XTDB_URL: url }, program);
    expect(await asked(newer.program, ['--data', data('own')])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/has format 2; this version reads and writes format 3/),
    });
    expect(await marker('own')).toBe('{"format":2}\n');
    expect(await asked(newer.program, ['--data', data('remote-newer')], own)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/has format 2/),
    });
    expect(await asked(cliPath, ['--data', data('newer')])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/says format 3/),
    });
    for (const url of [other, `unix:${join(folder, 'gone.sock')},${other}`])
      expect(await asked(cliPath, ['--data', data('remote')], url)).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/has format 3; this version reads and writes format 2/),
      });
    const before = (await asked(newer.program, ['--data', data('newer'), '--json'])).stdout;
    const agent = await stdioAgent(join(folder, 'project'), ['--data', data('remote'), '--session', 'refused'], {
      XTDB_URL: other,
    });
    try {
      await expect(agent.call('write', { path: 'refused.txt', content: 'x' })).resolves.toMatchObject({
        isError: true,
        text: expect.stringMatching(/format 3/),
      });
    } finally {
      await agent.close();
    }
    expect((await asked(newer.program, ['--data', data('newer'), '--json'])).stdout).toBe(before);
    // Each version continues with its own session.
    expect(await asked(cliPath, ['--data', data('own')])).toMatchObject({ code: 0 });
    expect(await asked(newer.program, ['--data', data('newer')])).toMatchObject({ code: 0 });
  });

  test('let this version refuse a log of the newer format, and status report each node’s format', async () => {
    expect(await start('late', cliPath, 'newer')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/The log has format 3; this version knows formats up to 2/),
    });
    expect(await readdir(data('late'))).not.toContain('shared-log.json');
    const all = await runCli(['node', 'status', '--all', '--data', data('own')], {
      XTDB_URL: `${await urlOf('own')},${await urlOf('newer')}`,
    });
    expect(all.code).toBe(3);
    expect(all.stdout).toMatch(/of format 2/);
    expect(all.stdout).toMatch(/of format 3/);
  });
});

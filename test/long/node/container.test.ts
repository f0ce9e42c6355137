import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, stat } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { delimiter, dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { builtFront, CONFIGS, type FrontRun, privateFolder, runCommand } from '../../support/front-process.js';
import { stdioAgent } from '../../support/mcp-clients.js';
import { runCli } from '../../support/run-cli.js';
import { until } from '../../support/until.js';

const repository = dirname(dirname(dirname(import.meta.dirname)));
const textOf = (name: string): Promise<string> => readFile(join(repository, name), 'utf8');

/** The fields of a compose service that this test uses. */
interface Service {
  readonly ports?: readonly string[];
  readonly command?: readonly string[];
  readonly volumes: readonly string[];
  readonly healthcheck: { readonly test: readonly [string, ...string[]] };
}

/** A list of words that an instruction of the Dockerfile has, in its exec form. */
function instruction(dockerfile: string, name: string): readonly string[] {
  const [, list = '[]'] = new RegExp(`^${name} (\\[[^\\]]*\\])`, 'm').exec(dockerfile.replaceAll('\\\n', '')) ?? [];
  return JSON.parse(list);
}

let dir: string;
let remove: () => Promise<void>;
let run: FrontRun | undefined;
beforeEach(async () => {
  ({ dir, remove } = await privateFolder());
  for (const name of ['data', 'run', 'project']) await mkdir(join(dir, name), { mode: 0o700 });
});
afterEach(async () => {
  run?.process.kill('SIGKILL');
  await run?.ended;
  await remove();
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

/**
 * Returns a service of the compose file with the image's own command. Its paths and its port are
 * replaced by ones of this machine.
 */
async function service(name: string) {
  const services: Readonly<Record<string, Service>> = parse(await textOf('docker-compose.yml'), {
    merge: true,
  }).services;
  const dockerfile = await textOf('xtdb/Dockerfile');
  const { java, installation } = await builtFront();
  const { command, ports = [], volumes, healthcheck } = services[name] as Service;
  const port = await freePort();
  const here = (word: string): string =>
    word
      .replace('/front/front.jar:/front/lib/*', installation.jars.join(delimiter))
      .replace('/front/xtdb.edn', CONFIGS.rocksdb)
      .replaceAll('/data', join(dir, 'data'))
      .replaceAll('/run/front', join(dir, 'run'))
      .replaceAll('7391', String(port))
      .replaceAll('$$', '$');
  const [, ...entry] = instruction(dockerfile, 'ENTRYPOINT');
  const flags = [...entry, ...(command ?? instruction(dockerfile, 'CMD'))];
  const [, ...check] = healthcheck.test;
  const [, arenas = ''] = /^ENV MALLOC_ARENA_MAX=(\d+)$/m.exec(dockerfile) ?? [];
  const start = async (): Promise<FrontRun> => {
    const scratch = await mkdtemp(join(dir, 'tmp-'));
    const words = [`-Djava.io.tmpdir=${scratch}`, ...flags.map(here)];
    run = runCommand([java.command, ...words], { scratch, env: { MALLOC_ARENA_MAX: arenas } });
    return run;
  };
  /** Whether the container would count as healthy. */
  const isHealthy = (): Promise<boolean> =>
    new Promise((resolve) => {
      const [program = '', ...args] = check.map(here);
      execFile(program, args, (error) => resolve(error === null));
    });
  return { flags, ports, volumes, port, start, isHealthy, here };
}

/** The lines that the documents say a user runs, without their comment signs. */
async function documented(name: string, line: RegExp): Promise<string> {
  const [found] = line.exec(await textOf(name)) ?? [];
  if (found === undefined) throw new Error(`${name} does not say ${line}`);
  return found;
}

describe('the services of the compose file', () => {
  test('answer on the loopback address with the generated token, as documented, also after a restart', async () => {
    const { flags, ports, volumes, port, start, isHealthy, here } = await service('xtdb');
    expect(ports.map((port) => port.replace(/\$\{XTDB_PORT:-(\d+)\}/, '$1'))).toEqual(['127.0.0.1:7391:7391']);
    expect(flags[flags.indexOf('--port') + 1]).toBe('7391');
    const file = flags[flags.indexOf('--token-file') + 1] ?? '';
    expect(volumes.some((volume) => volume.endsWith(`:${dirname(file)}`))).toBe(true);
    for (const name of ['docs/install.md', 'xtdb/README.md', 'docker-compose.yml']) {
      await documented(name, /docker compose up --detach --wait$/m);
      await documented(
        name,
        new RegExp(
          `XTDB_URL=http://127.0.0.1:7391 XTDB_TOKEN="\\$\\(docker compose exec -T xtdb cat ${file}\\)" palimpsest `,
        ),
      );
    }

    expect(await isHealthy()).toBe(false);
    const first = await start();
    await until(isHealthy, (healthy) => healthy);
    const token = await readFile(here(file), 'utf8');
    expect([token.length, (await stat(here(file))).mode & 0o777]).toEqual([43, 0o600]);
    const env = { XTDB_URL: `http://127.0.0.1:${port}`, XTDB_TOKEN: token };
    const agent = await stdioAgent(
      join(dir, 'project'),
      ['--data', join(dir, 'client'), '--session', 'contained'],
      env,
    );
    expect(await agent.call('write', { path: 'a.txt', content: 'text' })).toMatchObject({ isError: false });
    await agent.close();

    first.process.kill('SIGTERM');
    expect(await first.ended).toMatchObject({ code: 0 });
    await start();
    await until(isHealthy, (healthy) => healthy);
    const asked = await runCli(['sessions', '--data', join(dir, 'client')], env);
    expect(asked).toMatchObject({ code: 0, stdout: expect.stringContaining('contained') });
    const refused = await runCli(['sessions', '--data', join(dir, 'client')], { XTDB_URL: env.XTDB_URL });
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/401.*token/) });
  });

  test('answer on a socket instead', async () => {
    const { start, isHealthy, here } = await service('socket');
    const line = await documented('docker-compose.yml', /XTDB_URL="unix:\$PWD\/\.node-socket\/[\w.]+" palimpsest /);
    const socket = /node-socket\/([\w.]+)/.exec(line)?.[1] ?? '';
    const { ready } = await start();
    expect(await ready).toMatchObject({ socket: here(`/run/front/${socket}`), port: null });
    expect(await isHealthy()).toBe(true);
    const asked = await runCli(['sessions', '--data', join(dir, 'project')], {
      XTDB_URL: `unix:${here(`/run/front/${socket}`)}`,
    });
    expect(asked).toMatchObject({ code: 0, stdout: expect.stringContaining('no sessions') });
  });
});

import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { parse, parseAllDocuments } from 'yaml';
import { builtFront, CONFIGS, type FrontRun, privateFolder, runCommand } from '../support/front-process.js';
import { stdioAgent } from '../support/mcp-clients.js';
import { runCli } from '../support/run-cli.js';
import { until } from '../support/until.js';
import { freePort } from './free-port.js';
import { type PostgresServer, postgresServer } from './postgres-server.js';

const repository = join(import.meta.dirname, '..', '..');
const deploy = (name: string): Promise<string> => readFile(join(repository, 'deploy', name), 'utf8');

/** The fields of a compose service that this test uses. */
interface Service {
  readonly image?: string;
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly ports: readonly string[];
  readonly secrets: readonly string[];
  readonly configs: readonly { readonly source: string; readonly target: string }[];
  readonly healthcheck: { readonly test: readonly string[] };
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly configs: Readonly<Record<string, { readonly file: string }>>;
  readonly secrets: Readonly<Record<string, { readonly environment: string }>>;
}

const compose = async (): Promise<Compose> => parse(await deploy('compose.yml'), { merge: true });

async function serviceOf(name: string): Promise<Service> {
  const service = (await compose()).services[name];
  if (service === undefined) throw new Error(`the compose file has no service ${name}`);
  return service;
}

/** The fields of a container in the manifests that this test uses. */
interface Container {
  readonly image: string;
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
  readonly livenessProbe?: { readonly exec?: unknown };
  readonly readinessProbe?: { readonly exec?: { readonly command: readonly string[] } };
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
}

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly ports?: readonly { readonly port: number }[];
    readonly template: {
      readonly spec: { readonly containers: readonly [Container]; readonly volumes: readonly object[] };
    };
  };
}

const manifests = async (): Promise<readonly Manifest[]> =>
  parseAllDocuments(await deploy('kubernetes.yml')).map((one) => one.toJS());

async function containerOf(name: string): Promise<Container> {
  const found = (await manifests()).find(
    ({ kind, metadata }) => /^(?:StatefulSet|Deployment)$/.test(kind) && metadata.name === name,
  );
  if (found === undefined) throw new Error(`the manifests have no ${name}`);
  return found.spec.template.spec.containers[0];
}

const hasProxy = spawnSync('haproxy', ['-v']).status === 0;
const throughProxy = hasProxy ? test : test.skip;

describe('the services of the compose file', () => {
  const token = 'a-token-of-the-test';
  let dir: string;
  let remove: () => Promise<void>;
  let postgres: PostgresServer;
  let ports: Readonly<Record<'node-a' | 'node-b' | 'proxy', number>>;
  const runs: FrontRun[] = [];
  let proxy: ChildProcess | undefined;

  /** Replaces the paths and ports in a word of the files by those of this machine. */
  const here = (word: string, node: 'node-a' | 'node-b'): string =>
    word
      .replace('/front/postgres.edn', CONFIGS.postgres)
      .replace('/front/node-settings.json', join(dir, 'node-settings.json'))
      .replaceAll('/run/secrets/', `${join(dir, 'secrets')}/`)
      .replace(/^\/data/, join(dir, node))
      .replaceAll('7391', String(ports[node]))
      .replace(/^0\.0\.0\.0$/, '127.0.0.1')
      .replaceAll('$$', '$');

  async function startNode(node: 'node-a' | 'node-b'): Promise<FrontRun> {
    const { java, installation } = await builtFront(true);
    const dockerfile = (await readFile(join(repository, 'xtdb', 'Dockerfile'), 'utf8')).replaceAll('\\\n', '');
    const [, entry = '[]'] = /^ENTRYPOINT (\[[^\]]*\])/m.exec(dockerfile) ?? [];
    const [, ...flags] = JSON.parse(entry) as readonly string[];
    const words = [...flags, ...(await serviceOf(node)).command]
      .map((word) => word.replace('/front/front.jar:/front/lib/*', installation.jars.join(delimiter)))
      .map((word) => here(word, node));
    const scratch = await mkdtemp(join(dir, 'tmp-'));
    const run = runCommand([java.command, `-Djava.io.tmpdir=${scratch}`, ...words], { scratch });
    runs.push(run);
    return run;
  }

  const isHealthy = async (node: 'node-a' | 'node-b'): Promise<boolean> => {
    const [, program = '', ...args] = (await serviceOf(node)).healthcheck.test;
    return new Promise((resolve) => {
      execFile(
        program,
        args.map((word) => here(word, node)),
        (error) => resolve(error === null),
      );
    });
  };

  beforeAll(async () => {
    ({ dir, remove } = await privateFolder());
    const { database } = JSON.parse(await deploy('node-settings.json'));
    const { environment } = await serviceOf('postgres');
    expect([database.user, database.name]).toEqual([environment.POSTGRES_USER, environment.POSTGRES_DB]);
    postgres = await postgresServer([database.name], { user: database.user });
    ports = { 'node-a': await freePort(), 'node-b': await freePort(), proxy: await freePort() };
    for (const name of ['secrets', 'node-a', 'node-b', 'project']) await mkdir(join(dir, name), { mode: 0o700 });
    await writeFile(join(dir, 'secrets', 'database-password'), postgres.password);
    await writeFile(join(dir, 'secrets', 'node-token'), token, { mode: 0o600 });
    const settings = (await deploy('node-settings.json'))
      .replace('"postgres", "port": 5432', `"127.0.0.1", "port": ${postgres.port}`)
      .replace('/run/secrets', join(dir, 'secrets'));
    await writeFile(join(dir, 'node-settings.json'), settings);
  });

  afterAll(async () => {
    proxy?.kill('SIGKILL');
    for (const { process } of runs) process.kill('SIGKILL');
    await Promise.all(runs.map(({ ended }) => ended));
    await postgres?.remove();
    await remove?.();
  });

  const agentOf = (url: string, session: string) =>
    stdioAgent(join(dir, 'project'), ['--data', join(dir, 'client'), '--session', session], {
      XTDB_URL: url,
      XTDB_TOKEN: token,
    });

  test('are two healthy nodes by their own checks, over one database, for the token alone', async () => {
    expect(await isHealthy('node-a')).toBe(false);
    for (const node of ['node-a', 'node-b'] as const) {
      await startNode(node);
      await until(
        () => isHealthy(node),
        (healthy) => healthy,
      );
    }
    const urls = `http://127.0.0.1:${ports['node-a']},http://127.0.0.1:${ports['node-b']}`;
    const agent = await agentOf(urls, 'both');
    expect(await agent.call('write', { path: 'a.txt', content: 'text' })).toMatchObject({ isError: false });
    await agent.close();
    const refused = await runCli(['sessions', '--data', join(dir, 'client')], {
      XTDB_URL: `http://127.0.0.1:${ports['node-b']}`,
    });
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/401.*token/) });
  });

  throughProxy('the proxy has one address for both, and continues with one when the other is killed', async () => {
    const file = join(dir, 'haproxy.cfg');
    await writeFile(file, (await deploy('haproxy.cfg')).replace(':7390', `127.0.0.1:${ports.proxy}`));
    const { environment, ports: published } = await serviceOf('proxy');
    expect(published.map((port) => port.replace(/\$\{PROXY_PORT:-(\d+)\}/, '$1'))).toEqual(['127.0.0.1:7390:7390']);
    expect(environment).toMatchObject({ NODE_A: 'node-a:7391', NODE_B: 'node-b:7391' });
    const env = {
      PROXY_HOSTS: 'localhost 127.0.0.1',
      NODE_A: `127.0.0.1:${ports['node-a']}`,
      NODE_B: `127.0.0.1:${ports['node-b']}`,
      NODE_TOKEN: token,
    };
    proxy = spawn('haproxy', ['-db', '-f', file], { env: { ...process.env, ...env }, stdio: 'ignore' });
    const url = `http://127.0.0.1:${ports.proxy}`;
    const client = join(dir, 'client');
    const sessions = () => runCli(['sessions', '--data', client], { XTDB_URL: url, XTDB_TOKEN: token });
    await until(sessions, ({ code }) => code === 0);
    const agent = await agentOf(url, 'proxied');
    try {
      for (let i = 0; i < 10; i++) {
        if (i === 5) runs[0]?.process.kill('SIGKILL');
        expect(await agent.call('write', { path: `${i}.txt`, content: `text ${i}` })).toMatchObject({ isError: false });
        expect((await agent.call('read', { path: `${i}.txt` })).text).toContain(`text ${i}`);
      }
    } finally {
      await agent.close();
    }
    const verified = await until(
      () => runCli(['verify', 'proxied', '--data', client], { XTDB_URL: url, XTDB_TOKEN: token }),
      ({ code }) => code === 0,
    );
    expect(verified.stdout).toMatch(/answers {3}\d+ of 20 rebuilt/);
  });
});

describe('the manifests for Kubernetes', () => {
  test('start the same nodes, database and proxy as the compose file', async () => {
    const node = await containerOf('node');
    const { command, healthcheck } = await serviceOf('node-a');
    const args = node.args?.map((word) => word.replace('/front/settings/', '/front/'));
    expect(args).toEqual(command);
    const [, ...check] = healthcheck.test;
    expect(node.readinessProbe?.exec?.command).toEqual(check.map((word) => word.replaceAll('$$', '$')));
    // Nothing may end a node that builds its index.
    expect(node.livenessProbe).not.toHaveProperty('exec');
    const values = (container: Container) =>
      Object.fromEntries((container.env ?? []).map(({ name, value }) => [name, value]));
    expect(values(await containerOf('postgres'))).toEqual((await serviceOf('postgres')).environment);
    expect(Object.keys(values(await containerOf('proxy')))).toEqual(
      Object.keys((await serviceOf('proxy')).environment),
    );
    for (const name of ['postgres', 'proxy'])
      expect((await containerOf(name)).image).toBe((await serviceOf(name)).image);
  });

  test('take settings and secrets from the same files, and mount every path of the nodes’ arguments', async () => {
    const kustomization = parse(await deploy('kustomization.yml'));
    const { configs, secrets } = await compose();
    expect(kustomization.configMapGenerator[0].files.toSorted()).toEqual(
      Object.values(configs)
        .map(({ file }) => file)
        .toSorted(),
    );
    const text = await deploy('kubernetes.yml');
    for (const { environment } of Object.values(secrets)) expect(text).toContain(`key: ${environment}`);
    for (const [name] of Object.entries(secrets)) expect(text).toContain(`path: ${name}`);
    for (const file of kustomization.configMapGenerator[0].files) expect(text).toContain(`key: ${file}, path: ${file}`);
    const { args = [], volumeMounts } = await containerOf('node');
    const places = args.filter((word) => word.startsWith('/') && word !== '/front/postgres.edn');
    for (const place of places)
      expect(volumeMounts.some(({ mountPath }) => place.startsWith(`${mountPath}/`))).toBe(true);
    const services = (await manifests()).filter(({ kind }) => kind === 'Service');
    expect(services.map(({ metadata, spec }) => [metadata.name, spec.ports?.[0]?.port])).toEqual([
      ['postgres', 5432],
      ['node', 7391],
      ['palimpsest', 7390],
    ]);
  });
});

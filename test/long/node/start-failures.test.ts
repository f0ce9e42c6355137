import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { findJava } from '../../../src/node/java.js';
import { runCli, startCli } from '../../support/run-cli.js';
import { withTemporaryFolder } from '../../support/temporary-folder.js';
import { until } from '../../support/until.js';

/** Writes a shell script that replaces a program. */
async function fakeCommand(dir: string, name: string, script: string): Promise<void> {
  await mkdir(dir, { recursive: true });
  await writeFile(join(dir, name), `#!/bin/sh\n${script}\n`);
  await chmod(join(dir, name), 0o755);
}

async function realJavaHome(): Promise<string> {
  const java = await findJava({ javaHome: process.env.JAVA_HOME });
  return dirname(dirname(java.command));
}

/** Starts a node with an empty cache and only `bin` on the PATH. Returns the expected error. */
async function failedStart(
  dir: string,
  env: Readonly<Record<string, string | undefined>>,
  data = 'data',
): Promise<{ readonly code: string; readonly message: string }> {
  const { code, stdout } = await runCli(['node', 'start', '--json', '--profile', 'memory', '--data', join(dir, data)], {
    PATH: join(dir, 'bin'),
    JAVA_HOME: undefined,
    XDG_CACHE_HOME: join(dir, 'cache'),
    ...env,
  });
  expect(code).toBe(1);
  return JSON.parse(stdout).error;
}

const containing = (text: string): unknown => expect.stringContaining(text);

describe('a start of a node', () => {
  test('without Java fails, and says which version to install', () =>
    withTemporaryFolder(async (dir) => {
      expect(await failedStart(dir, {})).toEqual({
        code: 'no-java',
        message: containing('Install a JDK of version 17'),
      });
      const withHome = await failedStart(dir, { JAVA_HOME: '/nowhere' });
      expect(withHome).toEqual({ code: 'no-java', message: containing('/nowhere') });
    }));

  test('with a Java that is too old fails, and names its version', () =>
    withTemporaryFolder(async (dir) => {
      await fakeCommand(join(dir, 'bin'), 'java', `echo 'openjdk version "11.0.2" 2019-01-15' >&2`);
      expect(await failedStart(dir, {})).toEqual({ code: 'java-too-old', message: containing('is version 11.0.2') });
    }));

  test('without Maven fails, and says to install it', () =>
    withTemporaryFolder(async (dir) => {
      const error = await failedStart(dir, { JAVA_HOME: await realJavaHome() });
      expect(error).toEqual({ code: 'no-maven', message: containing('Install Apache Maven') });
      expect(await readdir(join(dir, 'cache', 'palimpsest'))).toEqual([]);
    }));

  test('without a network for the build fails, and says to check the connection', () =>
    withTemporaryFolder(async (dir) => {
      const said =
        '[ERROR] Plugin org.apache.maven.plugins:maven-dependency-plugin:3.6.1 or one of its dependencies could ' +
        'not be resolved: Could not transfer artifact from/to central (https://repo.maven.apache.org/maven2): ' +
        'repo.maven.apache.org: Temporary failure in name resolution';
      await fakeCommand(join(dir, 'bin'), 'mvn', `echo '${said}'; exit 1`);
      const error = await failedStart(dir, { JAVA_HOME: await realJavaHome() });
      expect(error).toEqual({ code: 'no-network', message: containing('Temporary failure in name resolution') });
      expect(error.message).toContain('Check the connection');
    }));

  test('waits while another start builds the node', () =>
    withTemporaryFolder(async (dir) => {
      const log = join(dir, 'log');
      await fakeCommand(
        join(dir, 'bin'),
        'mvn',
        `/bin/mkdir ${dir}/busy || echo overlap >> ${log}; /bin/sleep 0.3; /bin/rmdir ${dir}/busy; ` +
          `echo ran >> ${log}; echo '[ERROR] Unknown host'; exit 1`,
      );
      const env = { JAVA_HOME: await realJavaHome() };
      const errors = await Promise.all([failedStart(dir, env), failedStart(dir, env, 'other')]);
      expect(errors.map(({ code }) => code)).toEqual(['no-network', 'no-network']);
      expect(await readFile(log, 'utf8')).toBe('ran\nran\n');
    }));

  test('leaves a build that continues after the start itself is killed', () =>
    withTemporaryFolder(async (dir) => {
      const [begun, go, cache] = [join(dir, 'begun'), join(dir, 'go'), join(dir, 'cache')];
      await fakeCommand(join(dir, 'bin'), 'mvn', `echo > ${begun}; while [ ! -e ${go} ]; do /bin/sleep 0.05; done`);
      const run = startCli(['node', 'start', '--data', join(dir, 'data')], {
        PATH: join(dir, 'bin'),
        JAVA_HOME: await realJavaHome(),
        XDG_CACHE_HOME: cache,
      });
      const entries = (folder: string): Promise<readonly string[]> => readdir(folder).catch(() => []);
      await until(
        () => entries(dir),
        (names) => names.includes('begun'),
      );
      run.child.kill('SIGKILL');
      await run.result;
      expect(await entries(join(cache, 'palimpsest'))).not.toEqual([]);
      await writeFile(go, '');
      // The build finds no libraries, and removes its draft and its lock.
      await until(
        () => entries(join(cache, 'palimpsest')),
        (names) => names.length === 0,
      );
    }));

  test('without space for the build fails with `no-space`', () =>
    withTemporaryFolder(async (dir) => {
      await fakeCommand(
        join(dir, 'bin'),
        'mvn',
        `echo '[ERROR] Error copying artifact: No space left on device'; exit 1`,
      );
      expect(await failedStart(dir, { JAVA_HOME: await realJavaHome() })).toMatchObject({ code: 'no-space' });
    }));

  test('with a cache folder that cannot be made fails, and names its variable', () =>
    withTemporaryFolder(async (dir) => {
      await writeFile(join(dir, 'file'), '');
      const error = await failedStart(dir, { JAVA_HOME: await realJavaHome(), XDG_CACHE_HOME: join(dir, 'file') });
      expect(error).toEqual({ code: 'build-failed', message: containing('XDG_CACHE_HOME') });
    }));

  test('fails if the data folder is not writable, has no format, or a newer one', () =>
    withTemporaryFolder(async (dir) => {
      const start = async (data: string): Promise<string> => {
        const { code, stderr } = await runCli(['node', 'start', '--data', data]);
        expect(code).toBe(1);
        return stderr;
      };
      await writeFile(join(dir, 'file'), '');
      expect(await start(join(dir, 'file', 'data'))).toMatch(/^palimpsest: The data folder .* cannot be written/);
      await writeFile(join(dir, 'palimpsest.json'), '{"for');
      expect(await start(dir)).toMatch(/^palimpsest: .*does not say which format/);
      await writeFile(join(dir, 'palimpsest.json'), '{"format":7}');
      expect(await start(dir)).toMatch(/^palimpsest: .*says format 7/);
    }));
});

describe('a stopped node', () => {
  test('has a status, a stop and logs that create no file', () =>
    withTemporaryFolder(async (dir) => {
      const data = join(dir, 'none');
      const status = await runCli(['node', 'status', '--json', '--data', data]);
      expect([status.code, JSON.parse(status.stdout)]).toEqual([
        3,
        { running: false, dataDir: data, isDiskFull: false, leastRoom: 16 * 2 ** 20, failure: null },
      ]);
      const stop = await runCli(['node', 'stop', '--json', '--data', data]);
      expect([stop.code, JSON.parse(stop.stdout)]).toEqual([0, { stopped: false }]);
      const logs = await runCli(['node', 'logs', '--json', '--data', data]);
      expect(JSON.parse(logs.stdout)).toEqual({ path: null, text: null });
      expect(await readdir(dir)).toEqual([]);
    }));
});

import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { findJava } from '../../../src/node/java.js';
import { runCli, startCli } from '../../support/run-cli.js';
import { withTemporaryFolder } from '../../support/temporary-folder.js';
import { until } from '../../support/until.js';

/** Puts a command of that name into a folder, in place of one that this machine might have. */
async function fakeCommand(dir: string, name: string, script: string): Promise<void> {
  await mkdir(dir, { recursive: true });
  await writeFile(join(dir, name), `#!/bin/sh\n${script}\n`);
  await chmod(join(dir, name), 0o755);
}

async function realJavaHome(): Promise<string> {
  const java = await findJava({ javaHome: process.env.JAVA_HOME });
  return dirname(dirname(java.command));
}

/** The error of a start in an empty cache, with nothing but `bin` on the PATH. */
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

const readMessage = (text: string): unknown => expect.stringContaining(text);

describe('a node that cannot start names the reason and the remedy', () => {
  test('without Java', () =>
    withTemporaryFolder(async (dir) => {
      expect(await failedStart(dir, {})).toEqual({
        code: 'no-java',
        message: readMessage('Install a JDK of version 17'),
      });
      const withHome = await failedStart(dir, { JAVA_HOME: '/nowhere' });
      expect(withHome).toEqual({ code: 'no-java', message: readMessage('/nowhere') });
    }));

  test('with a Java that is too old', () =>
    withTemporaryFolder(async (dir) => {
      await fakeCommand(join(dir, 'bin'), 'java', `echo 'openjdk version "11.0.2" 2019-01-15' >&2`);
      expect(await failedStart(dir, {})).toEqual({ code: 'java-too-old', message: readMessage('is version 11.0.2') });
    }));

  test('without Maven', () =>
    withTemporaryFolder(async (dir) => {
      const error = await failedStart(dir, { JAVA_HOME: await realJavaHome() });
      expect(error).toEqual({ code: 'no-maven', message: readMessage('Install Apache Maven') });
      expect(await readdir(join(dir, 'cache', 'palimpsest'))).toEqual([]);
    }));

  test('without a network for the first start', () =>
    withTemporaryFolder(async (dir) => {
      const said =
        '[ERROR] Plugin org.apache.maven.plugins:maven-dependency-plugin:3.6.1 or one of its dependencies could ' +
        'not be resolved: Could not transfer artifact from/to central (https://repo.maven.apache.org/maven2): ' +
        'repo.maven.apache.org: Temporary failure in name resolution';
      await fakeCommand(join(dir, 'bin'), 'mvn', `echo '${said}'; exit 1`);
      const error = await failedStart(dir, { JAVA_HOME: await realJavaHome() });
      expect(error).toEqual({ code: 'no-network', message: readMessage('Temporary failure in name resolution') });
      expect(error.message).toContain('Check the connection');
    }));

  test('with two first starts at once: one builds, the other waits', () =>
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

  test('with a build whose first process is killed, which continues', () =>
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

  test('without space for the first start', () =>
    withTemporaryFolder(async (dir) => {
      await fakeCommand(
        join(dir, 'bin'),
        'mvn',
        `echo '[ERROR] Error copying artifact: No space left on device'; exit 1`,
      );
      expect(await failedStart(dir, { JAVA_HOME: await realJavaHome() })).toMatchObject({ code: 'no-space' });
    }));

  test('with an impossible cache folder', () =>
    withTemporaryFolder(async (dir) => {
      await writeFile(join(dir, 'file'), '');
      const error = await failedStart(dir, { JAVA_HOME: await realJavaHome(), XDG_CACHE_HOME: join(dir, 'file') });
      expect(error).toEqual({ code: 'build-failed', message: readMessage('XDG_CACHE_HOME') });
    }));

  test('with a data folder that is not writable, corrupt or newer', () =>
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
  test('is reported by status, stop and logs, which create nothing', () =>
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

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { Command } from 'commander';
import { withServerFlags } from '../../../src/cli/serve.js';
import {
  readSettings,
  requireUsable,
  SECRET_VARIABLES,
  type ServerFlags,
  serverSettings,
} from '../../../src/host/settings.js';

describe('sources of settings', () => {
  test('use defaults in the XDG folders of the user', () => {
    expect(readSettings({}, {})).toEqual({
      node: {
        dataDir: join(homedir(), '.local', 'share', 'palimpsest'),
        cacheDir: join(homedir(), '.cache', 'palimpsest'),
      },
      nodeUrl: undefined,
      maskAnswers: false,
      shareSessions: false,
    });
    expect(
      readSettings(
        {
          XDG_DATA_HOME: '/d',
          XDG_CACHE_HOME: '/c',
          XDG_RUNTIME_DIR: '/r',
          JAVA_HOME: '/j',
          XTDB_URL: 'http://h:3000',
        },
        {},
      ),
    ).toEqual({
      node: { dataDir: '/d/palimpsest', cacheDir: '/c/palimpsest', runtimeDir: '/r', javaHome: '/j' },
      nodeUrl: 'http://h:3000',
      maskAnswers: false,
      shareSessions: false,
    });
  });

  test('prefer a flag to a variable and a variable to a default; an empty variable is unset', () => {
    expect(readSettings({ PALIMPSEST_DATA: '/v', XDG_DATA_HOME: '/d' }, {}).node.dataDir).toBe('/v');
    expect(readSettings({ PALIMPSEST_DATA: '/v' }, { data: '/f' }).node.dataDir).toBe('/f');
    expect(readSettings({ PALIMPSEST_DATA: '', XDG_DATA_HOME: '/d' }, {}).node.dataDir).toBe('/d/palimpsest');
    expect(readSettings({ PALIMPSEST_PROFILE: 'memory' }, {}).node.profile).toBe('memory');
    expect(readSettings({ PALIMPSEST_TCP: '1' }, {}).node.transport).toBe('tcp');
    expect(readSettings({ PALIMPSEST_TCP: '0' }, {}).node).not.toHaveProperty('transport');
  });

  test('read a remote node’s token from a variable or a file each time; an error never repeats it', () => {
    const folder = mkdtempSync(join(tmpdir(), 'palimpsest-token-'));
    const file = join(folder, 'token');
    const read = (env: Record<string, string>) => readSettings({ XTDB_URL: 'http://h:3000', ...env }, {}).nodeToken;
    try {
      expect(read({})).toBeUndefined();
      expect(read({ XTDB_TOKEN: 'one' })?.()).toBe('one');
      writeFileSync(file, 'two\n');
      const token = read({ XTDB_TOKEN_FILE: file });
      expect(token?.()).toBe('two');
      writeFileSync(file, 'three\n');
      expect(token?.()).toBe('three');
      expect(() => read({ XTDB_TOKEN: 'one', XTDB_TOKEN_FILE: file })).toThrow(/XTDB_TOKEN and XTDB_TOKEN_FILE/);
      expect(() => read({ XTDB_TOKEN_FILE: join(folder, 'none') })).toThrow(/none.*XTDB_TOKEN_FILE/);
      expect(() => read({ XTDB_TOKEN: 'one two' })).toThrow(/XTDB_TOKEN/);
      expect(() => read({ XTDB_TOKEN: 'one two' })).not.toThrow(/one two/);
      // Our own node has its own token.
      expect(readSettings({ XTDB_TOKEN: 'one two' }, {}).nodeToken).toBeUndefined();
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('refuse an unknown profile and list the valid ones', () => {
    expect(() => readSettings({}, { profile: 'mysql' })).toThrow(/"mysql".*memory, rocksdb, postgres, kafka/);
  });
});

function settings(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const command = withServerFlags(new Command())
    .exitOverride()
    .configureOutput({ writeErr: () => undefined });
  command.parse([...args], { from: 'user' });
  return serverSettings(command.opts<ServerFlags>(), {
    env: { HOME: '/home/me', ...env },
    cwd: '/srv',
    version: '1.2.3',
  });
}

describe('refuse unusable settings at the start', () => {
  const good = ['--root', '/', '--data', '/'];
  test.each([
    [['--root', '/no/such/folder', '--data', '/'], '--root /no/such/folder: this folder does not exist'],
    [['--root', process.execPath, '--data', '/'], 'it is not a folder'],
    [['--root', '/', '--data', process.execPath], '(--data) is not a folder'],
    [[...good, '--session', 'bad/id'], 'is not a session id'],
  ])('%j', (args, why) => {
    expect(() => requireUsable(settings(args))).toThrow(why);
  });

  test('accept a data folder that does not exist yet', () => {
    expect(() =>
      requireUsable(settings(['--root', '/', '--data', '/no/such/folder', '--session', 'good'])),
    ).not.toThrow();
  });
});

describe('flags of mcp and serve', () => {
  test('default to the working folder, five results of three turns, a pause of a minute, no bash', () => {
    expect(settings([])).toMatchObject({
      version: '1.2.3',
      roots: ['/srv'],
      cwd: '/srv',
      mounts: [],
      session: undefined,
      nodeUrl: undefined,
      policy: { window: { perTurn: 5, turns: 3 }, pauseMs: 60_000 },
      tools: { bash: false, readOnly: false, strict: false, shortIds: true },
    });
  });

  test.each([
    [[], true],
    [['--long-ids'], false],
    [['--strict'], false],
    [['--strict', '--short-ids'], true],
  ])('show short ids unless the specification is followed literally: %j', (args, shortIds) => {
    expect(settings(args).tools.shortIds).toBe(shortIds);
  });

  test('read every flag', () => {
    const flags =
      '--root a --root /b --data /d --profile memory --session s --strict --short-ids --allow-bash --read-only';
    const more =
      '--max-output-chars 10000 --turn-pause 2.5 --window 7x2 --mount /workspace=/srv/a --agent-filesystem box-1';
    expect(settings([...flags.split(' '), ...more.split(' ')], { XTDB_URL: 'http://localhost:3000' })).toMatchObject({
      roots: ['/srv/a', '/b'],
      cwd: '/workspace',
      mounts: [{ agentPrefix: '/workspace', canonicalPrefix: '/srv/a' }],
      agentFilesystemId: 'box-1',
      session: 's',
      node: { dataDir: '/d', profile: 'memory' },
      nodeUrl: 'http://localhost:3000',
      policy: { window: { perTurn: 7, turns: 2 }, pauseMs: 2_500 },
      tools: { bash: true, readOnly: true, strict: true, shortIds: true, maxOutputChars: 10_000 },
    });
  });

  test('give the node the original environment: the process that runs agents’ commands drops its secrets', () => {
    const env: NodeJS.ProcessEnv = {
      PALIMPSEST_PROFILE: 'postgres',
      PALIMPSEST_DATABASE_PASSWORD: 'of-the-folder',
      XTDB_TOKEN: 'unused',
    };
    const known = serverSettings({ durability: 'process' }, { env, cwd: '/srv', version: '1' });
    for (const name of SECRET_VARIABLES) delete env[name];
    expect(known.node.environment).toMatchObject({
      PALIMPSEST_PROFILE: 'postgres',
      PALIMPSEST_DATABASE_PASSWORD: 'of-the-folder',
      XTDB_TOKEN: '',
    });
    const inUrl = settings([], { PALIMPSEST_PROFILE: 'postgres', PALIMPSEST_LOG: 'postgresql://u:in-url@h/d' });
    expect(inUrl.node.environment).toMatchObject({
      HOME: '/home/me',
      PALIMPSEST_LOG: '',
      PALIMPSEST_DATABASE_PASSWORD: 'in-url',
    });
  });

  test.each([
    [['--window', '5']],
    [['--window', 'axb']],
    [['--max-output-chars', '10']],
    [['--max-output-chars', '2000000']],
    [['--turn-pause', '-1']],
    [['--log-level', 'loud']],
    [['--profile', 'tape']],
    [['--mount', 'nowhere']],
    [['--agent-filesystem', '']],
  ])('refuse nonsense: %j', (args) => {
    expect(() => settings(args)).toThrow();
  });
});

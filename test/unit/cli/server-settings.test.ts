import { describe, expect, test } from '@jest/globals';
import { Command } from 'commander';
import { type ServerFlags, withServerFlags } from '../../../src/cli/server-flags.js';
import { serverSettings } from '../../../src/cli/server-settings.js';

function settings(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const command = withServerFlags(new Command())
    .exitOverride()
    .configureOutput({ writeErr: () => undefined });
  command.parse([...args], { from: 'user' });
  return serverSettings({ HOME: '/home/me', ...env }, '/srv', '1.2.3', command.opts<ServerFlags>());
}

describe('flags of mcp and serve', () => {
  test('without any: the working folder, five results of three turns, a pause of a minute, no bash', () => {
    expect(settings([])).toMatchObject({
      version: '1.2.3',
      roots: ['/srv'],
      cwd: '/srv',
      mounts: [],
      session: undefined,
      nodeUrl: undefined,
      policy: { window: { perTurn: 5, turns: 3 }, pauseMs: 60_000 },
      tools: { bash: false, readOnly: false, strict: false, shortIds: false },
    });
  });

  test('all of them', () => {
    const flags = '--root a --root /b --data /d --profile memory --session s --strict --short-ids --allow-bash --read-only';
    const more = '--max-output-chars 10000 --turn-pause 2.5 --window 7x2 --mount /workspace=/srv/a';
    expect(settings([...flags.split(' '), ...more.split(' ')], { XTDB_URL: 'http://localhost:3000' })).toMatchObject({
      roots: ['/srv/a', '/b'],
      cwd: '/workspace',
      mounts: [{ agentPrefix: '/workspace', canonicalPrefix: '/srv/a' }],
      session: 's',
      node: { dataDir: '/d', profile: 'memory' },
      nodeUrl: 'http://localhost:3000',
      policy: { window: { perTurn: 7, turns: 2 }, pauseMs: 2_500 },
      tools: { bash: true, readOnly: true, strict: true, shortIds: true, maxOutputChars: 10_000 },
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
  ])('nonsense is refused: %j', (args) => {
    expect(() => settings(args)).toThrow();
  });
});

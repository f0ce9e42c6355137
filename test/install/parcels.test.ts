import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { unpackExtension, validateManifest } from '@anthropic-ai/mcpb';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { until } from '../support/until.js';
import { BareHome } from './bare-home.js';
import { OWN } from './packages.js';

const parcels = (...parts: readonly string[]): string =>
  join(process.env.PALIMPSEST_PACKAGES ?? '', 'parcels', ...parts);
const json = async (...parts: readonly string[]) => JSON.parse(await readFile(parcels(...parts), 'utf8'));

describe('the parcels of pack:all', () => {
  test('are those of Claude Code, Gemini CLI and MCP, all in the version of the program', async () => {
    const { name, version, mcpName } = JSON.parse(await readFile('package.json', 'utf8'));
    expect((await readdir(parcels())).sort()).toEqual(['claude', 'gemini', `palimpsest-${OWN}.mcpb`, 'server.json']);
    expect(await json('claude', name, '.claude-plugin', 'plugin.json')).toMatchObject({ name, version });
    expect(await json('claude', '.claude-plugin', 'marketplace.json')).toMatchObject({ plugins: [{ name, version }] });
    expect(await json('gemini', 'gemini-extension.json')).toMatchObject({ name, version });
    expect(await json('server.json')).toMatchObject({ name: mcpName, version, packages: [{ version }] });
  });

  test('have the hooks of Claude Code, whose script is silent without Palimpsest', async () => {
    const { hooks } = await json('claude', 'palimpsest', 'hooks', 'hooks.json');
    expect(Object.keys(hooks)).toEqual(expect.arrayContaining(['SessionStart', 'PreToolUse', 'PostToolUse', 'Stop']));
    const commands = Object.values(hooks as Record<string, { hooks: { command: string }[] }[]>).flatMap((groups) =>
      groups.flatMap(({ hooks: entries }) => entries.map(({ command }) => command)),
    );
    const user = await BareHome.make();
    try {
      for (const command of commands) {
        const filled = command.replace('$' + '{CLAUDE_PLUGIN_ROOT}', parcels('claude', 'palimpsest'));
        const { code, stdout, stderr } = await user.run('sh', ['-c', filled]);
        expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: '', stderr: '' });
      }
      expect(await readdir(user.home)).toEqual([]);
    } finally {
      await user.remove();
    }
  });

  test('say in the registry entry why it cannot be published yet', async () => {
    const { _meta: meta } = await json('server.json');
    const { unpublished } = meta['io.modelcontextprotocol.registry/publisher-provided'];
    expect(unpublished).toContain('Set mcpName in package.json');
  });
});

describe('the MCP bundle', () => {
  let user: BareHome;
  let folder = '';
  beforeAll(async () => {
    user = await BareHome.make();
    folder = await mkdtemp(join(tmpdir(), 'palimpsest-bundle-'));
    const isUnpacked = await unpackExtension({
      mcpbPath: parcels(`palimpsest-${OWN}.mcpb`),
      outputDir: folder,
      silent: true,
    });
    expect(isUnpacked).toBe(true);
    await writeFile(join(user.home, 'a.ts'), 'export const answer = 42;\n');
  });
  afterAll(async () => {
    await user.run(process.execPath, [join(folder, 'server/dist/cli.js'), 'node', 'stop']).catch(() => undefined);
    await rm(folder, { recursive: true, force: true });
    await user.remove();
  });

  test('passes the public validator and weighs at most 100 MB', async () => {
    const manifest = JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8'));
    expect(validateManifest(join(folder, 'manifest.json'))).toBe(true);
    expect(manifest.long_description).toContain('its Java come with the bundle');
    expect((await stat(parcels(`palimpsest-${OWN}.mcpb`))).size).toBeLessThanOrEqual(100_000_000);
  });

  test('reads, searches and records without Java on the machine', async () => {
    const { server } = JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8'));
    const { command, args } = server.mcp_config as { readonly command: string; readonly args: readonly string[] };
    const filled = args.map((arg) =>
      arg.replace('$' + '{__dirname}', folder).replace('$' + '{user_config.folder}', user.home),
    );
    const client = new Client({ name: 'test', version: '1' });
    const env = { ...user.env };
    await client.connect(new StdioClientTransport({ command, args: filled, env, cwd: user.home }));
    try {
      const texts = [];
      for (const [name, given] of [
        ['read', { path: 'a.ts' }],
        ['grep', { pattern: 'answer' }],
        ['context', {}],
      ] as const)
        texts.push(JSON.stringify((await client.callTool({ name, arguments: given })).content));
      expect(texts[0]).toContain('answer = 42');
      expect(texts[1]).toContain('a.ts');
      expect(texts[2]).toContain('tool=grep status=ok');
    } finally {
      await client.close();
    }
    const palimpsest = (...args: readonly string[]) =>
      user.run(process.execPath, [join(folder, 'server/dist/cli.js'), ...args]);
    const { stdout } = await until(
      () => palimpsest('sessions', '--json'),
      ({ code, stdout: found }) => code === 0 && JSON.parse(found).sessions.length > 0,
    );
    const { id } = JSON.parse(stdout).sessions[0];
    expect((await palimpsest('context', id, '--assemble')).stdout).toContain('answer = 42');
    const doctor = await palimpsest('doctor');
    expect(doctor.stdout).toContain(`of @palimpsest/node-${OWN} `);
  });
});

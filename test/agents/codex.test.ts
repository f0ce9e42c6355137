import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { openClient } from '../support/context.js';
import { cliPath, suiteData, temporaryRoot } from '../support/mcp-clients.js';
import { newestAgent } from './install-agent.js';
import { runProgram } from './run-program.js';
import { type ScriptedModel, startScriptedModel } from './scripted-model.js';

const POEM = Array.from({ length: 30 }, (_, index) => `line ${index + 1}`).join('\n');

/**
 * Codex 0.147 and later wait one second for a server that is not `required`. Then they begin the
 * turn without its tools.
 */
function configuration(model: ScriptedModel, root: string): string {
  const args = [cliPath, 'mcp', '--root', root, '--data', suiteData(), '--profile', 'memory'];
  return `
model = "scripted"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "workspace-write"

[model_providers.scripted]
name = "scripted"
base_url = ${JSON.stringify(model.baseUrl)}
wire_api = "responses"
env_key = "SCRIPTED_KEY"

[mcp_servers.ctx]
command = ${JSON.stringify(process.execPath)}
args = ${JSON.stringify(args)}
default_tools_approval_mode = "approve"
required = true
startup_timeout_sec = 30
tool_timeout_sec = 60
`;
}

async function runCodex(root: string, model: ScriptedModel) {
  const codex = await newestAgent('codex');
  const { root: home, remove } = await temporaryRoot();
  await writeFile(join(home, 'config.toml'), configuration(model, root));
  const { PATH } = process.env;
  const env = { PATH, HOME: home, CODEX_HOME: home, SCRIPTED_KEY: 'none', LANG: 'C.UTF-8' };
  const end = await runProgram(codex, ['exec', '--skip-git-repo-check', '--json', 'go on'], {
    cwd: root,
    env,
    timeoutMs: 100_000,
  });
  await remove();
  const events = end.stdout
    .split('\n')
    .flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as Record<string, unknown>] : []));
  return { ...end, events };
}

describe('Codex', () => {
  test('uses our tools over MCP; the model sees their texts, the database has its calls and context', async () => {
    const { root, remove } = await temporaryRoot();
    await mkdir(join(root, 'src'));
    await writeFile(join(root, 'src', 'poem.txt'), `${POEM}\n`);
    const model = await startScriptedModel([
      { tool: 'ls', args: { path: 'src' } },
      { tool: 'read', args: { path: 'src/poem.txt' } },
      { tool: 'edit', args: { path: 'src/poem.txt', edits: [{ oldText: 'line 7\n', newText: 'line seven\n' }] } },
      { tool: 'read', args: { path: 'src/pome.txt' } },
      { tool: 'deactivate', args: { ids: ['src/poem.txt'] } },
      { tool: 'context', args: {} },
      { say: 'all done' },
    ]);
    try {
      const { code, events, stderr } = await runCodex(root, model);
      expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
      expect(JSON.stringify(events)).toContain('all done');

      const last = model.seen.at(-1);
      const ours = (last?.offered ?? []).filter(({ group }) => group?.includes('ctx') === true).map(({ name }) => name);
      expect(ours).toEqual(
        expect.arrayContaining([
          'read',
          'write',
          'edit',
          'ls',
          'find',
          'grep',
          'tree',
          'activate',
          'deactivate',
          'pin',
          'unpin',
          'context',
        ]),
      );
      expect(JSON.stringify(last?.body)).toContain('Palimpsest records your work: every file you read');

      const [listed, read, edited, missing, deactivated, context] = last?.results ?? [];
      expect(listed).toMatch(/\[ls id=\S+ path=\S+\/src entries=1\]\npoem\.txt/);
      expect(read).toContain(`lines=1-30/30 chars=${POEM.length + 1}]\n${POEM}\n`);
      expect(edited).toContain('Edited src/poem.txt: 1 replacement, now line 7.');
      expect(await readFile(join(root, 'src', 'poem.txt'), 'utf8')).toBe(
        `${POEM}\n`.replace('line 7\n', 'line seven\n'),
      );
      expect(missing).toContain('Error: "src/pome.txt" does not exist.\nDid you mean src/poem.txt?');
      expect(deactivated).toMatch(/deactivated id=[0-9a-f]{8,12}/);

      const [, sessionId] = /session=(\S+) turn=1 known=6 active=5/.exec(context ?? '') ?? [];
      const thread = events.find(({ type }) => type === 'thread.started')?.thread_id;
      expect(sessionId).toBe(thread);

      const client = await openClient(root);
      try {
        const session = await client.openSession({ id: String(thread) });
        const { turns, sets } = session.state;
        expect(session.state.turnRule).toBe('client-turn');
        const calls = turns.flatMap(({ messages }) => messages.flatMap((message) => message.toolcall_refs ?? []));
        expect(calls).toHaveLength(6);
        const versions = await Promise.all(calls.map(async (id) => (await session.load(id))?.version));
        expect(
          versions.map((version) =>
            version?.type === 'toolcall' ? `${version.tool} ${version.status}` : version?.type,
          ),
        ).toEqual(['ls ok', 'read ok', 'edit ok', 'read fail', 'deactivate ok', 'context ok']);
        expect(versions[1]?.content).toBe(`${POEM}\n`);
        const files = await Promise.all(
          sets.index.filter((id) => /^[0-9a-f]{64}$/.test(id)).map(async (id) => (await session.load(id))?.version),
        );
        expect(files.map((file) => file?.content)).toEqual([`${POEM}\n`.replace('line 7\n', 'line seven\n')]);
        expect((await session.assemble()).text).toContain('toolcall_ref id=');
      } finally {
        await client.close();
      }
    } finally {
      await model.close();
      await remove();
    }
  }, 180_000);
});

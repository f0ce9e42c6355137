import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { openClient } from '../support/context.js';
import { cliPath, suiteData, temporaryRoot } from '../support/mcp-clients.js';
import { newestAgent } from './install-agent.js';
import { runProgram } from './run-program.js';
import { type ScriptedModel, startScriptedModel } from './scripted-model.js';

function configuration(model: ScriptedModel, root: string, session: string): string {
  const server = [
    process.execPath,
    cliPath,
    'mcp',
    '--root',
    root,
    '--data',
    suiteData(),
    '--profile',
    'memory',
    '--session',
    session,
  ];
  return JSON.stringify({
    provider: {
      scripted: {
        npm: '@ai-sdk/openai-compatible',
        name: 'scripted',
        options: { baseURL: model.baseUrl, apiKey: 'none' },
        models: { scripted: { name: 'scripted', tool_call: true } },
      },
    },
    mcp: { ctx: { type: 'local', command: server, enabled: true } },
  });
}

async function runOpencode(root: string, model: ScriptedModel, session: string) {
  const opencode = await newestAgent('opencode');
  const { root: home, remove } = await temporaryRoot();
  await mkdir(join(root, '.git'), { recursive: true });
  await writeFile(join(root, 'opencode.json'), configuration(model, root, session));
  const { PATH } = process.env;
  const env = { PATH, HOME: home, OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1' };
  const end = await runProgram(opencode, ['run', '-m', 'scripted/scripted', '--format', 'json', 'go on'], {
    cwd: root,
    env,
    timeoutMs: 150_000,
  });
  await remove();
  return end;
}

describe('opencode', () => {
  test('uses our tools over MCP; long answers reach the model uncut, the database has the calls', async () => {
    const { root, remove } = await temporaryRoot();
    const session = `opencode-${process.pid}`;
    await writeFile(
      join(root, 'long.txt'),
      Array.from({ length: 5_000 }, (_, index) => `line ${index + 1}\n`).join(''),
    );
    const model = await startScriptedModel([
      { tool: 'ctx_read', args: { path: 'long.txt' } },
      { tool: 'ctx_read', args: { filePath: 'long.txt', offset: 4_999 } },
      { tool: 'ctx_deactivate', args: { ids: ['nothing'] } },
      { say: 'all done' },
    ]);
    try {
      const { code, stdout, stderr } = await runOpencode(root, model, session);
      expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).toContain('all done');
      const last = model.seen.findLast(({ results }) => results.length === 3);
      const [first, end, failed] = last?.results ?? [];
      // OpenCode cuts outputs of more than 2,000 lines or 51,200 bytes, and with them the hint at
      // the end.
      expect(first).toMatch(
        new RegExp(
          '^\\[file id=\\S+ path=\\S+long\\.txt lines=1-\\d+/5000 .*\\n[\\s\\S]*\\nline \\d+\\n' +
            '\\[\\d+ more lines\\. Continue: read path=long\\.txt offset=\\d+\\]$',
        ),
      );
      expect(end).toMatch(/\nline 4999\nline 5000\n$/);
      expect(failed).toMatch(/^Error: deactivate: "nothing" was not found: it is not known/);
      const client = await openClient(root);
      try {
        const opened = await client.openSession({ id: session });
        expect(opened.state.seq).toBe(3);
      } finally {
        await client.close();
      }
    } finally {
      await model.close();
      await remove();
    }
  }, 300_000);
});

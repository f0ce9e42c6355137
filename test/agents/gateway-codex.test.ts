import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { upstreamBases } from '../../src/gateway/bases.js';
import { openGateway } from '../../src/gateway/gateway-action.js';
import { temporaryRoot } from '../support/mcp-clients.js';
import { newestAgent } from './install-agent.js';
import { requestsIn } from './observed-agent.js';
import { runProgram } from './run-program.js';
import { startScriptedModel } from './scripted-model.js';

describe('Codex behind the gateway', () => {
  test('works and resumes over its own wire; each request is logged under its thread', async () => {
    const codex = await newestAgent('codex');
    const { root, remove } = await temporaryRoot();
    const [home, project, dataDir] = ['home', 'project', 'data'].map((name) => join(root, name)) as [
      string,
      string,
      string,
    ];
    for (const folder of [home, project]) await mkdir(folder);
    const model = await startScriptedModel([{ say: 'all done' }]);
    const gateway = await openGateway({
      dataDir,
      bases: upstreamBases([`codex=${model.baseUrl}`]),
      port: 0,
      onTrouble: (message) => expect(message).toBe('no trouble'),
    });
    const provider = [
      'name = "scripted"',
      `base_url = "${gateway.address}/codex"`,
      'wire_api = "responses"',
      'env_key = "KEY"',
    ].join('\n');
    await writeFile(
      join(home, 'config.toml'),
      `model = "scripted"\nmodel_provider = "scripted"\n[model_providers.scripted]\n${provider}\n`,
    );
    const run = (...args: readonly string[]) =>
      runProgram(codex, ['exec', ...args], {
        cwd: project,
        env: { PATH: process.env.PATH, HOME: home, CODEX_HOME: home, KEY: 'sk-secret-of-the-test', LANG: 'C.UTF-8' },
        timeoutMs: 100_000,
      });
    try {
      const first = await run('--skip-git-repo-check', 'go on');
      expect({ code: first.code, stderr: first.code === 0 ? '' : first.stderr }).toEqual({ code: 0, stderr: '' });
      const second = await run('resume', '--last', '--skip-git-repo-check', 'and now?');
      expect({ code: second.code, stderr: second.code === 0 ? '' : second.stderr }).toEqual({ code: 0, stderr: '' });
      await gateway.close();
      const sent = await requestsIn(dataDir);
      const turns = sent.filter(({ side }) => side === undefined);
      expect(turns).toHaveLength(2);
      expect(new Set(turns.map(({ session }) => `${session?.agent} ${session?.native}`)).size).toBe(1);
      expect(turns.map(({ answer }) => answer?.stop)).toEqual(['completed', 'completed']);
      expect(sent.map(({ spans }) => JSON.parse(Buffer.concat(spans).toString('utf8')) as unknown)).toEqual(
        model.seen.map(({ body }) => body),
      );
      expect(JSON.stringify(sent.map(({ headers }) => headers))).not.toContain('secret');
    } finally {
      await gateway.close();
      await model.close();
      await remove();
    }
  });
});

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { verifySession } from '../../src/review/verify/verify-session.js';
import { askHere } from '../support/ask-here.js';
import { suiteData } from '../support/mcp-clients.js';
import { newestAgent } from './install-agent.js';
import { contextsOf, observedMachine } from './observed-agent.js';
import { runProgram } from './run-program.js';
import { startScriptedModel } from './scripted-model.js';

type Json = Readonly<Record<string, unknown>>;

/** Returns the calls without a result in an input, and the results without a call. */
function unpaired({ input }: { readonly input?: readonly Json[] }): readonly string[] {
  const ids = (end: RegExp): ReadonlySet<string> =>
    new Set((input ?? []).filter(({ type }) => end.test(String(type))).map(({ call_id: id }) => String(id)));
  const [calls, results] = [ids(/_call$/), ids(/_call_output$/)];
  return [...calls].filter((id) => !results.has(id)).concat([...results].filter((id) => !calls.has(id)));
}

describe.each([
  { hooks: false, gateway: true },
  { hooks: true, gateway: true },
])('Codex, observed with hooks: $hooks', (ways) => {
  test('works for 60 calls with a compaction and a resume: one session, and each request as a context', async () => {
    const codex = await newestAgent('codex');
    let turns = 0;
    const model = await startScriptedModel(({ body, offered }) => {
      const isSummary = JSON.stringify((body as { input?: readonly Json[] }).input?.at(-1)).includes('CHECKPOINT');
      if (offered.length === 0 || isSummary) return { say: 'Files were read.' };
      turns += 1;
      if (turns === 42 || turns === 62) return { say: `done ${turns}` };
      if (turns === 7) {
        const input = '*** Begin Patch\n*** Update File: f1.txt\n@@\n-first\n+second\n*** End Patch\n';
        return { tool: 'apply_patch', args: { input } };
      }
      // A request of more tokens than the limit starts a compaction.
      return { tool: 'exec_command', args: { cmd: `cat f${turns % 5}.txt` }, tokens: turns === 25 ? 30_000 : 1_000 };
    });
    const settings = (address: string): string => `model = "gpt-5.5"\nmodel_provider = "scripted"
approval_policy = "never"\nsandbox_mode = "danger-full-access"\nmodel_auto_compact_token_limit = 20000\n
[model_providers.scripted]\nname = "scripted"\nbase_url = "${address}"\nwire_api = "responses"
env_key = "SCRIPTED_KEY"\n`;
    const upstream = { name: 'codex', url: model.baseUrl };
    const machine = await observedMachine('codex', upstream, ways, { '.codex/config.toml': settings });
    const { watched, home, project } = machine;
    for (let n = 0; n < 5; n += 1) await writeFile(join(project, `f${n}.txt`), n === 1 ? 'first\n' : `file ${n}\n`);
    const run = async (...args: readonly string[]): Promise<string> => {
      const flags = ['--skip-git-repo-check', '--json', '--dangerously-bypass-hook-trust'];
      const end = await runProgram(codex, ['exec', ...args.slice(0, -1), ...flags, ...args.slice(-1)], {
        cwd: project,
        env: { PATH: process.env.PATH, HOME: home, SCRIPTED_KEY: 'sk-secret-of-the-test', LANG: 'C.UTF-8' },
        timeoutMs: 120_000,
      });
      expect({ code: end.code, stderr: end.code === 0 ? '' : end.stderr }).toEqual({ code: 0, stderr: '' });
      const started = end.stdout.split('\n').find((line) => line.includes('thread.started')) ?? '{}';
      return String((JSON.parse(started) as { readonly thread_id?: string }).thread_id);
    };
    try {
      const id = await run('read everything');
      expect(await run('resume', '--last', 'go on')).toBe(id);
      expect(turns).toBe(62);
      const sent = await machine.logged();
      expect(machine.troubles).toEqual([]);
      expect(sent.map(({ spans }) => JSON.parse(Buffer.concat(spans).toString()) as unknown)).toEqual(
        model.seen.map(({ body }) => body),
      );
      for (const { body } of model.seen) expect(unpaired(body as never)).toEqual([]);
      const main = sent.filter(({ side }) => side === undefined);
      expect(main).toHaveLength(turns);
      expect(new Set(main.map(({ session }) => session?.native))).toEqual(new Set([id]));
      expect(sent.length).toBeGreaterThan(turns);
      await contextsOf(watched, id, turns);
      const found = await verifySession(watched.store, id);
      expect(found).toMatchObject({ ok: true, contexts: { unequal: [], byDelivery: { gateway: turns } } });
      const { stdout } = await askHere(['context', id, '--raw', '--data', suiteData()]);
      expect(stdout).toBe(Buffer.concat(main.at(-1)?.spans ?? []).toString());
      expect(await watched.steps(`${id}+2`)).toEqual([]);
      expect(await watched.state()).toMatchObject({ failed: [], notices: [] });
    } finally {
      await machine.close();
      await model.close();
    }
  });
});

import { describe, expect, test } from '@jest/globals';
import { verifySession } from '../../src/review/verify/verify-session.js';
import { askHere } from '../support/ask-here.js';
import { suiteData } from '../support/mcp-clients.js';
import { until } from '../support/until.js';
import { startCheckingUpstream } from './checking-upstream.js';
import { ALLOWED, claudeEnv, DELEGATES, edits, moves, writeFiles } from './claude-work.js';
import { newestAgent } from './install-agent.js';
import { contextsOf, observedMachine } from './observed-agent.js';
import { runProgram } from './run-program.js';

describe.each([
  { hooks: false, gateway: false },
  { hooks: true, gateway: false },
  { hooks: false, gateway: true },
  { hooks: true, gateway: true },
])('Claude Code, observed with hooks: $hooks, gateway: $gateway', (ways) => {
  test('is recorded over 60 calls: each session once, and each observed request as a context', async () => {
    const claude = await newestAgent('claude');
    const upstream = await startCheckingUpstream();
    const machine = await observedMachine('claude', { name: 'anthropic', url: upstream.url }, ways);
    const { watched, home, project, address } = machine;
    await writeFiles(project, 30);
    const run = async (prompt: string, ...args: readonly string[]): Promise<string> => {
      const end = await runProgram(claude, ['-p', prompt, '--output-format', 'json', ...args, ...ALLOWED], {
        cwd: project,
        env: claudeEnv(home, address),
        timeoutMs: 250_000,
      });
      expect({ code: end.code, stderr: end.code === 0 ? '' : `${end.stderr}${end.stdout}` }).toEqual({
        code: 0,
        stderr: '',
      });
      return String((JSON.parse(end.stdout) as { readonly session_id: string }).session_id);
    };
    try {
      const first = moves(project, 0, 20).slice(0, -1);
      upstream.add([...first, edits(project, 1, 'other words'), DELEGATES, { say: 'first done' }]);
      const id = await run('read everything');
      upstream.add(moves(project, 0, 10, 'second done'));
      expect(await run('go on', '-c')).toBe(id);
      upstream.add(moves(project, 0, 8, 'fork done'));
      const fork = await run('another way', '--resume', id, '--fork-session');
      expect(fork).not.toBe(id);
      await run('/compact', '--resume', id);
      const third = moves(project, 0, 8).slice(0, -1);
      upstream.add([...third, edits(project, 2, 'new words'), { say: 'third done' }]);
      expect(await run('after the compaction', '--resume', id)).toBe(id);
      await run('/clear', '--resume', id);
      upstream.add(moves(project, 0, 9, 'fourth done'));
      const last = await run('after the clear', '-c');
      // After a compaction, Claude Code sends its last answer with thinking from before the
      // summary. The provider refuses that with 400, and Claude Code retries without the thinking.
      // It does so without a gateway too.
      expect(upstream.refusals).toEqual([
        'messages.2.content.0: the content before the block is not the content that was signed',
      ]);
      expect(upstream.left).toBe(0);
      expect(upstream.turns).toBeGreaterThanOrEqual(60);
      expect(new Set([id, fork, last]).size).toBe(3);
      const sent = await machine.logged();
      expect(machine.troubles).toEqual([]);
      const turns = sent.filter(({ side, session }) => side === undefined && session?.subagent === undefined);
      const main = turns.filter(({ answer }) => answer?.status === 200);
      expect(turns.length - main.length).toBe(ways.gateway ? upstream.refusals.length : 0);
      expect(main).toHaveLength(ways.gateway ? upstream.turns : 0);
      const ask = async (...args: readonly string[]): Promise<string> => {
        const said = await askHere([...args, '--data', suiteData()]);
        expect([said.code, said.stderr]).toEqual([0, '']);
        return said.stdout;
      };
      for (const native of [id, fork, last]) {
        const own = main.filter(({ session }) => session?.native === native);
        await contextsOf(watched, native, own.length);
        const found = await verifySession(watched.store, native);
        expect(found).toMatchObject({ ok: true, contexts: { unequal: [] } });
        expect(found.contexts.byDelivery.gateway ?? 0).toBe(own.length);
        await until(
          () => ask('log', native, '--no-pager'),
          (text) => text.includes(`${{ [id]: 'third', [fork]: 'fork', [last]: 'fourth' }[native]} done`),
        );
        const context = await ask('context', native);
        expect(context).toContain(
          ways.gateway ? 'the handed-out context (gateway), byte for byte' : 'from the transcript',
        );
        if (ways.gateway) {
          const bodies = own.map(({ spans }) => Buffer.concat(spans).toString());
          expect(await ask('context', native, '--raw')).toBe(bodies.at(-1));
        }
        expect(await ask('diff', native, '--prefix')).toMatch(/written|no two/);
        expect(await ask('report', 'list', native)).toContain(ways.gateway ? 'sent' : 'from the transcript');
      }
      const call = (await watched.steps(id)).find((step) => step.call !== undefined)?.call?.id ?? '';
      expect(await ask('who', call)).toContain(id.slice(0, 8));
      expect((await watched.steps(`${id}+2`)).length).toBe(0);
      expect(await watched.state()).toMatchObject({ failed: [], notices: [] });
    } finally {
      await machine.close();
      await upstream.close();
    }
  });
});

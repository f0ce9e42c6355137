import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { PastContexts } from '../../src/history/rebuild/past-context.js';
import { Timeline } from '../../src/history/rebuild/timeline.js';
import { sessionId } from '../../src/objects/ids.js';
import { verifySession } from '../../src/review/verify/verify-session.js';
import { openClient } from '../support/context.js';
import { suiteData, temporaryRoot } from '../support/mcp-clients.js';
import type { ModelMove } from './checked-model.js';
import { startCheckingResponses } from './checking-responses.js';
import { newestAgent } from './install-agent.js';
import { requestsIn } from './observed-agent.js';
import { runSteered } from './run-steered.js';

/** The moves of one run: files are shown, one is patched, then the model speaks. */
function moves(from: number, count: number): readonly ModelMove[] {
  const show = (n: number) => ({ name: 'exec_command', args: { cmd: `cat f${n % 9}.txt` } });
  const work = Array.from({ length: count }, (_, i): ModelMove => {
    const n = from + i;
    if (n % 7 === 5) return { say: 'Two at once.', tools: [show(n), show(n + 1)] };
    if (n === 8) {
      const input = '*** Begin Patch\n*** Update File: f3.txt\n@@\n-first 3\n+second 3\n*** End Patch\n';
      return { tools: [{ name: 'apply_patch', args: { input } }] };
    }
    return { tools: [show(n)] };
  });
  return [...work, { say: `It is done, up to ${from + count}.` }];
}

describe('Codex behind a gateway that steers', () => {
  test('works for 60 calls over HTTP with a compaction and resumes; each request becomes a context', async () => {
    const codex = await newestAgent('codex');
    const { root, remove } = await temporaryRoot();
    const [home, project] = [join(root, 'home'), join(root, 'project')];
    for (const folder of [home, project]) await mkdir(folder);
    for (let n = 0; n < 9; n += 1)
      await writeFile(join(project, `f${n}.txt`), `first ${n}\n${`file ${n}, some words of text\n`.repeat(60 + n)}`);
    const upstream = await startCheckingResponses((turn) => (turn === 45 ? 900_000 : 1_000));
    const dataDir = suiteData();
    const agent = {
      name: 'codex',
      program: codex,
      project,
      dataDir,
      provider: 'codex',
      upstream,
      limitMs: 5_000,
      env: {
        HOME: home,
        CODEX_HOME: join(home, '.codex'),
        CODEX_API_KEY: 'sk-secret-of-the-test',
        LANG: 'C.UTF-8',
      },
    } as const;
    const run = async (...args: readonly string[]): Promise<string> => {
      const own = ['--skip-git-repo-check', '--json', '--dangerously-bypass-approvals-and-sandbox', '-m', 'gpt-5.5'];
      const stdout = await runSteered(agent, ['exec', ...args.slice(0, -1), ...own, ...args.slice(-1)]);
      const started = stdout.split('\n').find((line) => line.includes('thread.started')) ?? '{}';
      return String((JSON.parse(started) as { readonly thread_id?: string }).thread_id);
    };
    await mkdir(join(home, '.codex'));
    try {
      let id = '';
      for (let turn = 0; turn < 10; turn += 1) {
        upstream.add(moves(turn * 6, 6));
        const thread = await run(...(turn === 0 ? [] : ['resume', '--last']), `go on with part ${turn}`);
        if (id !== '') expect(thread).toBe(id);
        id = thread;
      }
      expect(upstream.left).toBe(0);
      // Another agent's suite may use the same data folder.
      const sent = (await requestsIn(dataDir)).filter(({ wire }) => wire === 'responses');
      const main = sent.filter(({ side }) => side === undefined);
      expect(main).toHaveLength(upstream.turns);
      // Call 45 reports a full window, so Codex has the provider compact the steered conversation.
      const how = main.map(({ steer }) => `${steer?.how} ${steer?.why ?? ''}`.trim());
      expect(new Set(how.slice(0, 45))).toEqual(new Set(['steered']));
      expect(new Set(how.slice(45))).toEqual(new Set(['own the provider compacted the conversation']));
      expect(sent.flatMap(({ side, steer }) => (side === undefined ? [] : [steer?.how]))).toEqual(['continued']);
      expect(new Set(main.map(({ session }) => session?.native))).toEqual(new Set([id]));
      const bytes = main[44]?.spans.reduce((sum, { length }) => sum + length, 0) ?? 0;
      expect(bytes).toBeLessThan(0.65 * (main[44]?.steer?.bytes ?? 0));
      expect(main.at(-1)?.spans.map(String).join('')).toContain('"encrypted_content":"opaque');
      const client = await openClient(project, { track: false, shareSessions: true });
      try {
        const { contexts, ok } = await verifySession(await client.delivered(), sessionId(id));
        expect({ unequal: contexts.unequal, ok }).toEqual({ unequal: [], ok: true });
        const last = await new PastContexts(await Timeline.open(client.store)).at(sessionId(id), {});
        expect(last.text).toBe(Buffer.concat(main.at(-1)?.spans ?? []).toString('utf8'));
        // A steered request has its bytes beside the record of its parts.
        expect(contexts.byDelivery.gateway).toBe(main.length + 45);
        const said = (await (await client.store.latest()).steps(sessionId(id))).map((step) => JSON.stringify(step));
        for (let turn = 0; turn < 10; turn += 1)
          expect(said.filter((step) => step.includes(`"go on with part ${turn}"`))).toHaveLength(1);
        // The last answer of a steered session is known with its next request.
        expect(said.filter((step) => step.includes('It is done, up to 54.'))).toHaveLength(1);
      } finally {
        await client.close();
      }
    } finally {
      await upstream.close();
      await remove();
    }
  });
});

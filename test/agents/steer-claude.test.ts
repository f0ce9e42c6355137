import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { PastContexts } from '../../src/history/rebuild/past-context.js';
import { Timeline } from '../../src/history/rebuild/timeline.js';
import { hashText } from '../../src/objects/hashes.js';
import { sessionId } from '../../src/objects/ids.js';
import { verifySession } from '../../src/review/verify/verify-session.js';
import { openClient } from '../support/context.js';
import { suiteData, temporaryRoot } from '../support/mcp-clients.js';
import { costsOf, costsOfGrowing } from '../support/request-costs.js';
import { startCheckingUpstream } from './checking-upstream.js';
import { ALLOWED, claudeEnv, DELEGATES, moves, writeFiles } from './claude-work.js';
import { newestAgent } from './install-agent.js';
import { requestsIn } from './observed-agent.js';
import { runSteered } from './run-steered.js';

const MODEL = 'claude-opus-5-5';

describe('Claude Code behind a gateway that steers', () => {
  test('works over runs, a fork, a sub-agent, a compaction and /clear; each request becomes a context', async () => {
    const claude = await newestAgent('claude');
    const { root, remove } = await temporaryRoot();
    const [home, project] = [join(root, 'home'), join(root, 'project')];
    await mkdir(home);
    await writeFiles(project, 60);
    await writeFile(join(project, 'other.txt'), 'words that only an activation shows\n');
    const upstream = await startCheckingUpstream();
    const dataDir = suiteData();
    const agent = {
      name: 'claude',
      program: claude,
      project,
      dataDir,
      provider: 'anthropic',
      upstream,
      limitMs: 30_000,
      env: claudeEnv(home),
    } as const;
    const run = (...args: readonly string[]): Promise<string> => runSteered(agent, ['-p', ...args, ...ALLOWED]);
    const posted = () => upstream.received.filter(({ start }) => /^POST \/v1\/messages(?:\?|$)/.test(start));
    try {
      for (let turn = 0; turn < 10; turn += 1) {
        upstream.add(moves(project, turn * 6, 6));
        expect(await run(...(turn === 0 ? [] : ['-c']), `go on with part ${turn}`)).toContain('It is done');
      }
      const before = posted().length;
      upstream.add([
        { tools: [{ name: 'mcp__palimpsest__activate', args: { ids: [join(project, 'other.txt')] } }] },
        { say: 'I see the words.' },
      ]);
      expect(await run('-c', 'look at the other file')).toContain('I see the words.');
      const shown = posted().slice(before).at(-1)?.body.toString('utf8') ?? '';
      const own = /"session_id\\*":\\*"([0-9a-f-]{36})/.exec(posted().at(-1)?.body.toString('utf8') ?? '')?.[1] ?? '';
      upstream.add(moves(project, 60, 3));
      await run('-c', '--fork-session', 'another way');
      upstream.add([DELEGATES, { say: 'It is done, it looked around.' }]);
      expect(await run('--resume', own, 'let another one look')).toContain('It is done');
      await run('--resume', own, '/compact');
      for (let turn = 0; turn < 2; turn += 1) {
        upstream.add(moves(project, 63 + turn * 4, 4));
        expect(await run('--resume', own, `after the compaction ${turn}`)).toContain('It is done');
      }
      await run('--resume', own, '/clear');
      upstream.add(moves(project, 71, 4));
      expect(await run('-c', 'after the clear')).toContain('It is done');
      expect(upstream.left).toBe(0);

      // Another agent's suite may use the same data folder.
      const sent = (await requestsIn(dataDir)).filter(({ wire }) => wire === 'anthropic');
      const main = sent.filter(({ side, session, steer }) => {
        return side === undefined && session?.subagent === undefined && steer !== undefined;
      });
      expect(new Set(main.map(({ steer }) => steer?.how))).toEqual(new Set(['steered']));
      const steered = costsOf(
        main.map(({ spans }) => Buffer.concat(spans).toString('utf8')),
        MODEL,
      );
      const alone = costsOfGrowing(
        main.map(({ steer }) => steer?.bytes ?? 0),
        MODEL,
      );
      const shares = steered.map((cost, i) => cost / (alone[i] as number));
      expect(Math.max(...shares)).toBeLessThanOrEqual(1.02);
      expect(shares[59]).toBeLessThanOrEqual(0.85);
      expect(shown).toContain('words that only an activation shows');
      const natives = [...new Set(main.map(({ session }) => session?.native ?? ''))];
      expect(natives).toHaveLength(3);
      // A new process of the gateway no longer has the last steered list. The client's list goes
      // out without the thinking that would be refused.
      expect(sent.filter(({ answer }) => answer?.status === 400)).toEqual([]);
      expect(sent.filter(({ side }) => side === 'summary').map(({ steer }) => steer?.how)).toEqual(['own']);
      expect(sent.some(({ session }) => session?.subagent !== undefined)).toBe(true);
      const client = await openClient(project, { track: false, shareSessions: true });
      try {
        for (const native of natives) {
          const { contexts, ok } = await verifySession(await client.delivered(), sessionId(native));
          expect({ unequal: contexts.unequal, ok }).toEqual({ unequal: [], ok: true });
        }
        const past = new PastContexts(await Timeline.open(client.store));
        const sentLast = main.at(-1);
        const last = await past.at(sessionId(sentLast?.session?.native ?? ''), {});
        expect(hashText(last.text)).toBe(hashText(Buffer.concat(sentLast?.spans ?? []).toString('utf8')));
      } finally {
        await client.close();
      }
    } finally {
      await upstream.close();
      await remove();
    }
  }, 600_000);
});

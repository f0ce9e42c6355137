import { mkdir, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { gatewayFolder } from '../../src/gateway/gateway-log.js';
import { GatewayLogReader, type SentRequest } from '../../src/gateway/read-log.js';
import { PastContexts } from '../../src/history/rebuild/past-context.js';
import { Timeline } from '../../src/history/rebuild/timeline.js';
import { hashText } from '../../src/objects/hashes.js';
import { sessionId } from '../../src/objects/ids.js';
import { verifySession } from '../../src/review/verify/verify-session.js';
import { openClient } from '../support/context.js';
import { cliPath, suiteData, temporaryRoot } from '../support/mcp-clients.js';
import { costsOf, costsOfGrowing } from '../support/request-costs.js';
import { type CheckingUpstream, startCheckingUpstream } from './checking-upstream.js';
import { moves } from './claude-moves.js';
import { newestAgent } from './install-agent.js';
import { runProgram } from './run-program.js';

const MODEL = 'claude-opus-5-5';

describe('Claude Code behind a gateway that steers', () => {
  test('works over runs, a fork, a sub-agent, a compaction and /clear; every request is its context', async () => {
    const claude = await newestAgent('claude');
    const { root, remove } = await temporaryRoot();
    const [home, project] = [join(root, 'home'), join(root, 'project')];
    await mkdir(join(project, 'src'), { recursive: true });
    await mkdir(home);
    for (let n = 0; n < 12; n += 1)
      await writeFile(join(project, 'src', `f${n}.txt`), `${`file ${n}, some words of text\n`.repeat(60 + n)}`);
    await writeFile(join(project, 'other.txt'), 'words that only an activation shows\n');
    const upstream: CheckingUpstream = await startCheckingUpstream();
    const dataDir = suiteData();
    const run = async (...args: readonly string[]): Promise<string> => {
      const flags = [
        'run',
        '--steer',
        '--steer-limit',
        '30000',
        '--data',
        dataDir,
        '--upstream',
        `anthropic=${upstream.url}`,
      ];
      const own = ['-p', ...args, '--allowedTools', 'Read,Edit,Bash,Task,Agent'];
      const end = await runProgram(process.execPath, [cliPath, ...flags, 'claude', ...own], {
        cwd: project,
        env: {
          ...process.env,
          PATH: `${dirname(claude)}${delimiter}${process.env.PATH ?? ''}`,
          PALIMPSEST_PROFILE: process.env.PALIMPSEST_TEST_PROFILE ?? 'memory',
          HOME: home,
          CLAUDE_CONFIG_DIR: join(home, '.claude'),
          ANTHROPIC_API_KEY: 'sk-ant-secret-of-the-test',
          CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
          DISABLE_AUTOUPDATER: '1',
          LANG: 'C.UTF-8',
        },
        timeoutMs: 250_000,
      });
      expect({ code: end.code, refusals: upstream.refusals, stderr: end.stderr }).toEqual({
        code: 0,
        refusals: [],
        stderr: '',
      });
      return end.stdout;
    };
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
      const look = { description: 'look', prompt: 'look around', subagent_type: 'general-purpose' };
      upstream.add([{ tools: [{ name: 'Agent', args: look }] }, { say: 'It is done, it looked around.' }]);
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

      const sent: SentRequest[] = [];
      for await (const one of new GatewayLogReader(gatewayFolder(dataDir)).more()) sent.push(one);
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

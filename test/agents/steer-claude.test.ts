import { mkdir, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { gatewayFolder } from '../../src/gateway/gateway-log.js';
import { GatewayLogReader, type SentRequest } from '../../src/gateway/read-log.js';
import { PastContexts } from '../../src/history/rebuild/past-context.js';
import { Timeline } from '../../src/history/rebuild/timeline.js';
import { verifySession } from '../../src/history/verify/verify-session.js';
import { sessionId } from '../../src/objects/ids.js';
import { openClient } from '../support/context.js';
import { cliPath, suiteData, temporaryRoot } from '../support/mcp-clients.js';
import { costsOf, costsOfGrowing } from '../support/request-costs.js';
import { type CheckingUpstream, startCheckingUpstream } from './checking-upstream.js';
import { moves } from './claude-moves.js';
import { newestAgent } from './install-agent.js';
import { runProgram } from './run-program.js';

const MODEL = 'claude-opus-5-5';

describe('Claude Code behind a gateway that steers', () => {
  test('works for 70 calls over ten runs, a fork and its own tools; every request is its context', async () => {
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
        '5000',
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
      upstream.add(moves(project, 60, 3));
      await run('-c', '--fork-session', 'another way');

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
      expect(natives).toHaveLength(2);
      const client = await openClient(project, { track: false, shareSessions: true });
      try {
        for (const native of natives) {
          const { contexts, ok } = await verifySession(await client.delivered(), sessionId(native));
          expect({ unequal: contexts.unequal, ok }).toEqual({ unequal: [], ok: true });
        }
        const past = new PastContexts(await Timeline.open(client.store));
        const last = await past.at(sessionId(natives[1] as string), {});
        expect(last.text).toBe(Buffer.concat(main.at(-1)?.spans ?? []).toString('utf8'));
      } finally {
        await client.close();
      }
    } finally {
      await upstream.close();
      await remove();
    }
  });
});

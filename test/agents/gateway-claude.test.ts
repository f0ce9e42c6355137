import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { upstreamBases } from '../../src/gateway/bases.js';
import { openGateway } from '../../src/gateway/gateway-action.js';
import { gatewayFolder } from '../../src/gateway/gateway-log.js';
import { recordSent } from '../../src/gateway/record-sent.js';
import { chooseSession } from '../../src/own-sessions/choose-session.js';
import { importSession } from '../../src/own-sessions/import-session.js';
import { verifySession } from '../../src/review/verify/verify-session.js';
import { ObjectStore } from '../../src/store/object-store.js';
import { XtdbClient } from '../../src/xtdb/xtdb-client.js';
import { openClient, testAddress } from '../support/context.js';
import { temporaryRoot } from '../support/mcp-clients.js';
import { suiteDatabase } from '../support/replays.js';
import { startCheckingUpstream } from './checking-upstream.js';
import { ALLOWED, claudeEnv, edits, moves, writeFiles } from './claude-work.js';
import { newestAgent } from './install-agent.js';
import { requestsIn } from './observed-agent.js';
import { runProgram } from './run-program.js';

describe('Claude Code behind the gateway', () => {
  test('works for 60 calls with a resumed and a forked session; every request is recorded as a context', async () => {
    const claude = await newestAgent('claude');
    const { root, remove } = await temporaryRoot();
    const [home, project, dataDir] = ['home', 'project', 'data'].map((name) => join(root, name)) as [
      string,
      string,
      string,
    ];
    await mkdir(home);
    await writeFiles(project, 40);
    const upstream = await startCheckingUpstream();
    const troubles: string[] = [];
    const gateway = await openGateway({
      dataDir,
      bases: upstreamBases([`anthropic=${upstream.url}`]),
      port: 0,
      onTrouble: (message) => troubles.push(message),
    });
    const run = async (...args: readonly string[]) => {
      const end = await runProgram(claude, ['-p', ...args, ...ALLOWED], {
        cwd: project,
        env: claudeEnv(home, `${gateway.address}/anthropic`),
        timeoutMs: 250_000,
      });
      expect({ code: end.code, stderr: end.code === 0 ? '' : `${end.stderr}${end.stdout}` }).toEqual({
        code: 0,
        stderr: '',
      });
      return end.stdout;
    };
    try {
      upstream.add(moves(project, 0, 24));
      expect(await run('read everything')).toContain('It is done, up to 24.');
      upstream.add([edits(project, 1, 'other words'), ...moves(project, 24, 18)]);
      expect(await run('-c', 'go on')).toContain('It is done, up to 42.');
      upstream.add(moves(project, 42, 16));
      const fork = await run('-c', '--fork-session', 'another way');
      expect(fork).toContain('It is done, up to 58.');
      expect(upstream.refusals).toEqual([]);
      expect(upstream.turns).toBeGreaterThanOrEqual(60);
      await gateway.close();
      expect(troubles).toEqual([]);

      const sent = await requestsIn(dataDir);
      const posted = upstream.received.filter(({ start }) => /^POST \/v1\/messages(?:\?|$)/.test(start));
      expect(new Set(sent.map(({ spans }) => Buffer.concat(spans).toString('latin1')))).toEqual(
        new Set(posted.map(({ body }) => body.toString('latin1'))),
      );
      expect(sent).toHaveLength(posted.length);
      const main = sent.filter(({ side, session }) => side === undefined && session?.subagent === undefined);
      expect(main).toHaveLength(upstream.turns);
      const natives = [...new Set(main.map(({ session }) => session?.native ?? ''))];
      expect(natives).toHaveLength(2);
      for (const name of await readdir(gatewayFolder(dataDir))) expect(name.endsWith('.log')).toBe(true);

      const xtdb = new XtdbClient(testAddress());
      const store = new ObjectStore(xtdb);
      const client = await openClient(project, { track: false, shareSessions: true });
      try {
        for (const native of natives) {
          const folder = join(home, '.claude', 'projects');
          const [name = ''] = await readdir(folder);
          const chosen = await chooseSession(join(folder, name, `${native}.jsonl`), {
            sessions: [],
            mask: async () => undefined,
          });
          const { session: id } = await importSession(chosen, { database: { ...suiteDatabase(), dataDir }, store });
          const session = await client.openSession({ id });
          const own = main.filter(({ session: of }) => of?.native === native);
          const outcomes: string[] = [];
          for (const one of own) outcomes.push((await recordSent(session, one)).outcome);
          expect(outcomes).toEqual(own.map(() => 'recorded'));
          await session.close();
          const { contexts, ok } = await verifySession(await client.delivered(), id);
          expect(contexts.unequal).toEqual([]);
          expect(ok).toBe(true);
          expect(contexts.byDelivery.gateway).toBe(own.length);
        }
      } finally {
        await client.close();
        await xtdb.close();
      }
    } finally {
      await gateway.close();
      await upstream.close();
      await remove();
    }
  });
});

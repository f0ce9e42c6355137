import { randomUUID } from 'node:crypto';
import { cpSync } from 'node:fs';
import { mkdtemp, readdir, realpath, rm, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { ContextClient } from '../../../src/client/session/context-client.js';
import { filesystemId } from '../../../src/objects/ids.js';
import { openClient, testAddress } from '../../support/context.js';
import { runCli } from '../../support/run-cli.js';
import { callReport } from '../../support/tracked-project.js';

const KILL_AT = new URL('../../support/kill-at.mjs', import.meta.url).href;
/** Steps of each session; each carries so much text that the journal has several files. */
const STEPS = 12;
const TEXT = 'x'.repeat(900_000);

test('a repeated delivery of a dead host’s journals, killed anywhere, brings each step once and in order', async () => {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-adopt-')));
  const node = testAddress();
  const reader = await openClient(root);
  const closing: Promise<unknown>[] = [];
  let kills = 0;
  try {
    const url = node.kind === 'unix' ? `unix:${node.socketPath}` : '';
    for (const what of ['name', 'record']) {
      for (const when of ['before', 'after']) {
        for (let count = 1; ; count += what === 'record' ? 3 : 1) {
          const place = `${what}-${when}-${count}`;
          const there = join(root, place);
          const owner = await ContextClient.create({
            address: { kind: 'unix', socketPath: join(root, 'nobody.sock') },
            roots: [root],
            cwd: root,
            filesystemId: filesystemId(`fs-${randomUUID()}`),
            dataDir: join(there, 'before'),
            track: false,
          });
          const session = await owner.openSession();
          for (let i = 1; i <= STEPS; i++)
            await session.recordCall(callReport({ tool: 'bash', content: `${place} ${i} ${i % 4 === 0 ? TEXT : ''}` }));
          cpSync(join(there, 'before', 'journal'), join(there, 'left', 'journal'), { recursive: true });
          for (const file of await readdir(join(there, 'left', 'journal')))
            if (file.endsWith('.lock')) await truncate(join(there, 'left', 'journal', file));
          const adopt = (env = {}) =>
            runCli(['journal', 'adopt', join(there, 'left'), '--apply', '--json', '--data', join(there, 'here')], {
              XTDB_URL: url,
              ...env,
            });
          const first = await adopt({
            NODE_OPTIONS: `--import=${KILL_AT}`,
            PALIMPSEST_KILL_AT: `${what} ${when} ${count}`,
          });
          if (first.code !== 0) kills += 1;
          const second = await adopt();
          expect(second).toMatchObject({ code: 0, stderr: '' });
          expect(JSON.parse(second.stdout)).toMatchObject({
            undelivered: 0,
            notices: [],
            sessions: [{ session: session.id, fate: 'stored' }],
          });
          const snapshot = await reader.store.latest();
          const steps = await snapshot.steps(session.id);
          expect(steps.map(({ seq }) => seq)).toEqual(Array.from({ length: session.state.seq }, (_, i) => i + 1));
          const calls = steps.flatMap(({ call }) => (call === undefined ? [] : [call.id]));
          const versions = await snapshot.getMany(calls);
          expect(calls.map((call) => versions.get(call)?.version.content?.split(' ')[1])).toEqual(
            Array.from({ length: STEPS }, (_, i) => `${i + 1}`),
          );
          closing.push(owner.close());
          if (first.code === 0) break;
        }
      }
    }
    expect(kills).toBeGreaterThan(8);
  } finally {
    await Promise.all(closing);
    await reader.close();
    await rm(root, { recursive: true, force: true });
  }
});

import { appendFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readWatchReport } from '../../../src/host/watch-report.js';
import { replayDigest } from '../../../src/lab/replay/replay-digest.js';
import { ensureNode, type NodeHandle } from '../../../src/node/ensure-node.js';
import { stopNode } from '../../../src/node/stop-node.js';
import { sessionId } from '../../../src/objects/ids.js';
import { importSession } from '../../../src/own-sessions/import-session.js';
import { ObjectStore } from '../../../src/store/object-store.js';
import { XtdbClient } from '../../../src/xtdb/xtdb-client.js';
import { type AgentMachine, agentMachine } from '../../support/agent-machine.js';
import { effort } from '../../support/effort.js';
import { longRecording, suiteDatabase } from '../../support/replays.js';
import { startCli } from '../../support/run-cli.js';
import { until } from '../../support/until.js';
import { openTestClient } from '../../support/xtdb.js';

const KILLS = effort(8, 100);
const TURNS = 40;

let machine: AgentMachine;
let dataDir: string;
let node: NodeHandle;
let env: Readonly<Record<string, string | undefined>>;
beforeAll(async () => {
  machine = await agentMachine();
  dataDir = join(machine.home, 'data');
  env = { ...machine.env, PALIMPSEST_DATA: dataDir, PALIMPSEST_PROFILE: 'memory' };
  node = await ensureNode({ dataDir, profile: 'memory' });
});
afterAll(async () => {
  await node.release();
  await stopNode(dataDir);
  await machine.remove();
});

/** All data of a session that its digest covers, with its steps and contexts. */
async function everything(store: ObjectStore, id: string) {
  const snapshot = await store.latest();
  const session = sessionId(id);
  const { sets } = await snapshot.sets(session);
  const { digest, objects } = await replayDigest(snapshot, [{ id: session, contexts: [], index: sets.index }]);
  const steps = await snapshot.steps(session);
  const contexts = (await snapshot.assemblies(session)).map(({ turn, sha256 }) => [turn, sha256]);
  return { digest, objects, steps, contexts };
}

describe('palimpsest watch that is killed again and again', () => {
  test(`loses and duplicates nothing over ${KILLS} kills: the session equals an import of the whole file`, async () => {
    const id = `kills-${process.pid}-${Date.now()}`;
    const bytes = Buffer.from(longRecording(TURNS).text.replaceAll('"s-1"', JSON.stringify(id)));
    const name = '.claude/projects/-p/a.jsonl';
    const path = await machine.write(name, '');
    // Pieces of any size, also in the middle of a line.
    const piece = Math.ceil(bytes.length / (KILLS * 4));
    let written = 0;
    const append = async (): Promise<void> => {
      const to = Math.min(bytes.length, written + piece + (written % 97));
      await appendFile(path, bytes.subarray(written, to));
      written = to;
    };
    for (let kill = 0; kill < KILLS; kill += 1) {
      const { child, result } = startCli(['watch'], env);
      await until(
        () => readWatchReport(dataDir),
        (state) => state?.pid === child.pid,
      );
      for (let n = 0; n < 3; n += 1) await append();
      // The kills hit different moments of the work: the recognition, the reading, the first
      // writes.
      await delay((kill * 137) % 700);
      child.kill('SIGKILL');
      await result;
      await append();
    }
    while (written < bytes.length) await append();
    const { child, result } = startCli(['watch'], env);
    const xtdb = new XtdbClient(node.address);
    const suite = openTestClient();
    try {
      expect((await readFile(path)).equals(bytes)).toBe(true);
      const store = new ObjectStore(xtdb);
      await until(
        async () => (await (await store.latest()).steps(sessionId(id)).catch(() => [])).length,
        (count) => count >= TURNS * 5,
      );
      child.kill('SIGTERM');
      await result;
      const whole = new ObjectStore(suite);
      const chosen = { id, agent: 'Claude Code', title: '', path, size: bytes.length, mtime: 0 };
      const database = { ...suiteDatabase(), dataDir: join(machine.home, 'other') };
      await importSession(chosen, { database, store: whole });
      expect(await everything(store, id)).toEqual(await everything(whole, id));
    } finally {
      await xtdb.close();
      await suite.close();
    }
  });
});

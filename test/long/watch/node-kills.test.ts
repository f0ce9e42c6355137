import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readWatchReport } from '../../../src/host/watch-report.js';
import { ensureNode, type NodeHandle } from '../../../src/node/ensure-node.js';
import { stopNode } from '../../../src/node/stop-node.js';
import { sessionId } from '../../../src/objects/ids.js';
import { ObjectStore } from '../../../src/store/object-store.js';
import { XtdbClient } from '../../../src/xtdb/xtdb-client.js';
import { type AgentMachine, agentMachine } from '../../support/agent-machine.js';
import { RecordingLines } from '../../support/replays.js';
import { startCli } from '../../support/run-cli.js';
import { until } from '../../support/until.js';

const KILLS = 5;
const TURNS_BETWEEN = 5;

let machine: AgentMachine;
let dataDir: string;
let node: NodeHandle;
beforeAll(async () => {
  machine = await agentMachine();
  dataDir = join(machine.home, 'data');
  node = await ensureNode({ dataDir, profile: 'rocksdb' });
});
afterAll(async () => {
  await node.release();
  await stopNode(dataDir);
  await machine.remove();
});

const jvm = async (): Promise<number | undefined> =>
  JSON.parse(await readFile(join(dataDir, 'node.json'), 'utf8')).jvm?.pid;

test(`a transcript is recorded whole and once while the database is killed ${KILLS} times`, async () => {
  const recording = new RecordingLines();
  for (let n = 0; n < KILLS * TURNS_BETWEEN; n += 1) recording.user(`ask ${n}`).says(`answer ${n}`);
  const lines = recording.lines.map((line) => `${line}\n`);
  const name = '.claude/projects/-p/s-1.jsonl';
  const { child, result } = startCli(['watch'], { ...machine.env, PALIMPSEST_DATA: dataDir });
  await until(
    () => readWatchReport(dataDir),
    (report) => report?.pid === child.pid,
  );
  const xtdb = new XtdbClient(async () => (await ensureNode({ dataDir, profile: 'rocksdb' })).address);
  try {
    const store = new ObjectStore(xtdb);
    const texts = async (): Promise<readonly (string | undefined)[]> => {
      const steps = await (await store.latest()).steps(sessionId('s-1')).catch(() => []);
      return steps.map(({ message }) => message?.text);
    };
    for (let kill = 1; kill <= KILLS; kill += 1) {
      const written = lines.slice(0, kill * TURNS_BETWEEN * 2);
      const pid = await until(jvm, (found) => found !== undefined);
      await machine.write(name, written.slice(0, -3).join(''));
      process.kill(Number(pid), 'SIGKILL');
      await machine.write(name, written.join(''));
      const recorded = await until(
        () => texts().catch(() => []),
        (found) => found.length >= written.length,
      );
      expect(recorded).toEqual(written.map((line) => textOf(line)));
    }
    expect((await readWatchReport(dataDir))?.failed).toEqual([]);
  } finally {
    child.kill('SIGTERM');
    await result;
    await xtdb.close();
  }
});

/** Returns the text of a line of the recording. */
function textOf(line: string): string {
  const { content } = JSON.parse(line).message;
  return typeof content === 'string' ? content : content[0].text;
}

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type NodeHandle, stopNode } from '../../src/index.js';
import { checkpointStore } from '../../src/node/checkpoint-store.js';
import { writeCheckpoint } from '../../src/node/write-checkpoint.js';
import { makeFiles } from '../fixtures.js';
import { storeBytes } from '../folder-size.js';
import type { CaseResult } from '../results.js';
import type { Workshop } from '../workshop.js';
import { captureWrite, freshCopy, LogClient, type WrittenTransaction } from '../written-documents.js';
import { processorMs } from './processor-time.js';
import type { ClusterServers } from './servers.js';

/** Number of transactions that are in flight at a time. */
const AT_ONCE = 16;
const SESSION = 'bench-caught';
/**
 * Factor by which these runs have fewer transactions, because only their rates are compared with
 * PostgreSQL.
 */
const FEWER = 10;

/** Captures the write of one agent call. */
async function captureCall(workshop: Workshop, dataDir: string): Promise<WrittenTransaction> {
  const node = await workshop.node(dataDir);
  const xtdb = new LogClient(node.address);
  const server = workshop.ours(dataDir, SESSION);
  const [opening = '', path = ''] = await makeFiles(`${workshop.files}/caught`, 'caught', 2, {
    bytes: 1_000,
    lineLength: 80,
  });
  try {
    await server.initialize();
    await captureWrite(xtdb, () => server.call('read', { path: opening }));
    return await captureWrite(xtdb, () => server.call('read', { path }));
  } finally {
    await Promise.all([server.close(), xtdb.close()]);
  }
}

interface Filled {
  /** Seconds until the log had all transactions, and until the node had indexed them. */
  readonly submitted: number;
  readonly indexed: number;
  /** CPU time of the node per transaction, milliseconds. */
  readonly nodeMs: number;
  readonly lastTx: number;
  readonly ids: readonly string[];
}

/**
 * Writes the same call `count` times under different ids, many at a time, like several agents.
 * Returns the ids of some documents of the first `read` transactions.
 */
async function fill(
  node: NodeHandle,
  template: WrittenTransaction,
  { count, read }: { readonly count: number; readonly read: number },
): Promise<Filled> {
  const xtdb = new LogClient(node.address, { connections: AT_ONCE });
  const ids: string[] = [];
  const before = processorMs(node.pid);
  const began = performance.now();
  let next = 0;
  let lastTx = 0;
  const writer = async (): Promise<void> => {
    for (let n = next++; n < count; n = next++) {
      const ops = freshCopy(template, [SESSION, 'caught-1'], `f${n}`);
      const first = ops.find((op) => op.op === 'put');
      if (n % 5 === 0 && n < read && first?.op === 'put') ids.push(first.doc['xt/id']);
      lastTx = Math.max(lastTx, (await xtdb.submit(ops)).txId);
    }
  };
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, writer));
    const submitted = (performance.now() - began) / 1_000;
    await xtdb.awaitOutcome(lastTx, { timeoutMs: 3_600_000 });
    const indexed = (performance.now() - began) / 1_000;
    return { submitted, indexed, nodeMs: (processorMs(node.pid) - before) / count, lastTx, ids };
  } finally {
    await xtdb.close();
  }
}

/** Starts a node and returns the seconds until it has a transaction. */
async function caughtUp(
  start: () => Promise<NodeHandle>,
  lastTx: number,
): Promise<{ readonly node: NodeHandle; readonly seconds: number }> {
  const began = performance.now();
  const node = await start();
  const xtdb = new LogClient(node.address);
  try {
    await xtdb.awaitOutcome(lastTx, { timeoutMs: 3_600_000 });
    return { node, seconds: (performance.now() - began) / 1_000 };
  } finally {
    await xtdb.close();
  }
}

/** Nodes that have caught up with a log, and the ids of some documents in the log. */
export interface CaughtUp {
  readonly embedded: NodeHandle;
  readonly shared: readonly NodeHandle[];
  readonly ids: readonly string[];
  readonly result: CaseResult;
}

/**
 * Measures how fast a log accepts transactions, and how long a new node needs to catch up, without
 * an index and with a checkpoint. Leaves four nodes over one log.
 */
export async function measureCatchingUp(workshop: Workshop, servers: ClusterServers): Promise<CaughtUp> {
  const transactions = Number(process.env.CLUSTER_TRANSACTIONS ?? workshop.sizes.cluster.transactions);
  const [alone, a, b, c, d] = ['alone', 'a', 'b', 'c', 'd'].map((name) => servers.dataDir(`caught-${name}`)) as [
    string,
    string,
    string,
    string,
    string,
  ];
  const log = servers.log('postgres', 'caught');
  const template = await captureCall(workshop, alone);
  const few = transactions / FEWER;
  workshop.tell(`${few} transactions into an embedded node`);
  const own = await fill(await workshop.node(alone), template, { count: few, read: few });
  workshop.tell(`${transactions} transactions into PostgreSQL`);
  const nodeA = await workshop.node(a, { log });
  const shared = await fill(nodeA, template, { count: transactions, read: few });
  workshop.tell(`${few} transactions into Kafka`);
  const kafkaDir = servers.dataDir('caught-kafka');
  const kafka = await fill(await workshop.node(kafkaDir, { log: servers.log('kafka', 'caught') }), template, {
    count: few,
    read: few,
  });
  await stopNode(kafkaDir);

  workshop.tell('catching up from nothing');
  const nothing = await caughtUp(() => workshop.node(b, { log }), shared.lastTx);
  await stopNode(alone);
  const { golden } = await storeBytes(alone);
  await rm(join(alone, 'index'), { recursive: true });
  const again = await caughtUp(() => workshop.node(alone), own.lastTx);
  workshop.tell('catching up from a checkpoint');
  const folder = servers.dataDir('checkpoints');
  const began = performance.now();
  const { checkpoint } = await writeCheckpoint({
    store: await checkpointStore(folder, {}),
    dataDir: a,
    behind: 0,
    keep: 1,
  });
  const written = (performance.now() - began) / 1_000;
  const restored = await caughtUp(() => workshop.node(c, { log, restoreFrom: folder }), shared.lastTx);
  const { node: fourth } = await caughtUp(() => workshop.node(d, { log, restoreFrom: folder }), shared.lastTx);
  await stopNode(a);
  const indexed = (await storeBytes(a)).index;
  const started = await caughtUp(() => workshop.node(a, { log }), shared.lastTx);
  return {
    embedded: again.node,
    shared: [started.node, nothing.node, restored.node, fourth],
    ids: shared.ids,
    result: {
      cases: [
        {
          kind: 'counted',
          title: `${transactions.toLocaleString('en')} transactions, each what one read of 1 KB writes`,
          remark:
            `${template.puts.length} documents of ${template.bytes} bytes on the way to the node, ${AT_ONCE} ` +
            'transactions in flight. The embedded node and the log in Kafka get a tenth of them. A log in Kafka ' +
            'has its documents in PostgreSQL. Times of catching up include the start of a node.',
          rows: [
            { name: 'transactions', value: transactions, unit: '' },
            { name: 'embedded: taken a second', value: few / own.submitted, unit: '' },
            { name: 'log in PostgreSQL: taken a second', value: transactions / shared.submitted, unit: '' },
            { name: 'log in Kafka: taken a second', value: few / kafka.submitted, unit: '' },
            { name: 'embedded: indexed a second, while it took them', value: few / own.indexed, unit: '' },
            {
              name: 'log in PostgreSQL: indexed a second, while it took them',
              value: transactions / shared.indexed,
              unit: '',
            },
            { name: 'log in Kafka: indexed a second, while it took them', value: few / kafka.indexed, unit: '' },
            { name: 'embedded: processor time of the node, a transaction', value: own.nodeMs, unit: 'ms' },
            { name: 'log in PostgreSQL: processor time of the node, a transaction', value: shared.nodeMs, unit: 'ms' },
            { name: 'log in Kafka: processor time of the node, a transaction', value: kafka.nodeMs, unit: 'ms' },
            {
              name: `embedded: index of ${few.toLocaleString('en')} transactions made again`,
              value: again.seconds,
              unit: 's',
            },
            { name: 'a new node over PostgreSQL, from nothing', value: nothing.seconds, unit: 's' },
            { name: 'a new node over PostgreSQL, from a checkpoint', value: restored.seconds, unit: 's' },
            { name: 'a node over PostgreSQL that has its index', value: started.seconds, unit: 's' },
            { name: 'the checkpoint is written', value: written, unit: 's' },
            {
              name: 'the checkpoint holds',
              value: checkpoint.files.reduce((sum, file) => sum + file.size, 0),
              unit: 'B',
            },
            { name: 'index of a node', value: indexed, unit: 'B' },
            { name: 'golden store of the embedded node', value: golden, unit: 'B' },
          ],
        },
      ],
      goals: [],
    },
  };
}

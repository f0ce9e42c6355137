import { stopNode } from '../../src/index.js';
import { contentOf, runScript } from '../cases/storing.js';
import { storeBytes } from '../folder-size.js';
import type { CaseResult } from '../results.js';
import type { Workshop } from '../workshop.js';
import type { ClusterServers, Layout } from './servers.js';

interface Stored {
  readonly steps: number;
  readonly transactions: number;
  readonly content: number;
  readonly postgres: number;
  readonly kafka: number;
  readonly index: number;
}

async function store(workshop: Workshop, servers: ClusterServers, layout: Layout): Promise<Stored> {
  const dataDir = servers.dataDir(`stored-${layout}`);
  const log = servers.log(layout, 'stored');
  // Starts the node once before the session, because the size of an empty log does not count.
  await (await workshop.node(dataDir, { log })).release();
  const before = await servers.bytes();
  const written = await runScript(workshop, dataDir, { log, calls: workshop.sizes.cluster.sessionCalls });
  await stopNode(dataDir);
  const after = await servers.bytes();
  const { index } = await storeBytes(dataDir);
  const { steps, bytes } = contentOf(written);
  return {
    steps,
    transactions: written.length,
    content: bytes,
    postgres: after.postgres - before.postgres,
    kafka: after.kafka - before.kafka,
    index,
  };
}

const NAMES = { postgres: 'log in PostgreSQL', kafka: 'log in Kafka' } as const satisfies Record<Layout, string>;

/** Measures the bytes of a scripted session in PostgreSQL and in Kafka. */
export async function measureStored(workshop: Workshop, servers: ClusterServers): Promise<CaseResult> {
  const calls = workshop.sizes.cluster.sessionCalls;
  workshop.tell(`storage of a session of ${calls} calls in PostgreSQL and Kafka`);
  const found = {
    postgres: await store(workshop, servers, 'postgres'),
    kafka: await store(workshop, servers, 'kafka'),
  };
  return {
    cases: [
      {
        kind: 'counted',
        title: `Storage of a session of ${calls} calls with messages, in the servers`,
        remark:
          'Growth of the files of all databases and of the records of all topics: rows, their index and values ' +
          'out of line, before any VACUUM. Excludes the write-ahead logs of PostgreSQL, which come and go. The ' +
          'index is that of one node, with its write-ahead log.',
        rows: (Object.keys(NAMES) as Layout[]).flatMap((layout) => {
          const { steps, transactions, content, postgres, kafka, index } = found[layout];
          const name = NAMES[layout];
          return [
            { name: `${name}: steps`, value: steps, unit: '' },
            { name: `${name}: transactions`, value: transactions, unit: '' },
            { name: `${name}: content, each text once`, value: content, unit: 'B' },
            { name: `${name}: files of PostgreSQL`, value: postgres, unit: 'B' },
            { name: `${name}: records of Kafka`, value: kafka, unit: 'B' },
            { name: `${name}: index of a node`, value: index, unit: 'B' },
          ];
        }),
      },
    ],
    goals: [],
  };
}

import { stopNode } from '../../src/index.js';
import { makeFiles, settleDisk } from '../fixtures.js';
import { type Contender, interleave } from '../interleave.js';
import { type CaseResult, medianOf, type Sample } from '../results.js';
import { callOf, type StdioServer } from '../stdio-server.js';
import type { Workshop } from '../workshop.js';
import { LogClient, untilStored } from '../written-documents.js';
import type { ClusterServers, Layout } from './servers.js';

const EMBEDDED = 'one embedded node';
const WARM_UP = 5;

/** The node that an agent's server uses, and another node over the same log. */
interface Place {
  readonly name: string;
  readonly server: StdioServer;
  readonly own: LogClient;
  readonly other: LogClient | undefined;
  readonly delivered: number[];
  readonly seen: number[];
  readonly dataDirs: readonly string[];
}

async function openPlace(workshop: Workshop, servers: ClusterServers, layout: Layout | undefined): Promise<Place> {
  const log = layout === undefined ? undefined : servers.log(layout, 'calls');
  const dataDirs = [
    servers.dataDir(`calls-${layout ?? 'embedded'}`),
    ...(layout === undefined ? [] : [servers.dataDir(`calls-${layout}-other`)]),
  ];
  const clients: LogClient[] = [];
  for (const dir of dataDirs)
    clients.push(new LogClient((await workshop.node(dir, log === undefined ? {} : { log })).address));
  const [own, other] = clients;
  const [dir] = dataDirs;
  if (own === undefined || dir === undefined) throw new Error('no node is running');
  const server = workshop.ours(dir, `bench-calls-${layout ?? 'embedded'}`);
  await server.initialize();
  const name = layout === undefined ? EMBEDDED : { postgres: 'log in PostgreSQL', kafka: 'log in Kafka' }[layout];
  return { name, server, own, other, delivered: [], seen: [], dataDirs };
}

/**
 * Measures how long an agent waits for a read. Also measures the time until its step is in the
 * database, and in another node over the log. Compares all with an embedded node. Polls the other
 * node once a millisecond, like a client that does not wait for a transaction.
 */
export async function measureCalls(workshop: Workshop, servers: ClusterServers): Promise<CaseResult> {
  const { calls } = workshop.sizes.cluster;
  workshop.tell('calls beside an embedded node');
  const places: Place[] = [];
  for (const layout of [undefined, 'postgres', 'kafka'] as const)
    places.push(await openPlace(workshop, servers, layout));
  const paths = new Map<string, readonly string[]>();
  for (const [n, { name }] of places.entries()) {
    paths.set(
      name,
      await makeFiles(`${workshop.files}/calls-${n}`, `calls-of-${n}`, calls + WARM_UP, {
        bytes: 1_000,
        lineLength: 80,
      }),
    );
  }
  settleDisk();
  const contenders = places.map(({ name, server, own, other, delivered, seen }): Contender => {
    let answered = 0;
    let isWarm = false;
    return {
      name,
      prepare: async (round) => {
        isWarm = round >= WARM_UP;
        const path = paths.get(name)?.[round] ?? '';
        return async () => {
          const answer = await server.call('read', { path });
          answered = performance.now();
          return { bytes: answer.bytes, ...(callOf(answer) === undefined ? {} : { call: callOf(answer) ?? '' }) };
        };
      },
      settle: async ({ call }) => {
        const wait = async (node: LogClient | undefined, into: number[]): Promise<void> => {
          if (node === undefined) return;
          await untilStored(node, call);
          if (isWarm) into.push(performance.now() - answered);
        };
        await Promise.all([wait(own, delivered), wait(other, seen)]);
      },
    };
  });
  const samples = await interleave(contenders, {
    warmUp: WARM_UP,
    measured: calls,
    limitMs: workshop.sizes.limitMs * 10,
  });
  for (const { server, own, other } of places) await Promise.all([server.close(), own.close(), other?.close()]);
  for (const dir of places.flatMap(({ dataDirs }) => dataDirs)) await stopNode(dir);
  const delivery = places.map(({ name, delivered }): Sample => ({ name, ms: delivered }));
  const elsewhere = places.filter(({ seen }) => seen.length > 0).map(({ name, seen }): Sample => ({ name, ms: seen }));
  const ratio = (name: string) => medianOf(samples, name) / medianOf(samples, EMBEDDED);
  return {
    cases: [
      {
        kind: 'timed',
        title: 'read 1 KB, an unseen file each time, until it is answered',
        samples,
        yardsticks: [EMBEDDED],
      },
      {
        kind: 'timed',
        title: 'Delivery: from the answer until the own node has the step',
        samples: delivery,
        yardsticks: [EMBEDDED],
      },
      {
        kind: 'timed',
        title: 'Elsewhere: from the answer until another node has the step',
        samples: elsewhere,
        yardsticks: [],
      },
    ],
    goals: places
      .filter(({ name }) => name !== EMBEDDED)
      .map(({ name }) => ({
        what: `an acknowledged read, ${name}, over one embedded node`,
        measured: ratio(name),
        bar: 1.1,
        unit: '×',
      })),
  };
}

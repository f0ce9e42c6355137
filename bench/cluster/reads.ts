import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import * as z from 'zod';
import type { NodeHandle } from '../../src/index.js';
import { median, quantile } from '../quantile.js';
import type { CaseResult } from '../results.js';
import { benchFolder, type Workshop } from '../workshop.js';
import { processorMs } from './processor-time.js';

const run = promisify(execFile);
const CLIENTS = 8;
const done = z.object({ ms: z.array(z.number()), processorMs: z.number() });

const socketOf = ({ address }: NodeHandle): string => {
  if (address.kind !== 'unix') throw new Error('the node listens on no socket');
  return address.socketPath;
};

/** The figures of eight clients that share some nodes. */
interface Reading {
  readonly perSecond: number;
  readonly p50: number;
  readonly p95: number;
  /** CPU time of a read, milliseconds. */
  readonly nodeMs: number;
  readonly clientMs: number;
}

async function readTogether(nodes: readonly NodeHandle[], idsFile: string, limitMs: number): Promise<Reading> {
  const script = join(benchFolder, 'dist', 'reading-process.js');
  const clients = Array.from({ length: CLIENTS }, (_, i) => {
    const node = nodes[i % nodes.length];
    if (node === undefined) throw new Error('there is no node to read from');
    const child = spawn(process.execPath, [script, socketOf(node), String(limitMs), idsFile], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    return {
      child,
      lines: createInterface({ input: child.stdout })[Symbol.asyncIterator](),
      ended: once(child, 'exit'),
    };
  });
  for (const { lines } of clients)
    if ((await lines.next()).value !== 'ready') throw new Error('a reading process ended early');
  const before = nodes.map(({ pid }) => processorMs(pid));
  const began = performance.now();
  for (const { child } of clients) child.stdin.write('go\n');
  const found = await Promise.all(
    clients.map(async ({ lines }) => done.parse(JSON.parse(String((await lines.next()).value)))),
  );
  const seconds = (performance.now() - began) / 1_000;
  const nodeMs = nodes.reduce((sum, { pid }, i) => sum + processorMs(pid) - (before[i] ?? 0), 0);
  await Promise.all(clients.map(({ ended }) => ended));
  const ms = found.flatMap((one) => one.ms);
  return {
    perSecond: ms.length / seconds,
    p50: median(ms),
    p95: quantile(ms, 0.95),
    nodeMs: nodeMs / ms.length,
    clientMs: found.reduce((sum, one) => sum + one.processorMs, 0) / ms.length,
  };
}

/** Pins every thread of a node to some cores. Returns false if that is not possible. */
async function holdTo({ pid }: NodeHandle, cores: string): Promise<boolean> {
  return run('taskset', ['-a', '-c', '-p', cores, String(pid)]).then(
    () => true,
    () => false,
  );
}

interface Group {
  readonly name: string;
  readonly nodes: readonly NodeHandle[];
  /** Pins each node to one core, with a different core for each. */
  readonly isHeld?: boolean;
}

const medianReading = (readings: readonly Reading[]): Reading => ({
  perSecond: median(readings.map((one) => one.perSecond)),
  p50: median(readings.map((one) => one.p50)),
  p95: median(readings.map((one) => one.p95)),
  nodeMs: median(readings.map((one) => one.nodeMs)),
  clientMs: median(readings.map((one) => one.clientMs)),
});

/**
 * Measures the reads per second of eight clients on an embedded node, and on one, two and four
 * nodes over one log.
 */
export async function measureReads(
  workshop: Workshop,
  {
    embedded,
    shared,
    ids,
  }: { readonly embedded: NodeHandle; readonly shared: readonly NodeHandle[]; readonly ids: readonly string[] },
): Promise<CaseResult> {
  const { rounds, readMs } = workshop.sizes.cluster;
  const idsFile = join(workshop.files, 'ids.json');
  await writeFile(idsFile, JSON.stringify(ids));
  const groups: readonly Group[] = [
    { name: 'one embedded node', nodes: [embedded] },
    ...[1, 2, 4].map((count) => ({
      name: `${count} ${count === 1 ? 'node' : 'nodes'} over one log`,
      nodes: shared.slice(0, count),
    })),
    { name: '1 node that has one core', nodes: shared.slice(0, 1), isHeld: true },
    { name: '2 nodes that have one core each', nodes: shared.slice(0, 2), isHeld: true },
  ];
  const all = `0-${cpus().length - 1}`;
  const found = groups.map((): Reading[] => []);
  // The first round is a warm-up.
  for (let round = 0; round <= rounds; round++) {
    for (const [i, { name, nodes, isHeld = false }] of groups.entries()) {
      workshop.tell(`${CLIENTS} clients read from ${name}, round ${round}`);
      const held =
        isHeld && (await Promise.all(nodes.map((node, core) => holdTo(node, String(core))))).every((ok) => ok);
      if (isHeld && !held) continue;
      const reading = await readTogether(nodes, idsFile, round === 0 ? readMs / 2 : readMs);
      if (round > 0) found[i]?.push(reading);
      if (held) await Promise.all(nodes.map((node) => holdTo(node, all)));
    }
  }
  const readings = new Map(groups.map(({ name }, i) => [name, medianReading(found[i] ?? [])]));
  const rate = (name: string): number => readings.get(name)?.perSecond ?? Number.NaN;
  const goal = (what: string, [one, two]: readonly [string, string]) => ({
    what,
    measured: rate(one) / rate(two),
    bar: 1 / 1.7,
    unit: '×',
  });
  return {
    cases: [
      {
        kind: 'counted',
        title: `Reads of ${CLIENTS} clients: the newest moment and 20 documents as of it`,
        remark:
          `Each client is a process that reads as fast as it can. Clients share the machine's ${cpus().length} ` +
          `cores with the nodes. The median of ${rounds} rounds in turn. Processor time: of all nodes, and of all ` +
          'clients, for one read.',
        rows: [...readings].flatMap(([name, { perSecond, p50, p95, nodeMs, clientMs }]) => [
          { name: `${name}: reads a second`, value: perSecond, unit: '' },
          { name: `${name}: a read, p50`, value: p50, unit: 'ms' },
          { name: `${name}: a read, p95`, value: p95, unit: 'ms' },
          { name: `${name}: processor time of the nodes`, value: nodeMs, unit: 'ms' },
          { name: `${name}: processor time of the clients`, value: clientMs, unit: 'ms' },
        ]),
      },
    ],
    goals: [
      goal('reads a second of one node over those of two, on shared cores', [
        '1 node over one log',
        '2 nodes over one log',
      ]),
      goal('reads a second of one node over those of two, a core for each', [
        '1 node that has one core',
        '2 nodes that have one core each',
      ]),
    ],
  };
}

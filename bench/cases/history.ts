import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { SessionAssemblyRecord } from '../../src/client/session/session-assembly.js';
import { AssemblyRebuilder } from '../../src/history/rebuild/rebuild-assembly.js';
import {
  ContextClient,
  type ContextSession,
  canonicalPath,
  filesystemId,
  localFilesystemId,
  stopNode,
} from '../../src/index.js';
import { hashText } from '../../src/objects/hashes.js';
import { filesystemSource } from '../../src/objects/source.js';
import { indexedFile } from '../../src/objects/versions.js';
import { storeBytes } from '../folder-size.js';
import { interleave } from '../interleave.js';
import { median, quantile } from '../quantile.js';
import type { CaseResult, Sample } from '../results.js';
import type { Workshop } from '../workshop.js';
import { EXPORTS, measureProjecting, UNCHANGED_VIEW } from './projecting.js';
import { measureReviewing } from './reviewing.js';
import { runTurns } from './session-turns.js';
import { measureVerbs } from './verbs.js';

const SESSION = 'bench-history';
const RECORDS = 300;
const VERSIONS_AT_ONCE = 500;

async function flushedBytes(workshop: Workshop, dataDir: string): Promise<number> {
  for (let i = 0; i < 2; i++) {
    await (await workshop.node(dataDir)).release();
    await stopNode(dataDir);
  }
  return (await storeBytes(dataDir)).total;
}

/** Stores the context's record many times, each time as a new part. */
async function deliverOften(session: ContextSession, record: SessionAssemblyRecord): Promise<void> {
  for (let i = 0; i < RECORDS; i++) {
    await session.deliver(record, {
      delivered: 'library',
      handed: { sha256: hashText(randomUUID()), chars: 1, messages: 1 },
    });
  }
}

async function writeVersions(client: ContextClient, count: number): Promise<string> {
  const source = filesystemSource(filesystemId('bench-versions'), canonicalPath('/versions.txt'));
  const first = Date.UTC(2026, 0, 1);
  let id = '';
  for (let begin = 0; begin < count; begin += VERSIONS_AT_ONCE) {
    const puts = Array.from({ length: Math.min(VERSIONS_AT_ONCE, count - begin) }, (_, i) => {
      const content = `version ${begin + i}\n`.repeat(20);
      const version = indexedFile(source, content, hashText(content));
      id = version['xt/id'];
      return { version, validTime: new Date(first + begin + i) };
    });
    await client.store.putMany(puts);
  }
  return id;
}

const p95 = (samples: readonly Sample[], name: string): number =>
  quantile(samples.find((sample) => sample.name === name)?.ms ?? [], 0.95);
const p50 = (samples: readonly Sample[], name: string): number =>
  median(samples.find((sample) => sample.name === name)?.ms ?? []);

/**
 * Compares the time to rebuild a context of a long session with that of reading the current one.
 * Also measures the size of a context's record, and queries about an object with many versions.
 */
export async function measureHistory(workshop: Workshop): Promise<CaseResult> {
  const { turns, rounds, versions } = workshop.sizes.history;
  workshop.tell(`history of a session of ${turns} turns`);
  const dataDir = workshop.dataDir('history-data');
  const node = await workshop.node(dataDir);
  const files = {
    roots: [workshop.files],
    cwd: workshop.files,
    filesystemId: await localFilesystemId(dataDir),
    track: false,
  };
  const writer = await ContextClient.create({ ...files, address: node.address, dataDir });
  const session = await writer.openSession({ id: SESSION });
  await runTurns(session, writer, join(workshop.files, 'history'), turns);
  const { record } = await session.assemble();
  const id = await writeVersions(writer, versions);
  await writer.store.writes.flush();

  workshop.tell('rebuild');
  const reader = await workshop.client(node, dataDir);
  const proofs = await (await reader.snapshot()).assemblies(session.id);
  const any = (round: number) => {
    const proof = proofs[(round * 389) % proofs.length];
    if (proof === undefined) throw new Error('no context was handed out');
    return proof;
  };
  const known = new AssemblyRebuilder(reader.store);
  const rebuild = async (rebuilder: AssemblyRebuilder, proof: ReturnType<typeof any>) => {
    const { equal, rendered } = await rebuilder.rebuild(proof);
    if (!equal) throw new Error(`the context of turn ${proof.turn} is not the same`);
    return { bytes: Buffer.byteLength(rendered.whole) };
  };
  const last = proofs.at(-1);
  if (last === undefined) throw new Error('no context was handed out');
  const names = {
    now: 'current state, nothing known',
    any: 'any turn, nothing known',
    nowKnown: 'last turn, steps known',
    anyKnown: 'any turn, steps known',
  };
  const samples = await interleave(
    [
      {
        name: names.now,
        prepare: async () => async () => ({
          bytes: Buffer.byteLength((await reader.contextAsOf(session.id, {}))?.text ?? ''),
        }),
      },
      { name: names.any, prepare: async (round) => () => rebuild(new AssemblyRebuilder(reader.store), any(round)) },
      { name: names.nowKnown, prepare: async () => () => rebuild(known, last) },
      { name: names.anyKnown, prepare: async (round) => () => rebuild(known, any(round)) },
    ],
    { warmUp: 3, measured: rounds, limitMs: workshop.sizes.limitMs * 3 },
  );
  const versionSamples = await interleave(
    [
      {
        name: 'whole history',
        prepare: async () => async () => ({ bytes: (await (await reader.snapshot()).historyOfHeads(id)).length }),
      },
      {
        name: 'one version in the middle',
        prepare: async (round) => async () => {
          const snapshot = await reader.snapshot({
            validTime: new Date(Date.UTC(2026, 0, 1) + ((round * 37) % versions)),
          });
          await snapshot.get(id);
          return {};
        },
      },
    ],
    { warmUp: 1, measured: Math.min(rounds, 10), limitMs: workshop.sizes.limitMs },
  );

  const reviewed = await measureReviewing(workshop, reader, session.id);
  const projected = await measureProjecting(workshop, reader, session.id);
  const verbs = await measureVerbs(workshop, writer, dataDir);

  workshop.tell('what a record takes');
  await writer.close();
  await node.release();
  await stopNode(dataDir);
  const before = await flushedBytes(workshop, dataDir);
  const again = await workshop.node(dataDir);
  const more = await ContextClient.create({ ...files, address: again.address, dataDir });
  await deliverOften(await more.openSession({ id: SESSION }), record);
  await more.store.writes.flush();
  await more.close();
  await again.release();
  await stopNode(dataDir);
  const after = await flushedBytes(workshop, dataDir);
  return {
    cases: [
      {
        kind: 'timed',
        title: `Contexts of a session of ${turns} turns (${proofs.length} handed out), read from the database`,
        samples,
        yardsticks: [names.now],
      },
      { kind: 'timed', title: `An object with ${versions} versions`, samples: versionSamples, yardsticks: [] },
      reviewed,
      projected,
      ...verbs.cases,
      {
        kind: 'counted',
        title: 'The record of a context',
        rows: [{ name: `both stores, flushed, each of ${RECORDS}`, value: (after - before) / RECORDS, unit: 'B' }],
      },
    ],
    goals: [
      {
        what: 'rebuild of any turn over the current-state fetch, p50',
        measured: p50(samples, names.any) / p50(samples, names.now),
        bar: 1.5,
        unit: '×',
      },
      {
        what: 'rebuild of any turn over the current-state fetch, p95',
        measured: p95(samples, names.any) / p95(samples, names.now),
        bar: 1.5,
        unit: '×',
      },
      { what: 'rebuild of any turn, steps known, p95', measured: p95(samples, names.anyKnown), bar: 150, unit: 'ms' },
      {
        what: 'view of the session within a limit, nothing changed, p95',
        measured: p95(projected.samples, UNCHANGED_VIEW),
        bar: 50,
        unit: 'ms',
      },
      ...Object.values(EXPORTS).map((name) => ({
        what: `the session as ${name}, p95`,
        measured: p95(projected.samples, name),
        bar: 3_000,
        unit: 'ms',
      })),
      { what: 'rebuild of any turn, nothing known, p95', measured: p95(samples, names.any), bar: 150, unit: 'ms' },
      ...verbs.goals,
    ],
  };
}

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pLimit from 'p-limit';
import { hashSource } from '../../src/filesystem/access/read-source.js';
import { ContextClient, localFilesystemId } from '../../src/index.js';
import { makeFolders, settleDisk, textOf } from '../fixtures.js';
import { type Contender, interleave } from '../interleave.js';
import { type CaseResult, medianOf } from '../results.js';
import type { Workshop } from '../workshop.js';

const YARDSTICK = 'the same files hashed, one batch query';
const OURS = 'openSession, until every source was looked at';
const OPEN = 'openSession, until it is open';
const PER_FOLDER = 100;
const PER_CALL = 100;
const AT_ONCE = 8;
const SESSION = 'bench-resumed';

/** Writes files from half a kilobyte to 20 kB, most of them small, in folders of a hundred. */
async function makeSources(workshop: Workshop, count: number): Promise<readonly string[]> {
  const folders = await makeFolders(workshop.files, 'resumed', Math.ceil(count / PER_FOLDER), 0);
  const paths = Array.from({ length: count }, (_, n) =>
    join(folders[Math.floor(n / PER_FOLDER)] ?? '', `unit-${n}.ts`),
  );
  for (const [n, path] of paths.entries())
    await writeFile(path, textOf(`unit-${n}`, Math.round(512 * 40 ** (((n * 7) % 300) / 300)), 80));
  settleDisk();
  return paths;
}

/**
 * Measures resuming a session of many unchanged files [§3.6]. Compares it with hashing the same
 * files, eight at a time, plus one query for all their heads. Each round has a new client,
 * connection and session. The files are in the system's cache.
 */
export async function measureResuming(workshop: Workshop): Promise<CaseResult> {
  const { resumed: count, resumes, limitMs } = workshop.sizes;
  workshop.tell(`a session of ${count} files`);
  const paths = await makeSources(workshop, count);
  const dataDir = workshop.dataDir('resume-data');
  const node = await workshop.node(dataDir);
  const create = async (tracked: boolean): Promise<ContextClient> =>
    ContextClient.create({
      address: node.address,
      roots: [workshop.files],
      cwd: workshop.files,
      filesystemId: await localFilesystemId(dataDir),
      ...(tracked ? { dataDir } : {}),
    });
  const writer = await create(false);
  const session = await writer.openSession({ id: SESSION });
  const sources = await Promise.all(paths.map(async (path) => (await writer.files.locate(path)).source));
  for (let at = 0; at < count; at += PER_CALL) {
    const readings = await Promise.all(
      sources
        .slice(at, at + PER_CALL)
        .map(async (source) => ({ source, reading: await writer.files.read(source), activate: false })),
    );
    await session.recordCall({
      tool: 'read',
      args: { at },
      status: 'ok',
      content: `files from ${at}`,
      answer: () => 'read',
      readings,
    });
  }
  const ids = session.state.sets.index;
  await writer.close();

  workshop.tell('resume');
  const contender = (name: string, work: (client: ContextClient) => Promise<void>, tracked: boolean): Contender => {
    let client: ContextClient | undefined;
    return {
      name,
      prepare: async () => {
        await client?.close();
        client = await create(tracked);
        const fresh = client;
        return async () => {
          await work(fresh);
          return {};
        };
      },
      settle: async () => {
        await client?.close();
        client = undefined;
      },
    };
  };
  const hashAll = async (client: ContextClient): Promise<void> => {
    const limit = pLimit(AT_ONCE);
    const snapshot = await client.store.latest();
    await Promise.all([
      snapshot.heads(ids),
      ...sources.map((source) => limit(() => hashSource(client.files.access, source))),
    ]);
  };
  const openAll = async (client: ContextClient): Promise<void> => {
    let finish: () => void = () => undefined;
    const looked = new Promise<void>((resolve) => {
      finish = resolve;
    });
    await client.openSession({ id: SESSION, onProgress: (done, total) => (done === total ? finish() : undefined) });
    await looked;
  };
  const open = async (client: ContextClient): Promise<void> => {
    await client.openSession({ id: SESSION });
  };
  const contenders = [
    contender(YARDSTICK, hashAll, false),
    contender(OURS, openAll, true),
    contender(OPEN, open, true),
  ];
  const samples = await interleave(contenders, { warmUp: 1, measured: resumes, limitMs: limitMs * 6 });
  return {
    cases: [
      {
        kind: 'timed',
        title: `Resuming a session of ${ids.length} objects, ${count} of them files that did not change`,
        remark: 'Opening waits for the sources for a second at most; the rest follows by itself.',
        samples,
        yardsticks: [YARDSTICK],
      },
    ],
    goals: [
      {
        what: 'resume, as a multiple of hashing and one query',
        measured: medianOf(samples, OURS) / medianOf(samples, YARDSTICK),
        bar: 1.5,
        unit: 'x',
      },
    ],
  };
}

import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AssembleOptions } from '../../src/client/session/session-assembly.js';
import { ContextClient, filesystemId } from '../../src/index.js';
import type { NodeAddress } from '../../src/xtdb/address.js';
import { makeFiles, makeFolders, settleDisk } from '../fixtures.js';
import { type Contender, interleave } from '../interleave.js';
import { quantile } from '../quantile.js';
import type { CaseResult, Sample } from '../results.js';
import { runTool } from '../run-tool.js';
import type { Workshop } from '../workshop.js';
import type { Readers } from './reading.js';

const COUNTS = [20, 200, 1_000];
const ACTIVE = 5;
const WARM_UP = 3;

const BESIDE = {
  alone: 'nobody else writes',
  written: 'another client has written one of the files',
  optimistic: 'the same, without waiting for transactions',
} as const;

/** Time limit for the database to store a listing of all files, and for each step after it. */
const SETTLE_MS = 240_000;

/**
 * The samples, and the number of contexts whose records report a lag behind the other client's
 * writes.
 */
interface Beside {
  readonly samples: readonly Sample[];
  readonly behind: number;
}

/**
 * Measures `assemble()` of a session with very many files in its index. Another client writes one
 * of them before every call. The context must contain the new text, or its record must report the
 * lag.
 */
async function besideAnother(workshop: Workshop, address: NodeAddress): Promise<Beside> {
  const { assemblies, limitMs, foreign } = workshop.sizes;
  workshop.tell(`assemble beside another writer, ${foreign} files`);
  const dataDir = workshop.dataDir('beside');
  const files = {
    address,
    roots: [workshop.files],
    cwd: workshop.files,
    filesystemId: filesystemId('bench-beside'),
    track: false,
  };
  const [client, other] = [await ContextClient.create({ ...files, dataDir }), await ContextClient.create(files)];
  const [session, theirs] = [
    await client.openSession({ id: 'bench-beside' }),
    await other.openSession({ id: 'bench-beside-other' }),
  ];
  const [folder = ''] = await makeFolders(workshop.files, 'beside', 1, foreign);
  const names = await readdir(folder);
  const mentions = await Promise.all(
    names.map(async (name) => ({
      source: (await client.files.locate(join(folder, name))).source,
      mtimeMs: 1_700_000_000_000,
    })),
  );
  await session.recordCall({ tool: 'ls', args: {}, status: 'ok', content: 'a list', mentions, answer: (id) => id });
  let chars = 100;
  const write = async (round: number): Promise<string> => {
    const path = join(folder, names[(round * 37) % names.length] ?? '');
    chars += 1;
    await writeFile(path, 'x'.repeat(chars));
    const { source } = await other.files.locate(path);
    const readings = [{ source, reading: await other.files.read(source), activate: true }];
    await theirs.recordCall({
      tool: 'read',
      args: { path },
      status: 'ok',
      content: 'read',
      readings,
      answer: (id) => id,
    });
    await other.backpressure(0, SETTLE_MS);
    return `path=${path} file_type=ts char_count=${chars}`;
  };
  const step = async (round: number): Promise<void> => {
    await session.reportMessage({ role: 'user', text: `Question ${round}: what does this line mean?` });
    await client.backpressure(0, SETTLE_MS);
  };
  let behind = 0;
  const contender = (name: string, options: AssembleOptions, isWritten: boolean): Contender => ({
    name,
    prepare: async (round) => {
      await step(round);
      const line = isWritten ? await write(round) : '';
      return async () => {
        const { text, record } = await session.assemble(options);
        const isBehind = !text.includes(line);
        if (isBehind && record.behind === undefined)
          throw new Error(`${name}: the context lacks ${line} and does not report that it is behind`);
        if (isBehind && round >= WARM_UP) behind += 1;
        return { bytes: Buffer.byteLength(text) };
      };
    },
  });
  const samples = await interleave(
    [
      contender(BESIDE.alone, {}, false),
      contender(BESIDE.written, {}, true),
      contender(BESIDE.optimistic, { optimistic: true }, true),
    ],
    { warmUp: WARM_UP, measured: assemblies, limitMs: limitMs * 2 },
  );
  await Promise.all([client.close(), other.close()]);
  return { samples, behind };
}

/**
 * Measures `assemble()` after a step, for sessions with different numbers of files in their index.
 * Five files are active.
 */
export async function measureAssembling(
  workshop: Workshop,
  { library }: Readers,
  dataDir: string,
): Promise<CaseResult> {
  const { address } = await workshop.node(dataDir);
  workshop.tell('assemble');
  const contenders: Contender[] = [];
  for (const count of COUNTS) {
    const mark = `assembled-${count}`;
    const [folder = ''] = await makeFolders(workshop.files, mark, 1, count - ACTIVE);
    const paths = await makeFiles(`${workshop.files}/${mark}-active`, mark, ACTIVE, { bytes: 4_000, lineLength: 80 });
    settleDisk();
    const session = await library.client.openSession({ id: `bench-${mark}` });
    const context = { ...library, session };
    await runTool('ls', { path: folder }, context);
    for (const path of paths) await runTool('read', { path }, context);
    contenders.push({
      name: `${count} files known`,
      prepare: async (round) => {
        await session.reportMessage({ role: 'user', text: `Question ${round}: what does this line mean?` });
        return async () => {
          const { text } = await session.assemble();
          return { bytes: Buffer.byteLength(text) };
        };
      },
    });
  }
  const { assemblies, limitMs, foreign } = workshop.sizes;
  const samples = await interleave(contenders, { warmUp: WARM_UP, measured: assemblies, limitMs });
  const { samples: beside, behind } = await besideAnother(workshop, address);
  const cases = Object.values(BESIDE).filter((name) => name !== BESIDE.alone);
  return {
    cases: [
      {
        kind: 'timed',
        title: 'assemble() after a step, five files of 4 KB active',
        samples,
        yardsticks: [contenders[0]?.name ?? ''],
      },
      {
        kind: 'timed',
        title: `assemble() of a session that knows ${foreign} files, all of them looked for in the text`,
        remark: `Of the contexts that waited for no transaction, ${behind} said that they were behind.`,
        samples: beside,
        yardsticks: [BESIDE.alone],
      },
    ],
    goals: cases.map((name) => ({
      what: `${name}, ${foreign} files known, p95`,
      measured: quantile(beside.find((sample) => sample.name === name)?.ms ?? [], 0.95),
      bar: 100,
      unit: 'ms',
    })),
  };
}

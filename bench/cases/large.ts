import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pLimit from 'p-limit';
import { ContextClient, localFilesystemId, stopNode } from '../../src/index.js';
import { makeFiles, makeFolders } from '../fixtures.js';
import { type Contender, interleave } from '../interleave.js';
import { quantile } from '../quantile.js';
import type { CaseResult, Goal, Sample } from '../results.js';
import { runTool } from '../run-tool.js';
import { projectFolder, type Workshop } from '../workshop.js';
import { startReviewed } from './load.js';
import { runVerb } from './verbs.js';

/** Number of files per listing. */
const LISTED = 2_000;
/** Number of sessions that are written in parallel. */
const AT_ONCE = 8;
/** Number of calls of the session for the documented queries. */
const CALLS = 1_000;

/** Opens a data folder with a node and a client that writes to it. */
async function openLarge(workshop: Workshop, name: string) {
  const dataDir = workshop.dataDir(name);
  const node = await workshop.node(dataDir);
  const files = {
    roots: [workshop.files],
    cwd: workshop.files,
    filesystemId: await localFilesystemId(dataDir),
    track: false,
  };
  const client = await ContextClient.create({ ...files, address: node.address, dataDir });
  const open = async (id: string) => ({
    client,
    session: await client.openSession({ id }),
    signal: new AbortController().signal,
  });
  const close = async (): Promise<void> => {
    await client.close();
    await node.release();
    await stopNode(dataDir);
  };
  return { dataDir, client, open, close };
}

const verb = (name: string, dataDir: string, args: readonly string[]): Contender => ({
  name,
  prepare: async () => () => runVerb([...args, '--data', dataDir]),
});

const within = (samples: readonly Sample[], bar: (name: string) => number | undefined): readonly Goal[] =>
  samples.flatMap(({ name, ms }) => {
    const most = bar(name);
    return most === undefined ? [] : [{ what: `${name}, p95`, measured: quantile(ms, 0.95), bar: most, unit: 'ms' }];
  });

/**
 * Measures queries about a session with very many objects in its index. It lists 2,000 files at a
 * time and then reads files in a few turns.
 */
export async function measureKnown(workshop: Workshop): Promise<CaseResult> {
  const { known, rounds } = workshop.sizes.large;
  workshop.tell(`a session that knows ${known} objects`);
  const { dataDir, client, open, close } = await openLarge(workshop, 'known-data');
  const id = 'bench-known';
  const context = await open(id);
  const folders = await makeFolders(workshop.files, 'known', known / LISTED, LISTED);
  for (const [n, path] of folders.entries())
    await runTool('ls', { path }, { ...context, turnRef: `list-${Math.floor(n / 5)}` });
  const read = await makeFiles(join(workshop.files, 'known-read'), 'read', 20, { bytes: 4_000, lineLength: 80 });
  for (const [n, path] of read.entries())
    await runTool('read', { path }, { ...context, turnRef: `read-${Math.floor(n / 4)}` });
  await client.store.writes.flush();
  const folder = folders[0] ?? '';
  const tool = (name: string, args: Readonly<Record<string, unknown>>): Contender => ({
    name: `a call of ${name}${JSON.stringify(args)}`,
    prepare: async (round) => async () => {
      const { text } = await runTool(name, args, { ...context, turnRef: `call-${round}` });
      return { bytes: Buffer.byteLength(text) };
    },
  });
  workshop.tell('questions about it');
  const samples = await interleave(
    [
      verb('palimpsest sessions', dataDir, ['sessions']),
      verb('palimpsest log', dataDir, ['log']),
      verb('palimpsest log S', dataDir, ['log', id]),
      verb('palimpsest context S', dataDir, ['context', id, '--assemble']),
      verb('palimpsest verify S', dataDir, ['verify', id]),
      verb('palimpsest show S', dataDir, ['show', id]),
      verb('palimpsest diff S', dataDir, ['diff', id]),
      verb('palimpsest who FILE', dataDir, ['who', read[0] ?? '', '--session', id]),
      verb('palimpsest report detail S', dataDir, ['report', 'detail', id, '--assemble']),
      tool('context', {}),
      tool('context', { full: true }),
      tool('read', { path: read[1] ?? '' }),
      tool('ls', { path: folder, limit: 10 }),
      tool('activate', { ids: [read[2] ?? ''] }),
    ],
    { warmUp: 1, measured: rounds, limitMs: workshop.sizes.limitMs * 12 },
  );
  await close();
  return {
    cases: [{ kind: 'timed', title: `A session that knows ${known} objects`, samples, yardsticks: [] }],
    goals: within(samples, (name) => (name.startsWith('palimpsest') ? 3_000 : 300)),
  };
}

/** Measures queries in a database with a growing number of sessions of one turn each. */
export async function measureMany(workshop: Workshop): Promise<CaseResult> {
  const { dataDir, client, close } = await openLarge(workshop, 'many-data');
  const results: CaseResult[] = [];
  let written = 0;
  for (const sessions of workshop.sizes.large.sessions) {
    workshop.tell(`${sessions} sessions`);
    await writeSessions(client, written, sessions);
    written = sessions;
    results.push(await questionsAbout(workshop, dataDir, sessions));
  }
  await close();
  return { cases: results.flatMap(({ cases }) => cases), goals: results.flatMap(({ goals }) => goals) };
}

async function writeSessions(client: ContextClient, from: number, end: number): Promise<void> {
  await pLimit(AT_ONCE).map(Array.from({ length: end - from }), async (_, i) => {
    const n = from + i;
    const session = await client.openSession({ id: `bench-many-${n}` });
    await session.reportMessage({ role: 'user', text: `Question ${n}: what does this line mean?` });
    await session.recordCall({
      tool: 'bash',
      args: { n },
      status: 'ok',
      content: `answer ${n}`,
      answer: () => `answer ${n}`,
    });
    await client.closeSession(session);
  });
  await client.store.writes.flush();
}

async function questionsAbout(workshop: Workshop, dataDir: string, sessions: number): Promise<CaseResult> {
  const { rounds } = workshop.sizes.large;
  workshop.tell('questions about them');
  const reviewed = await startReviewed(dataDir);
  const list: Contender = {
    name: "the page's list of sessions",
    prepare: async () => async () => {
      await reviewed.get('/v1/sessions');
      return { bytes: (await reviewed.get('/v1/list')).length };
    },
  };
  const samples = await interleave(
    [
      list,
      verb('palimpsest doctor', dataDir, ['doctor', '--no-agents']),
      verb('palimpsest sessions', dataDir, ['sessions']),
      verb('palimpsest sessions --limit 20', dataDir, ['sessions', '--limit', '20']),
      verb('palimpsest log', dataDir, ['log']),
      verb('palimpsest log S', dataDir, ['log', 'bench-many-7']),
      verb('palimpsest show S', dataDir, ['show', 'session:bench-many-7']),
    ],
    { warmUp: 1, measured: rounds, limitMs: workshop.sizes.limitMs * 4 },
  );
  await reviewed.close();
  return {
    cases: [{ kind: 'timed', title: `${sessions} sessions`, samples, yardsticks: [] }],
    goals: within(samples, () => 500),
  };
}

/** Returns the queries in the table of examples in docs/review.md, for the session S. */
function documentedQueries(): readonly string[] {
  const page = readFileSync(join(projectFolder, 'docs', 'review.md'), 'utf8');
  return [...page.matchAll(/^\| `:[^`]+` \| [^|]+ \| `(.+)` \|$/gm)].map(([, query = '']) => query);
}

/** Measures every documented query on a session of 1,000 calls. One call lists 2,000 files. */
export async function measureQueries(workshop: Workshop): Promise<CaseResult> {
  const { rounds } = workshop.sizes.large;
  workshop.tell(`documented queries, ${CALLS} calls`);
  const { client, open, close } = await openLarge(workshop, 'queries-data');
  const context = await open('S');
  await context.session.setSystemPrompt('You are careful.');
  const [folder = ''] = await makeFolders(workshop.files, 'queried', 1, LISTED);
  const read = await makeFiles(join(workshop.files, 'queried-read'), 'read', 50, { bytes: 4_000, lineLength: 80 });
  for (let n = 0; n < CALLS; n += 1) {
    if (n % 10 === 0) await context.session.reportMessage({ role: 'user', text: `Question ${n}` });
    const isList = n === CALLS / 2;
    await runTool(isList ? 'ls' : 'read', { path: isList ? folder : (read[n % read.length] ?? '') }, context);
  }
  await client.store.writes.flush();
  const { askQuery, Timeline } = await import('../../src/index.js');
  const samples = await interleave(
    documentedQueries().map((query) => ({
      name: query,
      prepare: async () => {
        const timeline = await Timeline.open(await client.delivered());
        return async () => {
          const { answer } = await askQuery(timeline, query, {});
          return { bytes: answer.rows.length };
        };
      },
    })),
    { warmUp: 1, measured: rounds, limitMs: workshop.sizes.limitMs * 8 },
  );
  await close();
  return {
    cases: [
      {
        kind: 'timed',
        title: `Documented queries, a session of ${CALLS} calls and a listing of ${LISTED} files`,
        samples,
        yardsticks: [],
      },
    ],
    goals: within(samples, () => 300),
  };
}

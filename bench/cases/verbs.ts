import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { ContextClient, localFilesystemId, stopNode } from '../../src/index.js';
import { interleave } from '../interleave.js';
import { median } from '../quantile.js';
import type { CaseResult } from '../results.js';
import { projectFolder, type Workshop } from '../workshop.js';
import { runTurns } from './session-turns.js';

const ALONE = 'the program alone (--version)';
/** Of the session that verbs are asked about. */
const TURNS = 100;

/** One run of the built program from its start to its end. */
async function run(args: readonly string[]): Promise<{ readonly bytes: number }> {
  const child = spawn(process.execPath, [join(projectFolder, 'dist', 'cli.js'), ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  let bytes = 0;
  child.stdout.on('data', (piece: Buffer) => {
    bytes += piece.length;
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`palimpsest ${args.join(' ')} ended with ${code}`);
  return { bytes };
}

/** The verbs of reviewers from the shell, on a node that runs, about a session of its own in that data folder. */
export async function measureVerbs(workshop: Workshop, writer: ContextClient, dataDir: string): Promise<CaseResult> {
  workshop.tell('verbs of reviewers');
  const asked = await writer.openSession({ id: 'bench-verbs' });
  await runTurns(asked, writer, join(workshop.files, 'verbs'), TURNS);
  await writer.store.writes.flush();
  const { id: session } = asked;
  const [object = ''] = asked.state.sets.active;
  const turn = TURNS / 2;
  const verbs: readonly (readonly string[])[] = [
    ['sessions'],
    ['log', session],
    ['show', session],
    ['cat', object],
    ['context', `${session}@turn:${turn}`],
    ['diff', session, `turn:${turn}..turn:${turn + 1}`],
    ['who', object],
    ['query', '[:find ?s ?o :where [?s :active_set ?o]]'],
    ['report', 'detail', `${session}@turn:${turn}`],
    ['report', 'list', session],
  ];
  const contenders = [
    { name: ALONE, prepare: async () => () => run(['--version']) },
    ...verbs.map((args) => ({
      name: args.slice(0, args[0] === 'report' ? 2 : 1).join(' '),
      prepare: async () => () => run([...args, '--data', dataDir]),
    })),
  ];
  const { rounds } = workshop.sizes.history;
  const samples = await interleave(contenders, { warmUp: 1, measured: Math.min(rounds, 20), limitMs: workshop.sizes.limitMs * 2 });
  return {
    cases: [{ kind: 'timed', title: 'Verbs of reviewers from the shell, on a running node', samples, yardsticks: [ALONE] }],
    goals: samples.slice(1).map(({ name, ms }) => ({ what: `palimpsest ${name}, p50`, measured: median(ms), bar: 300, unit: 'ms' })),
  };
}

/** The same in a database that holds nothing else. */
export async function measureVerbsAlone(workshop: Workshop): Promise<CaseResult> {
  const dataDir = workshop.dataDir('verbs-data');
  const node = await workshop.node(dataDir);
  const files = { roots: [workshop.files], cwd: workshop.files, filesystemId: await localFilesystemId(dataDir), track: false };
  const writer = await ContextClient.create({ ...files, address: node.address, dataDir });
  const measured = await measureVerbs(workshop, writer, dataDir);
  await writer.close();
  await node.release();
  await stopNode(dataDir);
  return measured;
}

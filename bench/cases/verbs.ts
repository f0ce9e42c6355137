import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { ContextClient, localFilesystemId, stopNode } from '../../src/index.js';
import { interleave } from '../interleave.js';
import { quantile } from '../quantile.js';
import type { CaseResult } from '../results.js';
import { projectFolder, type Workshop } from '../workshop.js';
import { runTurns } from './session-turns.js';

const ALONE = 'the program alone (--version)';
/** A verb that a reviewer runs in the shell. */
interface Verb {
  readonly name: string;
  readonly args: readonly string[];
}

/** Number of turns of the queried session. */
const TURNS = 100;

/** Runs the built program once, from start to end. */
export async function runVerb(args: readonly string[]): Promise<{ readonly bytes: number }> {
  const child = spawn(process.execPath, [join(projectFolder, 'dist', 'cli.js'), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let bytes = 0;
  child.stdout.on('data', (piece: Buffer) => {
    bytes += piece.length;
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`palimpsest ${args.join(' ')} ended with ${code}`);
  return { bytes };
}

/**
 * Measures the reviewers' verbs from the shell on a running node. The queried session is one of
 * several in that data folder.
 */
export async function measureVerbs(workshop: Workshop, writer: ContextClient, dataDir: string): Promise<CaseResult> {
  workshop.tell('verbs of reviewers');
  const asked = await writer.openSession({ id: 'bench-verbs' });
  await runTurns(asked, writer, join(workshop.files, 'verbs'), TURNS);
  await writer.store.writes.flush();
  const { id: session } = asked;
  const [object = ''] = asked.state.sets.active;
  const turn = TURNS / 2;
  const at = `${session}@turn:${turn}`;
  const range = `turn:${turn}..turn:${turn + 1}`;
  const asTyrum = ['--format', 'tyrum'];
  const verbs: readonly Verb[] = [
    { name: 'sessions', args: ['sessions'] },
    { name: 'log', args: ['log', session] },
    { name: 'log of all sessions', args: ['log'] },
    { name: 'log of an object', args: ['log', '--object', object] },
    { name: 'show', args: ['show', object] },
    { name: 'show of the session', args: ['show', session] },
    { name: 'cat', args: ['cat', object] },
    { name: 'context', args: ['context', at] },
    { name: 'diff of two turns', args: ['diff', session, range] },
    { name: 'diff of an object', args: ['diff', object] },
    { name: 'diff --prefix, 21 requests', args: ['diff', session, '--prefix'] },
    { name: 'diff --prefix of two turns', args: ['diff', session, range, '--prefix'] },
    { name: 'who', args: ['who', object] },
    { name: 'query', args: ['query', '[:find ?s ?o :where [?s :active_set ?o]]'] },
    { name: 'note', args: ['note', session] },
    { name: 'restore --plan', args: ['restore', at, '--root', workshop.files] },
    { name: 'restore --list', args: ['restore', '--list'] },
    { name: 'report detail', args: ['report', 'detail', at] },
    { name: 'report detail as Tyrum has it', args: ['report', 'detail', at, ...asTyrum] },
    { name: 'report list, 20 contexts', args: ['report', 'list', session] },
    { name: 'report list as Tyrum has it', args: ['report', 'list', session, ...asTyrum] },
    { name: 'report state', args: ['report', 'state', session] },
    { name: 'report memory', args: ['report', 'memory', 'default'] },
    // Rebuilds all contexts of the session and reads all their parts.
    { name: 'verify, 100 contexts', args: ['verify', session] },
  ];
  const contenders = [
    { name: ALONE, prepare: async () => () => runVerb(['--version']) },
    ...verbs.map(({ name, args }) => ({ name, prepare: async () => () => runVerb([...args, '--data', dataDir]) })),
  ];
  const { rounds } = workshop.sizes.history;
  const samples = await interleave(contenders, {
    warmUp: 3,
    measured: Math.min(rounds, 20),
    limitMs: workshop.sizes.limitMs * 8,
  });
  return {
    cases: [
      { kind: 'timed', title: 'Verbs of reviewers from the shell, on a running node', samples, yardsticks: [ALONE] },
    ],
    goals: samples
      .slice(1)
      .map(({ name, ms }) => ({ what: `palimpsest ${name}, p95`, measured: quantile(ms, 0.95), bar: 300, unit: 'ms' })),
  };
}

/** Measures the same verbs in a database with only this session. */
export async function measureVerbsAlone(workshop: Workshop): Promise<CaseResult> {
  const dataDir = workshop.dataDir('verbs-data');
  const node = await workshop.node(dataDir);
  const files = {
    roots: [workshop.files],
    cwd: workshop.files,
    filesystemId: await localFilesystemId(dataDir),
    track: false,
  };
  const writer = await ContextClient.create({ ...files, address: node.address, dataDir });
  const measured = await measureVerbs(workshop, writer, dataDir);
  await writer.close();
  await node.release();
  await stopNode(dataDir);
  return measured;
}

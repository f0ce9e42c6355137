import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { interleave } from '../interleave.js';
import type { CaseResult } from '../results.js';
import { projectFolder, type Workshop } from '../workshop.js';

const ALONE = 'the program alone (--version)';

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

/** The verbs of reviewers from the shell, on a node that runs, about a session of that data folder and one of its objects. */
export async function measureVerbs(
  workshop: Workshop,
  {
    dataDir,
    session,
    object,
    turn,
  }: { readonly dataDir: string; readonly session: string; readonly object: string; readonly turn: number },
): Promise<CaseResult['cases'][number]> {
  workshop.tell('verbs of reviewers');
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
  return { kind: 'timed', title: `Verbs of reviewers from the shell, on a running node`, samples, yardsticks: [ALONE] };
}

import { execFileSync } from 'node:child_process';
import { availableParallelism, homedir, loadavg } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { openReplayDatabase } from '../src/lab/replay/replay-database.js';

/** Describes how a script was run, and finds its recordings and its node's build. */
export function describeRun(command: string, args: readonly string[]) {
  const corpus = process.env.PALIMPSEST_CORPUS;
  if (corpus === undefined || corpus === '')
    throw new Error('PALIMPSEST_CORPUS is not set: set it to a folder of recordings');
  const git = (...words: readonly string[]): string => execFileSync('git', words, { encoding: 'utf8' }).trim();
  const stop = new AbortController();
  // Stops the node together with the run.
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.once(name, () => stop.abort(new Error(`stopped by ${name}`)));
  // Hides paths of this machine, which mean nothing to other readers.
  const said = args.map((one) => (isAbsolute(one.replace(/^--[a-z]+=/, '')) ? '…' : one));
  const changed = git('status', '--porcelain', '--', 'src') === '' ? '' : ' with changes';
  return {
    corpus,
    jobs: availableParallelism(),
    command: ['PALIMPSEST_CORPUS=…', command, ...(said.length > 0 ? ['--', ...said] : [])].join(' '),
    commit: `${git('rev-parse', 'HEAD')}${changed}`,
    date: new Date().toISOString().slice(0, 10),
    open: () =>
      openReplayDatabase(undefined, {
        cacheDir: join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'palimpsest'),
      }),
    signal: stop.signal,
    machine: (): string => `${availableParallelism()} cores, load ${loadavg()[2]?.toFixed(1)} over the last 15 minutes`,
    onProgress: (line: string): void => console.error(line),
  };
}

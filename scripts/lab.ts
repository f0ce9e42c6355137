/**
 * Compares context policies on every recording below PALIMPSEST_CORPUS, or on the given ones: `npm
 * run lab [-- FILE… --config FILE --out FOLDER]`.
 */
import { availableParallelism, homedir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { readConfig } from '../src/lab/cli/read-config.js';
import { parseLabConfig } from '../src/lab/laboratory/lab-config.js';
import { labWorker } from '../src/lab/laboratory/lab-threads.js';
import { runLab } from '../src/lab/laboratory/run-lab.js';
import { writeLab } from '../src/lab/laboratory/write-lab.js';
import { findRecordings } from '../src/lab/replay/find-recordings.js';
import { openReplayDatabase } from '../src/lab/replay/replay-database.js';

const { values, positionals } = parseArgs({
  options: { config: { type: 'string' }, out: { type: 'string' }, sweep: { type: 'boolean' } },
  allowPositionals: true,
});
const corpus = process.env.PALIMPSEST_CORPUS;
const named = positionals.length > 0 ? positionals : corpus === undefined || corpus === '' ? [] : [corpus];
if (named.length === 0)
  throw new Error('no recordings: set PALIMPSEST_CORPUS to a folder of recordings, or name files after --');
const config =
  values.config === undefined
    ? parseLabConfig({ sweep: values.sweep === true }, 'no configuration')
    : await readConfig(values.config, parseLabConfig);
const cacheDir = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'palimpsest');
const stop = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const)
  process.once(name, () => stop.abort(new Error(`stopped by ${name}`)));
const { paths, failures: unread } = await findRecordings(named);
const run = await runLab(paths, {
  config,
  open: () => openReplayDatabase(undefined, { cacheDir }),
  jobs: availableParallelism(),
  worker: labWorker(),
  onProgress: (line) => console.error(line),
  signal: stop.signal,
});
for (const { path, error } of [...unread, ...run.failures]) console.error(`${path}: ${error.message}`);
const out = values.out ?? join('reports', `${new Date().toISOString().slice(0, 10)}-laboratory`);
for (const path of await writeLab(out, run)) console.log(path);
process.exitCode = unread.length + run.failures.length > 0 ? 1 : 0;

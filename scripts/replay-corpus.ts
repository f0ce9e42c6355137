/**
 * Imports and replays every recording below PALIMPSEST_CORPUS and writes a summary: `npm run
 * replay:corpus [-- --config FILE] [--out FOLDER]`.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { replayCorpus } from '../src/lab/experiments/replay-corpus.js';
import { describeRun } from './describe-run.js';

const { values } = parseArgs({
  options: {
    config: { type: 'string', default: 'scripts/replay-corpus.json' },
    out: { type: 'string', default: 'reports' },
  },
});
const run = { ...describeRun('npm run replay:corpus', process.argv.slice(2)), out: values.out };
const { failed, path } = await replayCorpus(run, JSON.parse(readFileSync(values.config, 'utf8')));
console.log(path);
process.exitCode = failed > 0 ? 1 : 0;

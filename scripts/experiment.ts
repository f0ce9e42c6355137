/**
 * Runs an experiment over the recordings below PALIMPSEST_CORPUS: `npm run experiment --
 * scripts/experiments/window.json [--out FOLDER] [--reports]`.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { parseExperiment } from '../src/lab/experiments/experiment.js';
import { runExperiment } from '../src/lab/experiments/run-experiment.js';
import { describeRun } from './describe-run.js';

const { values, positionals } = parseArgs({
  options: { out: { type: 'string', default: 'reports' }, reports: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const [file = 'scripts/experiments/window.json'] = positionals;
const experiment = parseExperiment(JSON.parse(readFileSync(file, 'utf8')), file);
const run = describeRun('npm run experiment', process.argv.slice(2));
const { folder, failed } = await runExperiment({ ...run, experiment, out: values.out, reports: values.reports });
console.log(folder);
process.exitCode = failed > 0 ? 1 : 0;

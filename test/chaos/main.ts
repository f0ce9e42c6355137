import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { runChaos } from './run-chaos.js';
import { runTakeOvers } from './run-take-overs.js';

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '320' },
    seed: { type: 'string' },
    'take-overs': { type: 'boolean', default: false },
  },
});
const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed);
console.error(`chaos: seed ${seed}, ${values.kills} kills`);
const folder = dirname(fileURLToPath(import.meta.url));
const script = `${folder}/workload.js`;
const onProgress = (line: string): void => console.error(`chaos: ${(performance.now() / 1000).toFixed(1)} s: ${line}`);

async function takeOvers(): Promise<void> {
  const scripts = {
    workload: script,
    deliverer: `${folder}/deliverer.js`,
    cli: join(folder, '..', '..', '..', 'dist', 'cli.js'),
  };
  const report = await runTakeOvers({ scripts, seed, kills: Number(values.kills), onProgress });
  console.log(JSON.stringify(report, null, 2));
  process.exit(report.problems.length === 0 ? 0 : 1);
}

if (values['take-overs']) await takeOvers();
const report = await runChaos({
  script,
  seed,
  kills: Number(values.kills),
  onProgress,
});
const { resumeMs, ...rest } = report;
const sorted = [...resumeMs].sort((a, b) => a - b);
const quantile = (q: number): number | undefined => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
console.log(
  JSON.stringify({ ...rest, resumeMs: { median: quantile(0.5), p95: quantile(0.95), max: sorted.at(-1) } }, null, 2),
);
process.exitCode = report.problems.length === 0 ? 0 : 1;

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import * as z from 'zod';
import { median } from '../quantile.js';
import type { CaseResult } from '../results.js';
import { benchFolder, type Workshop } from '../workshop.js';

const ROUNDS = 3;
const run = promisify(execFile);
const measured = z.object({ ms: z.number(), attached: z.number(), rss: z.number(), heap: z.number() });
const MIB = 1_048_576;

/**
 * Measures the cost of watching files [§5.8], each time in a new process. Up to 2,000 files are
 * watched with chokidar, more without it.
 */
export async function measureWatching(workshop: Workshop): Promise<CaseResult> {
  const rows: { readonly name: string; readonly value: number; readonly unit: string }[] = [];
  const goals: CaseResult['goals'][number][] = [];
  for (const count of workshop.sizes.watched) {
    workshop.tell(`watching ${count} files`);
    const found: z.infer<typeof measured>[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const script = join(benchFolder, 'dist', 'watching-process.js');
      const { stdout } = await run(process.execPath, [
        '--expose-gc',
        script,
        `${workshop.files}/watched-${count}`,
        String(count),
      ]);
      found.push(measured.parse(JSON.parse(stdout)));
    }
    const fewest = Math.min(...found.map(({ attached }) => attached));
    if (fewest < count) throw new Error(`only ${fewest} of ${count} files were attached`);
    const rss = median(found.map((one) => one.rss)) / MIB;
    rows.push(
      { name: `${count} files: resident memory on top`, value: rss, unit: 'MiB' },
      { name: `${count} files: of it heap`, value: median(found.map((one) => one.heap)) / MIB, unit: 'MiB' },
      { name: `${count} files: until all are attached`, value: median(found.map((one) => one.ms)), unit: 'ms' },
    );
    goals.push({ what: `resident memory of watching ${count} files`, measured: rss, bar: 60, unit: 'MiB' });
  }
  return { cases: [{ kind: 'counted', title: 'Watching files, a hundred in a folder', rows }], goals };
}

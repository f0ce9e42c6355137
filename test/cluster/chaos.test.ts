import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { buildPrograms } from '../chaos/build.mjs';
import { ClusterChaos } from './cluster-chaos.js';

/**
 * Number of faults, half of them over each layout. The report names the seed; `SEED` repeats a run:
 * `KILLS=200 SEED=7 npm run test:cluster -- cluster/chaos`
 */
const KILLS = Number(process.env.KILLS ?? 12);
const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
/**
 * In long runs the network is cut for half a minute, after which TCP sometimes gives up. That would
 * take too long in short runs.
 */
const CUT_MS = KILLS >= 100 ? 30_000 : 2_500;
const LAYOUTS = ['postgres', 'kafka'] as const;
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

test.each(LAYOUTS)(
  '%s: kills and network cuts make two nodes and two clients lose, duplicate or reorder nothing',
  async (layout) => {
    const programs = await mkdtemp(join(root, 'node_modules', '.chaos-'));
    const folder = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-cluster-chaos-')));
    const [script = ''] = await buildPrograms(programs, ['workload']);
    const say = (line: string): void =>
      void process.stderr.write(`chaos: ${layout}: ${Math.round(performance.now() / 1_000)} s: ${line}\n`);
    const kills = Math.ceil(KILLS / LAYOUTS.length);
    const from = performance.now();
    const chaos = await ClusterChaos.start({ layout, folder, script, seed: SEED, cutMs: CUT_MS });
    try {
      await chaos.run(kills, say);
      const ended = performance.now();
      const report = await chaos.check();
      say(
        `seed ${SEED}, ${JSON.stringify(report)}, ${Math.round((ended - from) / 1_000)} s of faults, ` +
          `${Math.round((performance.now() - ended) / 1_000)} s of checks`,
      );
      expect({ seed: SEED, problems: report.problems }).toEqual({ seed: SEED, problems: [] });
      expect(report.counts.calls).toBeGreaterThan(kills);
      expect(report.verified.contexts).toBeGreaterThan(0);
    } finally {
      await chaos.close();
      await rm(programs, { recursive: true, force: true });
      await rm(folder, { recursive: true, force: true });
    }
  },
  240_000 + KILLS * 60_000,
);

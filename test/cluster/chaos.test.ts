import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { buildPrograms } from '../chaos/build.mjs';
import { ClusterChaos } from './cluster-chaos.js';

/**
 * Number of kills, half of them over each layout: `KILLS=200 npm run test:cluster -- chaos`. The
 * report names the seed; `SEED` repeats a run.
 */
const KILLS = Number(process.env.KILLS ?? 12);
const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
/**
 * Long runs have cuts of half a minute, after which TCP sometimes gives up. Short runs cannot
 * afford them.
 */
const CUT_MS = KILLS >= 100 ? 30_000 : 2_500;
const LAYOUTS = ['postgres', 'kafka'] as const;
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

test.each(LAYOUTS)(
  '%s: two nodes, two hosts: kills and cuts at any moment lose, double or reorder nothing',
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
      const struck = performance.now();
      const report = await chaos.check();
      say(
        `seed ${SEED}, ${JSON.stringify(report)}, ${Math.round((struck - from) / 1_000)} s of blows, ` +
          `${Math.round((performance.now() - struck) / 1_000)} s of checks`,
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

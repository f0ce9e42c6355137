import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { buildPrograms } from '../chaos/build.mjs';
import { ClusterChaos } from './cluster-chaos.js';

/** `KILLS=200 npm run test:cluster -- chaos` makes so many, half of them over each layout; the run's seed is in its report, `SEED` repeats it. */
const KILLS = Number(process.env.KILLS ?? 12);
const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
/** A long run has cuts of half a minute, after which TCP has given up here and there; a short one cannot afford them. */
const CUT_MS = KILLS >= 100 ? 30_000 : 2_500;
const LAYOUTS = ['postgres', 'kafka'] as const;
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

test.each(LAYOUTS)(
  '%s: two nodes and four sessions of two hosts: nodes, clients and servers killed, at any moment, in mid-submit and in mid-await, the network cut; nothing acknowledged is lost, doubled or reordered, and every context is made again',
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
        `seed ${SEED}, ${JSON.stringify(report)}, ${Math.round((struck - from) / 1_000)} s of blows, ${Math.round((performance.now() - struck) / 1_000)} s of checks`,
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

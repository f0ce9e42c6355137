import { mkdtemp, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { buildPrograms } from '../../chaos/build.mjs';
import { runChaos } from '../../chaos/run-chaos.js';
import { effort } from '../../support/effort.js';

const root = dirname(dirname(dirname(dirname(fileURLToPath(import.meta.url)))));
const KILLS = effort(4, 60);

test('acknowledged calls survive kill -9 of service and node at random points [§3.6, decisions F9, H5]', async () => {
  const folder = await mkdtemp(join(root, 'node_modules', '.chaos-'));
  const seed = Math.floor(Math.random() * 2 ** 31);
  try {
    const [script = ''] = await buildPrograms(folder, ['workload']);
    const { problems, kills, acknowledged, counts } = await runChaos({
      script,
      seed,
      kills: KILLS,
      killsPerPair: 6,
      pauseMs: 20,
    });
    expect({ seed, problems }).toEqual({ seed, problems: [] });
    expect(Object.values(kills).reduce((sum, count) => sum + count, 0)).toBe(KILLS);
    expect(acknowledged.call).toBeGreaterThan((KILLS * 2) / 3);
    expect(counts.calls).toBeGreaterThanOrEqual(acknowledged.call);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

import { mkdtemp, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { buildPrograms } from '../../chaos/build.mjs';
import { runTakeOvers } from '../../chaos/run-take-overs.js';
import { effort } from '../../support/effort.js';

const root = dirname(dirname(dirname(dirname(fileURLToPath(import.meta.url)))));
const KILLS = effort(4, 40);

test('every acknowledged call is stored once, in order, after takeovers from killed writers [F5, F6]', async () => {
  const folder = await mkdtemp(join(root, 'node_modules', '.chaos-'));
  const seed = Math.floor(Math.random() * 2 ** 31);
  try {
    const [workload = '', deliverer = ''] = await buildPrograms(folder, ['workload', 'deliverer']);
    const scripts = { workload, deliverer, cli: join(root, 'dist', 'cli.js') };
    const { problems, kills, acknowledged, stored } = await runTakeOvers({ scripts, seed, kills: KILLS });
    expect({ seed, problems }).toEqual({ seed, problems: [] });
    expect(kills).toBeGreaterThanOrEqual(KILLS);
    expect(acknowledged.calls).toBeGreaterThan(KILLS / 2);
    expect(stored.calls).toBeGreaterThanOrEqual(acknowledged.calls);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import type { Move } from './loop-model.js';
import { linesOf } from './loop-project.js';
import { loopSetting } from './loop-setting.js';
import { DIALECTS, type Harness, startLoopedAgent } from './looped-agent.js';
import { type ThinkingTotals, ThinkingWire, totalsOf } from './thinking-wire.js';

/** Number of reads in one request. It has as many commands. */
const READS = 14;
/**
 * Number of thinking blocks returned in one request: each call returns those of all earlier calls.
 */
const RETURNED = (2 * READS * (2 * READS + 1)) / 2;

/**
 * Lets a harness make one request of 29 model calls. The provider only counts the thinking that it
 * would refuse.
 */
async function measured(harness: Harness, layout: string | undefined): Promise<ThinkingTotals> {
  const wire = new ThinkingWire({ accepts: true });
  const project = async (root: string): Promise<void> => {
    await mkdir(join(root, 'src'));
    for (let i = 0; i < READS; i++) await writeFile(join(root, 'src', `f${i}.txt`), linesOf(`file ${i}`));
  };
  const alone = layout === undefined;
  const setting = await loopSetting({ wire, project, hasNode: !alone });
  try {
    const { root, model } = setting;
    const { read, shell } = DIALECTS[harness];
    model.add(
      Array.from({ length: READS }, (_, i): readonly Move[] => [
        { tools: [read(join(root, 'src', `f${i}.txt`))] },
        { tools: [shell(`seq ${i * 100} ${i * 100 + 99}`)] },
      ]).flat(),
    );
    model.add([{ say: 'All is read.' }]);
    const env = { PALIMPSEST_LOOP_LAYOUT: layout ?? '' };
    const agent = await startLoopedAgent(harness, { ...setting.where, env, alone });
    setting.atEnd(() => agent.kill());
    await agent.prompt('read all of it');
    await agent.end();
    expect(model.left).toBe(0);
    return totalsOf(wire.seen);
  } finally {
    await setting.close();
  }
}

const rowOf = (name: string, totals: ThinkingTotals, alone: ThinkingTotals): string =>
  [
    name,
    totals.calls,
    `${totals.valid} of ${totals.returned}`,
    `${(100 * totals.same).toFixed(1)} %`,
    `${(totals.chars / alone.chars).toFixed(2)}x`,
    `${(totals.cost / alone.cost).toFixed(2)}x`,
  ].join(' | ');

describe('one request of 29 model calls with a provider that binds thinking to its prefix', () => {
  test.each(['pi', 'opencode'] as const)('keeps as much thinking valid as each layout allows: %s', async (harness) => {
    const alone = await measured(harness, undefined);
    expect([alone.returned, alone.valid]).toEqual([RETURNED, RETURNED]);
    const rows = [rowOf(`${harness} alone`, alone, alone)];
    // Rendering the context anew loses all thinking.
    for (const [layout, valid] of Object.entries({ ssot: 0, 'pool-last': 0, epoch: RETURNED })) {
      const totals = await measured(harness, layout);
      expect([totals.returned, totals.valid]).toEqual([RETURNED, valid]);
      rows.push(rowOf(`${harness}, layout ${layout}`, totals, alone));
    }
    const path = process.env.PALIMPSEST_LOOP_REPORT;
    if (path !== undefined) await writeFile(path, rows.map((row) => `| ${row} |\n`).join(''), { flag: 'a' });
  });
});

import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { cliPath, temporaryRoot } from '../support/mcp-clients.js';
import { type Move, startLoopModel } from './loop-model.js';
import { linesOf, startNode, stopUnusedNode } from './loop-project.js';
import { OpencodeServer } from './opencode-server.js';
import { PiProcess } from './pi-process.js';
import { type ThinkingTotals, ThinkingWire, totalsOf } from './thinking-wire.js';

type Harness = 'pi' | 'opencode';
/** Reads of one request, and as many commands. */
const READS = 14;
/** One request: the thinking of all calls before is returned with each. */
const RETURNED = (2 * READS * (2 * READS + 1)) / 2;

/**
 * Lets a harness make one request of 29 model calls. The provider only counts the thinking that it
 * would refuse.
 */
async function measured(harness: Harness, layout: string | undefined): Promise<ThinkingTotals> {
  const places = await Promise.all([temporaryRoot(), temporaryRoot(), temporaryRoot()]);
  const [root, home, dataDir] = places.map((place) => place.root) as [string, string, string];
  const wire = new ThinkingWire({ accepts: true });
  const model = await startLoopModel(0, wire);
  try {
    await mkdir(join(root, 'src'));
    for (let i = 0; i < READS; i++) await writeFile(join(root, 'src', `f${i}.txt`), linesOf(`file ${i}`));
    if (layout !== undefined) await startNode(dataDir);
    const common = { home, cwd: root, dataDir, model, env: { PALIMPSEST_LOOP_LAYOUT: layout ?? '' } };
    const built = (name: string): string | undefined =>
      layout === undefined ? undefined : join(dirname(cliPath), name);
    model.add(
      Array.from({ length: READS }, (_, i): readonly Move[] => {
        const path = join(root, 'src', `f${i}.txt`);
        const described = harness === 'pi' ? {} : { description: 'counts' };
        return [
          { tools: [{ name: 'read', args: harness === 'pi' ? { path } : { filePath: path } }] },
          { tools: [{ name: 'bash', args: { command: `seq ${i * 100} ${i * 100 + 99}`, ...described } }] },
        ];
      }).flat(),
    );
    model.add([{ say: 'All is read.' }]);
    if (harness === 'pi') {
      const pi = await PiProcess.start({ ...common, extension: built('pi.js') });
      await pi.prompt('read all of it');
      await pi.end();
    } else {
      const server = await OpencodeServer.start({ ...common, plugin: built('opencode.js') });
      await server.prompt(await server.newSession(), 'read all of it');
      await server.end();
    }
    expect(model.left).toBe(0);
    return totalsOf(wire.seen);
  } finally {
    if (layout !== undefined) await stopUnusedNode(dataDir);
    await model.close();
    await Promise.all(places.map(({ remove }) => remove()));
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
  test.each(['pi', 'opencode'] as const)('%s', async (harness) => {
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

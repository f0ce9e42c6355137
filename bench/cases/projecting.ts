import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exportBundle } from '../../src/contracts/agent-context/export-bundle.js';
import { exportSession } from '../../src/contracts/cortexfs/export-session.js';
import { budgetedView } from '../../src/contracts/projection/budgeted-view.js';
import { HOUSE_COUNTER, ProjectionReader } from '../../src/contracts/projection/read-projection.js';
import { type ContextClient, type SessionId, Timeline } from '../../src/index.js';
import { type Contender, interleave } from '../interleave.js';
import type { CaseResult } from '../results.js';
import type { Workshop } from '../workshop.js';

/** The sample of a view that continues from the previous one. */
export const UNCHANGED_VIEW = 'view, nothing changed';

/** The samples that write a whole session in another program's files. */
export const EXPORTS = { cortexfs: 'session directory of CortexFS', agentContext: 'bundle of Agent Context' } as const;

/** Limit of the view as a share of the session. It is so small that turns must be dropped. */
const SHARE = 0.2;

/** Writes a session into a new folder each time. Removing the folder is not timed. */
function writing(name: string, write: (folder: string) => Promise<unknown>): Contender {
  let folder = '';
  return {
    name,
    prepare: async () => {
      folder = await mkdtemp(join(tmpdir(), 'palimpsest-bench-'));
      return async () => {
        await write(join(folder, 'out'));
        return {};
      };
    },
    settle: () => rm(folder, { recursive: true }),
  };
}

/**
 * Measures the contracts of other programs on a long session: its entries, a view within a limit,
 * and the whole session in their files.
 */
export async function measureProjecting(
  workshop: Workshop,
  client: ContextClient,
  session: SessionId,
): Promise<Extract<CaseResult['cases'][number], { readonly kind: 'timed' }>> {
  const { turns, rounds } = workshop.sizes.history;
  workshop.tell('projections and views');
  const timeline = await Timeline.open(await client.delivered());
  const reader = new ProjectionReader();
  const projection = await reader.read(timeline, session);
  const whole = budgetedView(projection, { tokens: Number.MAX_SAFE_INTEGER });
  const budget = { tokens: Math.ceil(whole.tokens * SHARE) };
  const { state } = budgetedView(projection, budget);
  const samples = await interleave(
    [
      {
        name: 'entries, nothing known but counts',
        prepare: async () => async () => ({
          bytes: (await new ProjectionReader(HOUSE_COUNTER).read(timeline, session)).entries.length,
        }),
      },
      {
        name: 'entries, read again',
        prepare: async () => async () => ({ bytes: (await reader.read(timeline, session)).entries.length }),
      },
      {
        name: 'view that gets smaller',
        prepare: async () => async () => ({ bytes: budgetedView(projection, budget).items.length }),
      },
      {
        name: UNCHANGED_VIEW,
        prepare: async () => async () => ({ bytes: budgetedView(projection, budget, state).items.length }),
      },
      writing(EXPORTS.cortexfs, async (folder) =>
        exportSession(await Timeline.open(await client.delivered()), folder, { session }),
      ),
      writing(EXPORTS.agentContext, async (folder) =>
        exportBundle({ timeline: await Timeline.open(await client.delivered()), session, when: {} }, folder),
      ),
    ],
    { warmUp: 1, measured: Math.min(rounds, 20), limitMs: workshop.sizes.limitMs },
  );
  return { kind: 'timed', title: `Projection and views of a session of ${turns} turns`, samples, yardsticks: [] };
}

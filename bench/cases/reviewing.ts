import { askDiff, askTurns, askWho, type ContextClient, type SessionId, Timeline } from '../../src/index.js';
import { interleave } from '../interleave.js';
import type { CaseResult } from '../results.js';
import type { Workshop } from '../workshop.js';

/** What reviewers ask of a long session, each time with nothing known but the present. */
export async function measureReviewing(
  workshop: Workshop,
  reader: ContextClient,
  session: SessionId,
): Promise<CaseResult['cases'][number]> {
  const { turns, rounds } = workshop.sizes.history;
  workshop.tell('questions of reviewers');
  const open = async () => Timeline.open(await reader.delivered());
  const [newest] = (await askTurns(await open(), { session })).turns;
  const [object = ''] = newest?.changes.index ?? [];
  const samples = await interleave(
    [
      { name: 'log, all turns', prepare: async () => async () => ({ bytes: (await askTurns(await open(), { session })).turns.length }) },
      {
        name: 'log, newest 20 turns',
        prepare: async () => async () => ({ bytes: (await askTurns(await open(), { session, limit: 20 })).turns.length }),
      },
      {
        name: 'who saw an object',
        prepare: async () => async () => ({ bytes: (await askWho(await open(), { object })).sightings.length }),
      },
      {
        name: 'diff of a session between two turns',
        prepare: async (round) => async () => {
          const turn = 1 + ((round * 37) % (turns - 1));
          await askDiff(await open(), { name: session, range: `turn:${turn}..turn:${turn + 1}` });
          return {};
        },
      },
    ],
    { warmUp: 1, measured: Math.min(rounds, 20), limitMs: workshop.sizes.limitMs },
  );
  return { kind: 'timed', title: `Questions about a session of ${turns} turns`, samples, yardsticks: [] };
}

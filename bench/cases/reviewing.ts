import { askDiff, askQuery, askTurns, askWho, type ContextClient, type SessionId, Timeline } from '../../src/index.js';
import { interleave } from '../interleave.js';
import type { CaseResult } from '../results.js';
import type { Workshop } from '../workshop.js';

/**
 * Measures reviewers' questions about a long session. Each starts with a cache that has only the
 * current state.
 */
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
      {
        name: 'log, all turns',
        prepare: async () => async () => ({ bytes: (await askTurns(await open(), { session })).turns.length }),
      },
      {
        name: 'log, newest 20 turns',
        prepare: async () => async () => ({
          bytes: (await askTurns(await open(), { session, limit: 20 })).turns.length,
        }),
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
      ...(['session_index', 'active_set', 'metadata_hash'] as const).map((attribute) => ({
        name: `a query for :${attribute} of the session`,
        prepare: async () => async () => {
          const query = `[:find ?s ?v :in ?id :where [?s :session_id ?id] [?s :${attribute} ?v]]`;
          const { answer } = await askQuery(await open(), query, { args: `["${session}"]` });
          return { bytes: answer.rows.length };
        },
      })),
      {
        name: 'a query for the calls of the session by its chat',
        prepare: async () => async () => {
          const query = '[:find ?c ?tool :in ?chat :where [?chat :toolcall_refs ?c] [?c :tool ?tool]]';
          const { answer } = await askQuery(await open(), query, { args: `["chat:${session}"]` });
          return { bytes: answer.rows.length };
        },
      },
      {
        name: 'a query for the active sets of all sessions',
        prepare: async () => async () => {
          const { answer } = await askQuery(await open(), '[:find ?s ?v :where [?s :active_set ?v]]', {});
          return { bytes: answer.rows.length };
        },
      },
    ],
    { warmUp: 1, measured: Math.min(rounds, 20), limitMs: workshop.sizes.limitMs },
  );
  return { kind: 'timed', title: `Questions about a session of ${turns} turns`, samples, yardsticks: [] };
}

import { expect, test } from '@jest/globals';
import { NO_MASK } from '../../../src/client/record-mask.js';
import type { RecordedEntry } from '../../../src/lab/recordings/neutral-session.js';
import { allTokens, ownSpent, spentBy, spentWithSubAgents } from '../../../src/own-sessions/counted-tokens.js';
import { FactsCollector } from '../../../src/own-sessions/session-facts.js';

const MODEL = 'claude-sonnet-4-5';
const begins = (id: string, parent?: string): RecordedEntry => ({
  kind: 'session',
  format: 'claude-code',
  native_id: id,
  place: '',
  model: MODEL,
  ...(parent === undefined ? {} : { parent: { native_id: parent, relation: 'subagent' as const } }),
});
const answers = (session: string, input: number): RecordedEntry => ({
  kind: 'message',
  session,
  place: '',
  role: 'assistant',
  origin: 'model',
  text: 'done',
  usage: { input, output: 0 },
});

function factsOf(...entries: readonly RecordedEntry[]) {
  const collector = new FactsCollector(NO_MASK);
  for (const entry of entries) collector.take(entry);
  const facts = collector.finish({});
  if (facts === undefined) throw new Error('no session');
  return facts;
}

test('a session has its own tokens and cost, and those with its sub-agents, from any recording', () => {
  const main = factsOf(begins('a'), answers('a', 2_000_000), begins('a-1', 'a'), answers('a-1', 1_000_000));
  const other = factsOf(begins('b', 'a'), answers('b', 4_000_000), begins('b-1', 'b'), answers('b-1', 1_000_000));
  const alone = factsOf(begins('c'), answers('c', 1_000_000));
  expect([allTokens(ownSpent(main)), ownSpent(main).dollars]).toEqual([2_000_000, 6]);
  expect([allTokens(spentBy(main)), spentBy(main).dollars]).toEqual([3_000_000, 9]);
  expect(spentWithSubAgents(main, [main, alone])).toMatchObject({ sessions: 1, spent: { calls: 2, dollars: 9 } });
  expect(spentWithSubAgents(main, [main, other, alone])).toMatchObject({
    sessions: 3,
    spent: { calls: 4, fresh: 8_000_000, dollars: 24 },
  });
  expect(spentWithSubAgents(alone, [main, other, alone])).toBeUndefined();
});

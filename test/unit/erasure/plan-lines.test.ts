import { describe, expect, test } from '@jest/globals';
import type { ErasurePlan } from '../../../src/erasure/plan.js';
import { planJson, planLines } from '../../../src/erasure/plan-lines.js';
import { sessionId } from '../../../src/objects/ids.js';

const plan: ErasurePlan = {
  selection: { kind: 'session', session: 'fix-cart' },
  txId: 7,
  evict: ['step:fix-cart:1~'],
  bytes: 1_200,
  buried: [],
  sessions: [sessionId('fix-cart')],
  unproved: [],
  marked: [],
  kept: [],
  texts: [],
};
const notesWith = (profile: 'postgres' | 'kafka' | undefined): string =>
  planLines(plan, { copies: [], profile })
    .filter((line) => line.startsWith('note '))
    .join('\n');

describe('the plan of an erasure', () => {
  test('names what PostgreSQL keeps longer, each with its deadline', () => {
    const notes = notesWith('postgres');
    for (const said of [
      /removed rows of tx_events until VACUUM has run/,
      /VACUUM FULL tx_events removes them at once/,
      /write-ahead log until later checkpoints \(checkpoint_timeout, 5 minutes by default\)/,
      /pg_dump files of PostgreSQL keep the data until/,
      /Other hosts .* palimpsest erase --sweep/,
    ])
      expect(notes).toMatch(said);
    expect(notes).not.toMatch(/Kafka/);
  });

  test('also names the topic of Kafka, which keeps no content', () => {
    expect(notesWith('kafka')).toMatch(/Kafka keeps ids as SHA-1 hashes and no content. Its retention is unlimited/);
    expect(notesWith('kafka')).toContain(notesWith('postgres').split('\n')[0]);
    expect(planJson(plan, { copies: [], profile: 'kafka' })).toMatchObject({
      notes: expect.arrayContaining([expect.stringMatching(/^The topic of Kafka/)]),
    });
  });

  test('says what to do next: apply the plan, or that a shared log does not allow it', () => {
    const last = (...given: Parameters<typeof planLines>): string | undefined => planLines(...given).at(-1);
    expect(notesWith(undefined)).toBe('');
    expect(last(plan, { copies: [], profile: undefined })).toMatch(/--apply --reason TEXT/);
    expect(last(plan, { copies: [], profile: 'postgres' })).toMatch(/--apply is refused/);
    expect(last({ ...plan, evict: [] }, { copies: [], profile: 'kafka' })).toBe('There is nothing to erase.');
  });
});

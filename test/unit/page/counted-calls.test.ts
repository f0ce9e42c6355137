import { describe, expect, test } from '@jest/globals';
import type { Step } from '../../../src/objects/step.js';
import {
  type CountedCall,
  comparedCalls,
  fallSentence,
  lossSentence,
  uncountedSentence,
} from '../../../src/page/server/counted-calls.js';
import type { PrefixDiff } from '../../../src/review/ask/prefix-diff.js';

const MINUTE = 60_000;
const stepAt = (seq: number, at: number, more: Partial<Step> = {}): Step =>
  ({ session: 's', seq, turn: 1, at, ...more }) as unknown as Step;
const call: CountedCall = {
  number: 1,
  step: 2,
  turn: 7,
  at: MINUTE,
  usage: { input: 20_000, cacheRead: 500 },
  request: 1,
  before: 1,
  isSent: true,
  fresh: 700,
  again: 19_243,
  fewer: 0,
  lifetimeMs: 5 * MINUTE,
};
const diff = (again: number, more: Partial<PrefixDiff> = {}): PrefixDiff =>
  ({
    isPrefix: false,
    again,
    written: 0,
    cause: { why: 'src/cart.ts changed' },
    to: { turn: 7 },
    ...more,
  }) as PrefixDiff;
const steps = [stepAt(1, 0), stepAt(2, MINUTE)];
const why = (own: CountedCall, all: readonly Step[], compared?: PrefixDiff): string =>
  lossSentence(own, all, compared).sentence;

describe('the sentence of a lost cache', () => {
  test('gives the provider’s number, and names the change of the request if that explains it', () => {
    expect(why(call, steps, diff(18_000))).toBe(
      '19,243 tokens were written again in turn 7 because src/cart.ts changed.',
    );
    expect(why(call, steps, diff(300))).toBe(
      "19,243 tokens were written again in turn 7 because the provider's cache no longer had them; the " +
        'change of the request explains 300 of them.',
    );
    expect(why(call, steps, diff(0, { isPrefix: true }))).toMatch(/cache no longer had them\.$/);
  });

  test('names a pause, a compaction and what the provider said, rather than a small change', () => {
    const paused = { ...call, at: 66 * MINUTE };
    expect(why(paused, steps, diff(300))).toMatch(/because the agent paused for 66 minutes/);
    const overnight = { ...call, at: 361 * MINUTE };
    expect(why(overnight, steps, diff(300))).toMatch(/because the agent paused for 6 hours/);
    const event = { kind: 'compacted' } as NonNullable<Step['event']>;
    expect(why(paused, [stepAt(1, 0), stepAt(2, MINUTE, { event })], diff(18_000))).toMatch(/the harness compacted/);
    const missed = { ...call, usage: { ...call.usage, cacheMiss: { reason: 'tools changed' } } } as CountedCall;
    expect(why(missed, steps)).toMatch(/because the provider says tools changed\.$/);
  });

  test('names a pause only if it was longer than the lifetime of the writes before it', () => {
    const writes = (cacheWriteHour: number, minutes: number) =>
      comparedCalls(
        [
          { cacheWrite: 50_000, cacheWriteHour },
          { cacheRead: 50_000 },
          { cacheRead: 2_000, cacheWrite: 48_000, cacheWriteHour },
        ].map((usage, i) => ({ ...call, step: i + 1, at: i === 2 ? minutes * MINUTE : 0, usage, isSent: false })),
      ).at(-1) as CountedCall;
    const sentence = (cacheWriteHour: number, minutes: number): string =>
      why(writes(cacheWriteHour, minutes), [stepAt(1, 0), stepAt(2, 0), stepAt(3, minutes * MINUTE)]);
    expect(sentence(0, 12)).toMatch(/because the agent paused for 12 minutes/);
    expect(sentence(20_000, 12)).toMatch(/because the agent paused for 12 minutes/);
    expect(sentence(50_000, 12)).toMatch(/Nothing recorded shows why\.$/);
    expect(sentence(50_000, 61)).toMatch(/because the agent paused for 61 minutes/);
  });

  test('names no pause if the provider still read most of the prefix from its cache', () => {
    const kept = { ...call, at: 66 * MINUTE, usage: { input: 20_000, cacheRead: 82_048 }, isSent: false };
    expect(why(kept, steps)).toMatch(/Nothing recorded shows why\.$/);
  });

  test('says up to which turn the provider kept its cache', () => {
    // The counts of a recorded session: calls 20, 105 and 106.
    const counts = (cacheRead: number) =>
      [
        { step: 1, turn: 11, usage: { input: 258, cacheRead: 81_920 } },
        { step: 2, turn: 11, usage: { input: 99, cacheRead: 150_016 } },
        { step: 3, turn: 12, usage: { input: 145_617 - cacheRead, cacheRead } },
      ].map((one, i) => ({ ...call, ...one, at: i === 2 ? 8 * MINUTE : 0, isSent: false }));
    const last = (cacheRead: number) => comparedCalls(counts(cacheRead)).at(-1) as CountedCall;
    const all = [stepAt(1, 0), stepAt(2, 0), stepAt(3, 8 * MINUTE)];
    expect(why(last(82_048), all)).toBe(
      "63,569 tokens were written again in turn 12. The provider's cache was kept up to the beginning of turn 11; " +
        'what changed behind it is not recorded. Leaving out the reasoning of a finished turn has this effect.',
    );
    expect(why(last(81_000), all)).toMatch(/Nothing recorded shows why\.$/);
    expect(why(last(82_304), all)).toMatch(/Nothing recorded shows why\.$/);
    expect(why(last(9_600), all)).toMatch(/because the agent paused for 8 minutes/);
    // A cache that was still read up to a turn did not expire during the pause.
    const early = comparedCalls(
      [12_000, 90_000, 95_000].map((prompt, i) => ({
        ...call,
        step: i + 1,
        turn: i + 1,
        at: i === 2 ? 66 * MINUTE : 0,
        usage: i === 2 ? { input: prompt - 11_904, cacheRead: 11_904 } : { input: prompt },
        isSent: false,
      })),
    ).at(-1) as CountedCall;
    expect(why(early, [stepAt(1, 0), stepAt(2, 0), stepAt(3, 66 * MINUTE)])).toBe(
      "78,096 tokens were written again in turn 3. The provider's cache was kept up to the beginning of turn 1; " +
        'what changed behind it is not recorded.',
    );
  });

  test('leaves out the summary of a compaction, which is new text', () => {
    const usages = [
      { input: 1_658, cacheRead: 163_086 },
      { input: 17_383, cacheRead: 19_287 },
    ].map((usage, i) => ({ ...call, step: 2 * i + 1, usage, isSent: false }));
    const behind = (tokens: number) => comparedCalls(usages, [{ step: 2, tokens }]).at(-1);
    expect(behind(4_611)).toMatchObject({ again: 12_772, fresh: 4_611 });
    expect(behind(17_000)).toMatchObject({ again: 0, fresh: 17_383 });
    // A summary before both calls was in both requests.
    expect(comparedCalls(usages, [{ step: 1, tokens: 4_611 }]).at(-1)).toMatchObject({ again: 17_383 });
  });

  test('names a change of the model before a pause', () => {
    const usage = { ...call.usage, model: 'claude-sonnet-4-5' };
    const other = { ...call, at: 66 * MINUTE, usage, modelBefore: 'claude-opus-4-5' };
    expect(why(other, steps)).toBe(
      '19,243 tokens were written again in turn 7 because the model changed from claude-opus-4-5 to claude-sonnet-4-5.',
    );
    const models = ['a', 'a', 'b', undefined].map((model, i) => ({
      ...call,
      step: i + 1,
      usage: { input: 20_000, ...(model === undefined ? {} : { model }) },
    }));
    expect(comparedCalls(models).map(({ modelBefore }) => modelBefore)).toEqual([undefined, undefined, 'a', undefined]);
  });

  test('claims no cause for a request that only a transcript shows', () => {
    const replayed = { ...call, isSent: false };
    expect(why(replayed, steps, diff(18_000))).toBe(
      '19,243 tokens were written again in turn 7. Nothing recorded shows why.',
    );
  });

  test('says that nothing was lost', () => {
    expect(why({ ...call, again: 0 }, steps, diff(18_000))).toBe(
      "Nothing was written again in turn 7: 500 tokens came from the provider's cache, and 700 were new.",
    );
  });
});

test('claims nothing about the cache of a transcript call that the provider did not count', () => {
  expect(uncountedSentence({ kind: 'transcript' })).toMatch(/^The provider's count of this call is not recorded/);
  expect(uncountedSentence({ kind: 'transcript', usage: { input: 1 } })).toBeUndefined();
  expect(uncountedSentence({ kind: 'sent' })).toBeUndefined();
});

describe('a fall of the provider’s count', () => {
  const fallen = { ...call, isSent: false, fewer: 35_204 };

  test('is reported, with the note that the transcript lacks its cause', () => {
    expect(fallSentence(fallen, steps)).toBe(
      'The provider counted 35,204 tokens fewer than at the previous call; which text left is not recorded.',
    );
    expect(fallSentence({ ...fallen, fewer: 0 }, steps)).toBeUndefined();
  });

  test('is not reported if the request or a compaction shows what was dropped', () => {
    expect(fallSentence({ ...fallen, isSent: true }, steps)).toBeUndefined();
    const event = { kind: 'compacted' } as NonNullable<Step['event']>;
    expect(fallSentence(fallen, [stepAt(1, 0), stepAt(2, MINUTE, { event })])).toBeUndefined();
  });

  test('is the difference of two prompts, and ignores small differences and failed calls', () => {
    const prompts = [135_152, 0, 99_948, 99_900].map((input, i) => ({
      ...call,
      number: i + 1,
      step: i + 1,
      usage: { input },
    }));
    expect(comparedCalls(prompts).map(({ fewer }) => fewer)).toEqual([0, 0, 35_204, 0]);
  });
});

test('a call after one that failed is compared with the last one that had a prompt', () => {
  const counts = [
    { input: 50_000 },
    { input: 0, output: 0 },
    { input: 52_000 },
    { input: 1_000, cacheRead: 52_000 },
  ].map((usage, i) => ({ number: i + 1, step: i + 1, turn: 1, at: MINUTE * i, request: i + 1, isSent: true, usage }));
  expect(comparedCalls(counts).map(({ before, fresh, again }) => [before, fresh, again])).toEqual([
    [0, 50_000, 0],
    [1, 0, 0],
    [1, 2_000, 50_000],
    [3, 1_000, 0],
  ]);
});

import { describe, expect, test } from '@jest/globals';
import { cellsOf } from '../../../src/cli/fitted-table.js';
import { coloursFor } from '../../../src/cli/output.js';
import { NO_MASK } from '../../../src/client/record-mask.js';
import type { RecordedEntry } from '../../../src/lab/recordings/neutral-session.js';
import { agentHomes } from '../../../src/own-sessions/agent-homes.js';
import { policyLines } from '../../../src/own-sessions/compare-policies.js';
import { nothingUsed } from '../../../src/own-sessions/context-use.js';
import { costsLines, limitsOf } from '../../../src/own-sessions/costs-lines.js';
import type { FoundSession } from '../../../src/own-sessions/find-sessions.js';
import { CACHE_LOSSES, FactsCollector } from '../../../src/own-sessions/session-facts.js';
import { sumCosts } from '../../../src/own-sessions/sum-costs.js';
import { costOf } from '../../../src/review/money/call-cost.js';
import { dollarsOf } from '../../../src/review/money/dollar-prices.js';

const [home] = agentHomes({ env: {}, home: '/h', platform: 'linux' });
if (home === undefined) throw new Error('no agent');
const MINUTE = 60_000;
const START = new Date(2026, 10, 20, 9).getTime();

/** Writes the entries of a session, one model call after the other. */
class Session {
  readonly #collector = new FactsCollector(NO_MASK);
  readonly #id: string;
  #at = START;
  #places = 0;

  constructor(id: string, model = 'claude-opus-4-6') {
    this.#id = id;
    this.#collector.take({ kind: 'session', format: 'claude-code', native_id: id, place: '', model, cwd: `/p/${id}` });
  }

  #take(entry: Omit<Extract<RecordedEntry, { kind: 'message' }>, 'session' | 'place' | 'at'>): this {
    this.#places += 1;
    this.#collector.take({ ...entry, session: this.#id, place: `${this.#places}`, at: this.#at });
    return this;
  }

  asks(afterMinutes = 1): this {
    this.#at += afterMinutes * MINUTE;
    return this.#take({ kind: 'message', role: 'user', origin: 'person', text: 'more' });
  }

  /** A call with these prompt tokens: `read` ones came from the cache, the others went into it. */
  answers(
    prompt: number,
    read: number,
    more: { readonly copied?: boolean; readonly cost?: number; readonly hour?: number } = {},
  ): this {
    const { copied, cost, hour } = more;
    const counts = { input: 0, output: 100, cache_read: read, cache_write: prompt - read };
    const usage = hour === undefined ? counts : { ...counts, cache_write_hour: hour };
    return this.#take({
      kind: 'message',
      role: 'assistant',
      origin: 'model',
      text: '',
      usage: cost === undefined ? usage : { ...usage, cost },
      ...(copied === undefined ? {} : { copied }),
    });
  }

  answersUncounted(): this {
    return this.#take({ kind: 'message', role: 'assistant', origin: 'model', text: '' });
  }

  /** A tool call with its result. */
  calls(): this {
    const common = { session: this.#id, place: '', at: this.#at, call_id: `t${this.#places}` };
    this.#collector.take({ kind: 'call', ...common, tool: 'Read', args: {} });
    this.#collector.take({ kind: 'result', ...common, text: 'text', is_error: false });
    return this;
  }

  event(name: string, text?: string): this {
    this.#collector.take({ kind: 'event', session: this.#id, place: '', at: this.#at, name, text });
    return this;
  }

  compacts(): this {
    this.#collector.take({ kind: 'compaction', session: this.#id, place: '', at: this.#at });
    return this;
  }

  get found(): FoundSession {
    const facts = this.#collector.finish({});
    if (facts === undefined || home === undefined) throw new Error('no session');
    return { agent: 'claude-code', ...facts, file: { home, path: `/${this.#id}`, size: 1, mtime: this.#at } };
  }
}

const reasons = (session: Session): readonly unknown[] =>
  session.found.cacheLosses.map(([, , reason, tokens]) => [CACHE_LOSSES[reason], tokens]);

describe('a lost cache', () => {
  test('is not reported if each request reads from the cache what the previous request had', () => {
    const session = new Session('a')
      .asks()
      .answers(10_000, 0)
      .asks()
      .answers(12_000, 10_000)
      .asks()
      .answers(13_000, 11_500);
    expect(reasons(session)).toEqual([]);
  });

  test.each<[string, (session: Session) => Session]>([
    ['pause', (session) => session.asks(6)],
    ['compaction', (session) => session.compacts().asks()],
    ['rewind', (session) => session.event('rewind').asks()],
    ['model change', (session) => session.event('model-change', 'claude-sonnet-5').asks()],
    ['other', (session) => session.asks()],
  ])('has the reason %s', (reason, between) => {
    const session = between(new Session('a').asks().answers(50_000, 0)).answers(52_000, 1_000);
    expect(reasons(session)).toEqual([[reason, 49_000]]);
  });

  test('of one hour is not lost by a shorter pause', () => {
    const paused = (hour: number, minutes: number) =>
      new Session('a').asks().answers(50_000, 0, { hour }).asks(minutes).answers(52_000, 1_000);
    expect(reasons(paused(50_000, 12))).toEqual([['other', 49_000]]);
    expect(reasons(paused(50_000, 61))).toEqual([['pause', 49_000]]);
    expect(reasons(paused(20_000, 12))).toEqual([['pause', 49_000]]);
  });

  test('has another reason than a pause if most of it was read', () => {
    const session = new Session('a').asks().answers(50_000, 0).asks(12).answers(52_000, 40_000);
    expect(reasons(session)).toEqual([['other', 10_000]]);
  });

  test('costs more if it was written for an hour', () => {
    const hour = { hour: 1_000_000 };
    const { found } = new Session('a').asks().answers(1_000_000, 0, hour).asks().answers(1_000_000, 0, hour);
    const { lost, total } = sumCosts([found], { by: 'day' });
    expect(lost).toMatchObject([{ tokens: 1_000_000, dollars: expect.closeTo(5 * 1.9) }]);
    expect(total.dollars).toBeCloseTo(2 * (10 + (100 * 25) / 1e6));
  });

  test('counts at most the tokens that the new request still has', () => {
    const session = new Session('a').asks().answers(50_000, 0).compacts().asks().answers(8_000, 0);
    expect(reasons(session)).toEqual([['compaction', 8_000]]);
  });

  test('costs the difference between the prices of writing and reading', () => {
    const { found } = new Session('a').asks().answers(1_000_000, 0).asks().answers(1_000_000, 0);
    const { lost } = sumCosts([found], { by: 'day' });
    expect(lost).toMatchObject([{ reason: 'other', calls: 1, tokens: 1_000_000, dollars: expect.closeTo(5 * 1.15) }]);
  });

  test('of a model without a price has an unknown cost instead of zero', () => {
    const { found } = new Session('a', 'a-model').asks().answers(1_000_000, 0).asks().answers(1_000_000, 0);
    const costs = sumCosts([found], { by: 'day' });
    expect(costs.lost).toMatchObject([{ dollars: 0, unpriced: 1 }]);
    const colours = coloursFor({ isTerminal: false, env: {} });
    const lines = costsLines({ costs, use: nothingUsed(), by: 'day', home: '/h' }, { colours, width: undefined });
    expect(lines).toContainEqual(expect.stringMatching(/^Lost cache: 1.00M of .* tokens, cost unknown$/));
  });
});

describe('costs', () => {
  test('say since which day nothing was found', () => {
    const costs = sumCosts([], { by: 'day' });
    const colours = coloursFor({ isTerminal: false, env: {} });
    const since = new Date(2026, 10, 21).getTime();
    const shown = { costs, use: nothingUsed(), by: 'day', since, home: '/h' } as const;
    expect(costsLines(shown, { colours, width: undefined })).toEqual([
      expect.stringMatching(/^No model calls .* were found since 2026-11-21T00:00:00/),
    ]);
  });

  test('are list prices by model: input, cache and output', () => {
    const call = { at: START, fresh: 1e6, cacheRead: 1e6, cacheWrite: 1e6, output: 1e6 };
    expect(dollarsOf('claude-opus-4-6', call)).toBeCloseTo(5 + 0.5 + 6.25 + 25);
    expect(dollarsOf('anthropic/claude-sonnet-4-5-20250929', call)).toBeCloseTo(3 + 0.3 + 3.75 + 15);
    expect(dollarsOf('gpt-5-codex', { ...call, cacheWrite: 0 })).toBeCloseTo(1.25 + 0.125 + 10);
    expect(dollarsOf('a-model', call)).toBeUndefined();
    const hour = { input: 1e6, cacheWrite: 1e6, cacheWriteHour: 4e5 };
    expect(costOf(hour, { at: START, model: 'claude-opus-4-6' })).toBeCloseTo(5 + 0.6 * 6.25 + 0.4 * 10);
  });

  test('depend on the day of the call if a price changed', () => {
    const call = { fresh: 0, cacheRead: 1e6, cacheWrite: 0, output: 0 };
    expect(dollarsOf('claude-sonnet-5-5', { ...call, at: Date.UTC(2026, 8, 30) })).toBeCloseTo(0.2);
    expect(dollarsOf('claude-sonnet-5-5', { ...call, at: Date.UTC(2026, 10, 1) })).toBeCloseTo(0.1);
  });

  test('are the costs that the agent recorded, if there are any', () => {
    const { found } = new Session('a', 'a-model').asks().answers(1_000, 0, { cost: 0.5 }).asks().answers(1_000, 1_000);
    const { total, unpriced } = sumCosts([found], { by: 'day' });
    expect([total.dollars, total.unpriced, [...unpriced]]).toEqual([0.5, 1, [['a-model', 1]]]);
  });

  test('count a call once if several recordings have it', () => {
    const first = new Session('a').asks().answers(1_000, 0);
    const resumed = new Session('b').asks().answers(1_000, 0).asks().answers(2_000, 1_000);
    const { total, repeated } = sumCosts([resumed.found, first.found], { by: 'day' });
    expect([total.calls, repeated]).toEqual([2, 1]);
    const fork = new Session('c').asks().answers(1_000, 0, { copied: true });
    expect(fork.found.answers).toEqual([]);
  });

  test('count an answer once if its tool calls have results between them', () => {
    const { calls, toolCalls, answers } = new Session('a').asks().answers(1_000, 0).calls().calls().found;
    expect([calls, toolCalls, answers.length]).toEqual([1, 2, 1]);
  });

  test('report the calls without token counts that a list of sessions counts', () => {
    const session = new Session('a').asks().answers(1_000, 0).asks().answersUncounted();
    const fork = new Session('b').asks().answers(1_000, 0, { copied: true }).asks().answers(1_000, 0);
    expect([session.found.calls, fork.found.calls]).toEqual([2, 1]);
    const costs = sumCosts([session.found, fork.found], { by: 'day' });
    expect([costs.total.calls, costs.uncounted]).toEqual([2, 1]);
    expect(limitsOf(costs)).toContain('1 call without token counts in the recording is left out.');
    expect(sumCosts([session.found], { by: 'day', since: START + 60 * MINUTE }).uncounted).toBe(0);
  });

  test('are grouped by day, agent, model and project, with the total of all', () => {
    const a = new Session('a')
      .asks()
      .answers(1_000, 0)
      .asks(24 * 60)
      .answers(2_000, 0).found;
    const b = new Session('b', 'gpt-5').asks(2).answers(500, 0).found;
    const keys = (by: 'day' | 'agent' | 'model' | 'project') =>
      sumCosts([a, b], { by }).rows.map(({ key, calls, sessions }) => [key, calls, sessions]);
    expect(keys('day')).toEqual([
      ['2026-11-20', 2, 2],
      ['2026-11-21', 1, 1],
    ]);
    expect(keys('agent')).toEqual([['Claude Code', 3, 2]]);
    expect(keys('model')).toEqual([
      ['claude-opus-4-6', 2, 1],
      ['gpt-5', 1, 1],
    ]);
    expect(keys('project')).toEqual([
      ['/p/a', 2, 1],
      ['/p/b', 1, 1],
    ]);
    const since = sumCosts([a, b], { by: 'day', since: new Date(2026, 10, 21).getTime() });
    expect([since.total.calls, since.rows.length]).toEqual([1, 1]);
  });

  test.each([60, 80, 100, 140])('fit a terminal of %d columns', (width) => {
    const session = new Session('a-project-with-quite-a-long-name/and/a/deep/folder', 'claude-opus-4-5')
      .asks()
      .answers(90_000, 0);
    const costs = sumCosts([session.asks(9).answers(91_000, 0).found], { by: 'project' });
    const use = {
      tokens: 9,
      unused: 4,
      sent: 90,
      sentUnused: 20,
      tools: { 'a tool of some server': { tokens: 9, unused: 4 } },
    };
    const colours = coloursFor({ isTerminal: false, env: {} });
    const lines = costsLines({ costs, use, by: 'project', home: '/h' }, { colours, width });
    expect(lines.filter((line) => cellsOf(line) > width)).toEqual([]);
    expect(lines[0]).toMatch(/^project .* cost$/);
    expect(lines[1]).toContain('/and/a/deep/folder');
    expect(lines.join('\n')).toContain('a pause longer than');
    expect(lines.join('\n')).toMatch(/tool +tokens of results +tokens never used +share\n/);
  });
});

describe('policies compared on the largest sessions', () => {
  const colours = coloursFor({ isTerminal: false, env: {} });

  test('are shown against what the agent sent, with the limits of the comparison', () => {
    const policies = [
      { name: 'raw', cost: 1, callsKept: 1 },
      { name: 'Palimpsest epoch', cost: 0.512, callsKept: 0.957 },
    ];
    for (const width of [60, 80, 100, 140])
      expect(
        policyLines({ sessions: 3, policies }, { colours, width }).filter((line) => cellsOf(line) > width),
      ).toEqual([]);
    const lines = policyLines({ sessions: 3, policies }, { colours, width: 80 });
    expect(lines.join('\n')).toMatch(/raw: everything is sent +100 % +100 %\nPalimpsest epoch +51 % +96 %/);
    expect(lines.join(' ')).toContain('how a model would have answered');
  });

  test('are left out if no session is long enough', () => {
    expect(policyLines({ sessions: 0, policies: [] }, { colours, width: 80 })).toContain(
      'No session has 30 model calls, so no policy was compared.',
    );
  });
});

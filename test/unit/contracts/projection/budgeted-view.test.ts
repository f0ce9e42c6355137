import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type BudgetedView, budgetedView, type ViewItem } from '../../../../src/contracts/projection/budgeted-view.js';
import type { Entry, EntryCall } from '../../../../src/contracts/projection/entry.js';
import { ProjectionError } from '../../../../src/contracts/projection/errors.js';
import { type Projection, projectSession } from '../../../../src/contracts/projection/project-session.js';
import { NO_VIEW } from '../../../../src/contracts/projection/shrink-view.js';
import { summarisedView } from '../../../../src/contracts/projection/summarised-view.js';
import type { ViewBudget } from '../../../../src/contracts/projection/view-budget.js';
import { viewRecords, viewStateOf } from '../../../../src/contracts/projection/view-records.js';
import { contextRecord } from '../../../../src/objects/context-record.js';
import { BYTES, type Happening, happenings, projectionOf, sourceOf, WORDS } from '../../../support/any-session.js';
import { effort } from '../../../support/effort.js';
import { entryFindings } from '../../../support/pair-check.js';

const long = (word: string): string => `${word} `.repeat(40).trim();
const turn = (n: number, output = long(`out${n}`)): readonly Happening[] => [
  { kind: 'user', text: `ask ${n} about src/part${n}.ts` },
  { kind: 'calls', text: `I read ${n}`, calls: [{ output, args: { path: `src/part${n}.ts` }, when: 'now' }] },
  { kind: 'said', text: `done ${n}` },
];
const turns = (count: number): readonly Happening[] => Array.from({ length: count }, (_, i) => turn(i + 1)).flat();

const entriesOf = ({ items }: BudgetedView): readonly Entry[] =>
  items.flatMap((item) => (item.kind === 'entry' ? [item.entry] : []));
const shown = (item: ViewItem): string =>
  item.kind === 'entry' ? `${item.entry.id} ${item.form} ${item.text}` : `summary ${item.text}`;
const openCalls = ({ entries }: Projection): readonly EntryCall[] =>
  entries.flatMap((entry) =>
    entry.kind === 'assistant' ? entry.calls.filter(({ state }) => state === 'pending') : [],
  );

/** Returns a view, or the error with the minimum tokens. */
function viewOf(projection: Projection, budget: ViewBudget, state = NO_VIEW): BudgetedView | ProjectionError {
  try {
    return budgetedView(projection, budget, state);
  } catch (error) {
    if (error instanceof ProjectionError) return error;
    throw error;
  }
}

/** Counts the tokens of a view independently. */
function counted({ items }: BudgetedView, { counter }: Projection): number {
  return items.reduce((sum, item) => {
    const calls = item.kind === 'entry' && item.entry.kind === 'assistant' ? item.entry.calls : [];
    const ofCalls = calls.map(({ tool, argsText }) => counter.count(tool) + counter.count(argsText) + counter.perCall);
    return sum + counter.count(item.text) + counter.perMessage + ofCalls.reduce((all, one) => all + one, 0);
  }, 0);
}

const budgets = fc.record({
  tokens: fc.integer({ min: 1, max: 6_000 }),
  trigger: fc.constantFrom(1, 0.9, 0.5),
  target: fc.constantFrom(0.75, 0.5, 1),
  keepResults: fc.integer({ min: 0, max: 5 }),
  keepTurns: fc.integer({ min: 0, max: 2 }),
  summary: fc.constantFrom(0, 250, 3_000),
});

describe('a view within a limit of tokens', () => {
  const runs = { numRuns: effort(150, 1_500) };

  test('shows everything in full while it fits, and says so', () => {
    const projection = projectionOf(turns(3));
    const view = budgetedView(projection, { tokens: 100_000 });
    expect(view.items.map(shown)).toEqual(projection.entries.map((entry) => `${entry.id} full ${entry.text}`));
    expect(view).toMatchObject({ shrunk: undefined, counter: 'bytes' });
  });

  test('drops results that the session dropped, then older ones, then summarizes the oldest turns', () => {
    const projection = projectionOf(turns(8));
    const whole = budgetedView(projection, { tokens: 100_000 }).tokens;
    const lines = budgetedView(projection, { tokens: whole - 1, keepResults: 2 });
    expect(lines.shrunk?.steps).toEqual(['lines']);
    expect(lines.items.map(shown)).toContain(
      'r3 line toolcall_ref id=s:3 tool=bash status=ok'.replace('s:3', 'call_2_0'),
    );
    expect(lines.shrunk?.gone).toEqual([]);
    const gone = budgetedView(projection, { tokens: 1_200, keepResults: 1, summary: 300 });
    expect(gone.shrunk?.steps).toEqual(['lines', 'turns']);
    const [prompt, first, summary] = gone.items;
    expect([prompt, first].map((item) => item?.kind === 'entry' && item.entry.id)).toEqual(['system', 'm1']);
    expect(summary).toMatchObject({ kind: 'summary', summary: { by: 'digest' } });
    expect(summary?.text).toMatch(/^<system-reminder>\n\d+ entries of turns 1 to \d are left out here/);
    expect(entriesOf(gone).at(-1)?.id).toBe('m32');
  });

  test('keeps pinned results longest and drops inactive ones first', () => {
    const source = sourceOf(turns(4));
    const [first, second] = [...source.calls.keys()];
    const sets = {
      ...source.sets,
      active: source.sets.active.filter((id) => id !== second),
      pinned: first === undefined ? [] : [first],
    };
    const projection = projectSession({ ...source, sets }, BYTES);
    const whole = budgetedView(projection, { tokens: 100_000 }).tokens;
    const view = budgetedView(projection, { tokens: whole - 1, target: 1, keepResults: 0 });
    expect(view.shrunk).toMatchObject({ steps: ['retention'], lines: ['r7'] });
    const tighter = budgetedView(projection, { tokens: whole - 1, target: 0.6, keepResults: 0, summary: 0 });
    expect(tighter.shrunk?.lines).toEqual(['r7', 'r11', 'r15']);
  });

  test('keeps limit, pairs, pending calls and the newest user message for any history and budget', () => {
    fc.assert(
      fc.property(happenings, budgets, fc.constantFrom(BYTES, WORDS), (all, budget, counter) => {
        const projection = projectionOf(all, counter);
        const view = viewOf(projection, budget);
        if (view instanceof ProjectionError) {
          expect(view.code).toBe('budget-too-small');
          expect(view.least).toBeGreaterThan(budget.tokens);
          expect(viewOf(projection, { ...budget, tokens: view.least ?? 0 })).not.toBeInstanceOf(ProjectionError);
          return;
        }
        expect(view.tokens).toBeLessThanOrEqual(budget.tokens);
        expect(counted(view, projection)).toBe(view.tokens);
        for (const { text } of view.items) expect(text.isWellFormed()).toBe(true);
        const open = new Set<string>(openCalls(projection).map(({ id }) => id));
        const findings = entryFindings(entriesOf(view)).filter(
          ({ rule, call }) => rule !== 'unfinished-turn' && !(rule === 'missing-result' && open.has(call ?? '')),
        );
        expect(findings).toEqual([]);
        const there = new Set(entriesOf(view).map(({ id }) => id));
        const stays = projection.entries.filter(
          (entry) =>
            entry.kind === 'system' ||
            entry === projection.entries.findLast(({ kind }) => kind === 'user') ||
            (entry.kind === 'approval' && entry.state === 'pending') ||
            (entry.kind === 'assistant' && entry.calls.some(({ state }) => state === 'pending')),
        );
        expect(stays.filter(({ id }) => !there.has(id))).toEqual([]);
        for (const item of view.items)
          if (item.kind === 'entry' && item.entry.kind === 'system') expect(item.text).toBe(item.entry.text);
      }),
      runs,
    );
  });

  test('is deterministic and keeps earlier decisions for any history', () => {
    fc.assert(
      fc.property(happenings, happenings, budgets, (before, after, budget) => {
        const earlier = projectionOf(before);
        const later = projectionOf([...before, { kind: 'user', text: 'next' }, ...after]);
        const first = viewOf(earlier, budget);
        fc.pre(!(first instanceof ProjectionError));
        const given = JSON.parse(JSON.stringify(first.state));
        const second = viewOf(later, budget, given);
        expect(viewOf(later, budget, first.state)).toEqual(second);
        if (second instanceof ProjectionError) return;
        const last = later.entries.findLast(({ kind }) => kind === 'user')?.id;
        for (const id of first.state.lines) expect([...second.state.lines, ...second.state.gone]).toContain(id);
        for (const id of first.state.gone) if (id !== last) expect(second.state.gone).toContain(id);
        // Only earlier entries of the session itself may precede the old ones.
        const grows = earlier.entries.every(
          (entry, i) => later.entries[i]?.id === entry.id && later.entries[i]?.kind === entry.kind,
        );
        const isClosed = earlier.running === undefined;
        if (second.shrunk !== undefined || !grows || !isClosed) return;
        expect(second.items.slice(0, first.items.length).map(shown)).toEqual(first.items.map(shown));
      }),
      runs,
    );
  });

  test('says so if nothing is dropped and its summary no longer fits', () => {
    const before: readonly Happening[] = [
      { kind: 'calls', text: 'x'.repeat(500), calls: [{ output: '', args: { path: '' }, when: 'now' }] },
      { kind: 'said', text: 'done' },
    ];
    const budget = { tokens: 435, trigger: 1, target: 0.75, keepResults: 0, keepTurns: 1, summary: 250 };
    const large = budgetedView(projectionOf(before), budget);
    expect(large.state.gone).not.toEqual([]);
    expect(large.items.map(({ kind }) => kind)).toContain('summary');
    const pending: Happening = {
      kind: 'calls',
      text: '',
      calls: [{ output: null, args: { path: 'p'.repeat(300) }, when: 'never' }],
    };
    const later = projectionOf([...before, { kind: 'user', text: 'next' }, pending]);
    const small = budgetedView(later, budget, large.state);
    expect(small.items.map(({ kind }) => kind)).not.toContain('summary');
    expect(small.state).toEqual({ lines: large.state.lines, gone: large.state.gone, cut: {} });
    expect(small.shrunk).toEqual({
      steps: [],
      before: small.tokens + (large.items.find(({ kind }) => kind === 'summary')?.tokens ?? 0),
      after: small.tokens,
      lines: [],
      gone: large.state.gone,
      cut: [],
    });
    expect(budgetedView(later, budget, small.state).shrunk).toBeUndefined();
  });

  test('begins with the whole previous view until it must shrink', () => {
    let state = NO_VIEW;
    let before: readonly string[] = [];
    let shrunk = 0;
    for (let count = 1; count <= 30; count++) {
      const view = budgetedView(projectionOf(turns(count)), { tokens: 2_500 }, state);
      const now = view.items.map(shown);
      if (view.shrunk === undefined) expect(now.slice(0, before.length)).toEqual(before);
      else shrunk += 1;
      expect(view.tokens).toBeLessThanOrEqual(2_500);
      [state, before] = [view.state, now];
    }
    expect(shrunk).toBeGreaterThan(2);
    expect(shrunk).toBeLessThan(15);
  });

  test('is refused below the minimum, which is named', () => {
    const projection = projectionOf(turns(2));
    expect(viewOf(projection, { tokens: 5 })).toMatchObject({
      code: 'budget-too-small',
      message: expect.stringMatching(/give at least \d+$/),
    });
    for (const budget of [
      { tokens: 0 },
      { tokens: 1.5 },
      { tokens: 9, target: 0 },
      { tokens: 9, trigger: 2 },
      { tokens: 9, keepResults: -1 },
    ])
      expect(viewOf(projection, budget)).toMatchObject({ code: 'invalid-budget' });
  });

  test('keeps the beginning and the end of a message longer than the limit', () => {
    const text = `first words ${'\u{1F600}'.repeat(2_000)} last words`;
    const view = budgetedView(projectionOf([{ kind: 'user', text }]), { tokens: 500 });
    const last = view.items.at(-1);
    expect(last).toMatchObject({ kind: 'entry', form: 'cut' });
    expect(last?.text).toMatch(/^first words[\s\S]*\n\[\.\.\. \d+ characters omitted \.\.\.\]\n[\s\S]*last words$/);
    expect(view.tokens).toBeLessThanOrEqual(500);
  });
});

describe('the records of a view', () => {
  const moment = { target: 'model', trigger: 'token_pressure', at: 9_000 };

  test('report the used part of the limit and the state of each entry; the next view continues from them', () => {
    const projection = projectionOf(turns(12));
    const view = budgetedView(projection, { tokens: 2_000, summary: 500 });
    const records = viewRecords(projection, view, moment).map(contextRecord);
    const [budget, compaction] = records;
    expect(budget).toMatchObject({
      kind: 'budget',
      turn: 12,
      seq: 48,
      basis: projection.basis,
      body: { max: 2_000, actual: view.tokens, counter: 'bytes' },
    });
    const segments = budget?.kind === 'budget' ? (budget.body.segments ?? []) : [];
    expect(segments.reduce((sum, { actual }) => sum + actual, 0)).toBe(view.tokens);
    expect(compaction).toMatchObject({
      kind: 'compaction',
      body: { before: view.shrunk?.before, after: view.tokens, gone: view.shrunk?.gone },
    });
    const kept = records.flatMap((record) => (record.kind === 'compaction' ? [record] : []));
    expect(viewStateOf(kept)).toEqual(view.state);
    expect(viewStateOf([])).toEqual(NO_VIEW);
    const next = budgetedView(projection, { tokens: 2_000, summary: 500 }, viewStateOf(kept));
    expect(next.items.map(shown)).toEqual(view.items.map(shown));
    expect(viewRecords(projection, next, moment)).toHaveLength(1);
  });
});

describe('a view with a summariser', () => {
  const projection = projectionOf(turns(12));
  const budget = { tokens: 2_000, summary: 900 };
  const summaryIn = (view: BudgetedView): ViewItem | undefined => view.items.find(({ kind }) => kind === 'summary');

  test('has its summary if it names every identifier, within the limit', async () => {
    const asked: number[] = [];
    const view = await summarisedView(projection, budget, {
      summariser: {
        name: 'model',
        summarise: async ({ identifiers, attempt, complaint }) => {
          asked.push(attempt);
          if (attempt === 2) expect(complaint).toMatch(/does not name/);
          return attempt === 1 ? 'It all went well.' : `It went well: ${identifiers.join(' ')}`;
        },
      },
    });
    expect(asked).toEqual([1, 2]);
    expect(summaryIn(view)).toMatchObject({
      summary: { by: 'model', lost: [], refused: [expect.stringMatching(/does not name/)] },
    });
    expect(view.tokens).toBe(counted(view, projection));
    expect(view.tokens).toBeLessThanOrEqual(budget.tokens);
    const again = await summarisedView(projection, budget, {
      state: view.state,
      summariser: { name: 'model', summarise: () => Promise.reject(new Error('asked again')) },
    });
    expect(again.items.map(shown)).toEqual(view.items.map(shown));
  });

  test.each<[string, (text: string) => Promise<string>]>([
    ['fails', () => Promise.reject(new Error('no model'))],
    ['says nothing', () => Promise.resolve(' ')],
    ['is too long', () => Promise.resolve('word '.repeat(5_000))],
    ['loses identifiers', () => Promise.resolve('All is well.')],
  ])('has the digest if it %s', async (_name, summarise) => {
    const view = await summarisedView(projection, budget, {
      summariser: { name: 'model', summarise: () => summarise('') },
    });
    const plain = budgetedView(projection, budget);
    expect(view.items.map(shown)).toEqual(plain.items.map(shown));
    expect(summaryIn(view)).toMatchObject({
      summary: { by: 'digest', refused: [expect.any(String), expect.any(String)] },
    });
  });

  test('has the digest if the wait is aborted', async () => {
    const view = await summarisedView(projection, budget, {
      summariser: { name: 'model', summarise: () => new Promise(() => undefined) },
      signal: AbortSignal.abort(),
    });
    expect(summaryIn(view)).toMatchObject({ summary: { by: 'digest' } });
  });
});

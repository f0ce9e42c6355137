import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { MemoryAdapter, MemoryChange, RememberedItems } from '../../../../src/contracts/tyrum/agent-memory.js';
import { changedMemory } from '../../../../src/contracts/tyrum/change-memory.js';
import { CANONICAL, consolidateMemory } from '../../../../src/contracts/tyrum/consolidate-memory.js';
import { flushMemory } from '../../../../src/contracts/tyrum/flush-memory.js';
import {
  itemOf,
  type MemoryItem,
  memoryItem,
  memoryRecord,
  memoryText,
} from '../../../../src/contracts/tyrum/memory-item.js';
import { recallMemory } from '../../../../src/contracts/tyrum/recall-memory.js';
import { sessionFacts } from '../../../../src/contracts/tyrum/session-facts.js';
import { contextRecord } from '../../../../src/objects/context-record.js';
import { projectionOf } from '../../../support/any-session.js';
import { anyText } from '../../../support/any-text.js';
import { effort } from '../../../support/effort.js';
import { tyrumFindings } from '../../../support/tyrum-schemas.js';

const AT = Date.UTC(2026, 0, 2);
const DAY = 86_400_000;
const agent = 'ada';
const itemAt = (draft: object, at = AT): MemoryItem => memoryItem(draft, { agent, session: 's', at });
const fact = (key: string, value: unknown, more: object = {}, at = AT): MemoryItem =>
  itemAt({ kind: 'fact', key, value, ...more }, at);
const note = (body: string, more: object = {}, at = AT): MemoryItem =>
  itemAt({ kind: 'note', body_md: body, ...more }, at);
const KEY = ['sk', 'Q7xZ2mK9vB4nT6wR1yL8'].join('-');

/** A memory adapter without a database. */
class KeptMemory implements MemoryAdapter {
  readonly agent = agent;
  readonly #items = new Map<string, MemoryItem>();
  readonly changes: MemoryChange[] = [];

  constructor(items: readonly MemoryItem[] = []) {
    for (const item of items) this.#items.set(item.memory_item_id, item);
  }

  async read(): Promise<RememberedItems> {
    const items = [...this.#items.values()];
    return { items, tombstones: [], tags: new Set(items.flatMap(({ tags }) => tags)) };
  }

  async change(decide: (held: RememberedItems) => MemoryChange): Promise<MemoryChange> {
    const change = decide(await this.read());
    if (change.put.length + change.bury.length > 0) this.changes.push(change);
    for (const item of change.put) this.#items.set(item.memory_item_id, item);
    for (const { item } of change.bury) this.#items.delete(item.memory_item_id);
    return change;
  }
}

describe('an agent’s memory', () => {
  test('has the exact fields of each kind and its own id, and restores from its record', () => {
    const items = [
      fact('editor', { name: 'vi' }, { confidence: 0.5, tags: ['tools'], sensitivity: 'public' }),
      note('# Ports\n8080 is taken', { title: 'Ports', provenance: { source_kind: 'user', message_id: 'm4' } }),
      itemAt({ kind: 'procedure', body_md: 'make, then test', confidence: 1 }),
      itemAt({ kind: 'episode', summary_md: 'we met' }),
    ];
    for (const item of items) {
      expect(tyrumFindings('MemoryItem', item)).toEqual([]);
      const record = contextRecord(memoryRecord(item, { agent, at: AT }));
      expect(itemOf(record as never)).toEqual(item);
      expect(itemOf(contextRecord(memoryRecord(item, { agent, at: AT }, true)) as never)).toBeUndefined();
    }
    expect(fact('editor', 'other').memory_item_id).toBe(items[0]?.memory_item_id);
    expect(new Set(items.map(({ memory_item_id }) => memory_item_id)).size).toBe(4);
    expect(items[1]).toMatchObject({
      sensitivity: 'private',
      provenance: { source_kind: 'user', conversation_id: 's', message_id: 'm4' },
    });
  });

  test('is refused by field if it is invalid, and stays unchanged', () => {
    const remembering = { agent, session: 's', at: AT };
    const held = { items: [fact('a', 1)], tombstones: [], tags: new Set<string>() };
    const bad: readonly [unknown, RegExp][] = [
      [{ kind: 'idea', text: 'x' }, /at kind/],
      [{ kind: 'note' }, /at body_md/],
      [{ kind: 'note', body_md: 'x', more: 1 }, /at its top/],
      [{ kind: 'fact', key: 'k' }, /at value/],
      [{ kind: 'fact', key: 'k', value: 1, confidence: 2 }, /at confidence/],
      [{ kind: 'note', body_md: 'x', memory_item_id: 'n' }, /at memory_item_id/],
    ];
    for (const [draft, why] of bad) {
      expect(() =>
        changedMemory(held, { put: [{ kind: 'note', body_md: 'good' }, draft], forget: [], remembering }),
      ).toThrow(why);
      expect(() => changedMemory(held, { put: [draft], forget: [], remembering })).toThrow(/item 1 of 1/);
    }
    const forget = [{ id: '123e4567-e89b-12d3-a456-426614174000', by: 'user' as const }];
    expect(() => changedMemory(held, { put: [], forget, remembering })).toThrow(/remembers no item/);
  });

  test('holds no secret from any field', () => {
    const items = [
      fact('login', { password: 'tiny', list: [`Bearer ${KEY}`] }),
      fact('db_password', 'tiny'),
      fact('database password', 'tiny'),
      fact('api_key', { held: ['tiny'] }),
      note(`use ${KEY}`, { title: KEY, tags: [KEY], provenance: { source_kind: 'tool', refs: [`token=${KEY}`] } }),
    ];
    for (const item of items) expect(JSON.stringify(item)).not.toMatch(new RegExp(`${KEY}|tiny`));
  });
});

describe('consolidation', () => {
  const drafts = fc.array(
    fc.record({
      kind: fc.constantFrom('fact' as const, 'note' as const, 'procedure' as const, 'episode' as const),
      text: fc.oneof(anyText({ minLength: 1, maxLength: 60 }), fc.constantFrom('same', 'Same ', 'long '.repeat(400))),
      key: fc.constantFrom('a', 'b', 'c'),
      canonical: fc.boolean(),
      day: fc.integer({ min: 0, max: 20 }),
      confidence: fc.constantFrom(0.1, 0.5, 1),
    }),
    { maxLength: 15 },
  );
  const itemsOf = (all: ReturnType<(typeof drafts)['generate']>['value']): MemoryItem[] => {
    const byId = new Map(
      all.map(({ kind, text, key, canonical, day, confidence }, i) => {
        const body = text.trim() === '' ? `x${i}` : text;
        const tags = canonical ? [CANONICAL] : [];
        const own =
          kind === 'fact'
            ? { key, value: body, confidence, memory_item_id: `123e4567-e89b-42d3-a456-4266141740${10 + i}` }
            : kind === 'episode'
              ? { summary_md: body }
              : { title: `t${i}`, body_md: body };
        const item = itemAt({ kind, ...own, tags }, AT + day * DAY);
        return [item.memory_item_id, item];
      }),
    );
    return [...byId.values()];
  };
  const budgets = fc.record({ items: fc.integer({ min: 0, max: 12 }), chars: fc.integer({ min: 0, max: 3_000 }) });
  const after = (items: readonly MemoryItem[], { put, bury }: MemoryChange): readonly MemoryItem[] => {
    const left = new Map(items.map((item) => [item.memory_item_id, item]));
    for (const item of put) left.set(item.memory_item_id, item);
    for (const { item } of bury) left.delete(item.memory_item_id);
    return [...left.values()];
  };

  test('fits any memory into its budget except canonical items, removes duplicates, and is idempotent', () => {
    fc.assert(
      fc.property(drafts, budgets, (all, budget) => {
        const items = itemsOf(all);
        const before = JSON.stringify(items);
        const change = consolidateMemory(items, budget);
        expect(consolidateMemory(items.toReversed(), budget)).toEqual(change);
        expect(JSON.stringify(items)).toBe(before);
        const left = after(items, change);
        for (const item of left) expect(tyrumFindings('MemoryItem', item)).toEqual([]);
        const isFree = left.every(({ tags }) => tags.includes(CANONICAL));
        const chars = left.reduce((sum, item) => sum + memoryText(item).length, 0);
        expect(isFree || (left.length <= budget.items && chars <= budget.chars)).toBe(true);
        const keys = left.flatMap((item) => (item.kind === 'fact' ? [item.key] : []));
        expect(new Set(keys).size).toBe(keys.length);
        // Every removed item gets a tombstone, and canonical keys stay.
        expect(left.length + new Set(change.bury.map(({ item }) => item.memory_item_id)).size).toBe(items.length);
        for (const item of items)
          if (item.kind === 'fact' && item.tags.includes(CANONICAL)) expect(keys).toContain(item.key);
        expect(consolidateMemory(left, budget)).toEqual({ put: [], bury: [] });
      }),
      { numRuns: effort(150, 1_500) },
    );
  });

  test('keeps the corrected fact, shortens before it removes, and removes the least valuable first', () => {
    const old = fact('port', 80, { memory_item_id: '123e4567-e89b-42d3-a456-426614174001', tags: ['old'] });
    const corrected = fact('port', 8080, { memory_item_id: '123e4567-e89b-42d3-a456-426614174002' }, AT + DAY);
    const long = note('words '.repeat(300));
    const episode = itemAt({ kind: 'episode', summary_md: 'we met' });
    const { put, bury } = consolidateMemory([old, corrected, long, episode], { items: 2, chars: 1_000 });
    expect(bury.map(({ item, by }) => [item.kind, by])).toEqual([
      ['fact', 'consolidation'],
      ['episode', 'budget'],
    ]);
    expect(put.map((item) => [item.kind, item.tags, memoryText(item).length < 1_000])).toEqual([
      ['fact', ['old'], true],
      ['note', [], true],
    ]);
  });
});

describe('recall', () => {
  const items = [
    fact('port', 80),
    fact('editor', 'vi', {}, AT + DAY),
    note('the port is taken by nginx', { tags: ['ops'] }),
    note('a private matter of the port', { sensitivity: 'sensitive' }),
  ];

  test('finds by words, names first, newest of equals, within limits; sensitive items on request only', () => {
    const found = recallMemory(items, { query: 'Port?' });
    expect([found.tool, found.items.map(({ kind }) => kind)]).toEqual(['memory.search', ['fact', 'note']]);
    expect(found.text).toContain('port = 80');
    expect(recallMemory(items, { query: 'port', sensitive: true }).items).toHaveLength(3);
    expect(recallMemory(items, { query: 'nothing of it' }).text).toBe('nothing is remembered of it');
    const corrected = [
      ...items,
      fact('port', 8080, { memory_item_id: '123e4567-e89b-42d3-a456-426614174002' }, AT + 2 * DAY),
    ];
    expect(recallMemory(corrected, { query: 'port' }).items[0]).toMatchObject({ value: 8080 });
    expect(recallMemory(items, { query: 'port', limit: 1 }).items).toHaveLength(1);
    expect(recallMemory(items, { chars: 120 }).text.length).toBeLessThanOrEqual(120);
    expect(recallMemory(items, {})).toMatchObject({
      tool: 'memory.seed',
      items: [{ key: 'editor' }, { key: 'port' }, { kind: 'note' }],
    });
  });

  test('masks secrets of memories that predate masking', () => {
    const leaky = { ...note('x'), body_md: `the key is ${KEY}` } as MemoryItem;
    expect(recallMemory([leaky], { query: 'key' }).text).not.toContain(KEY);
  });
});

describe('the flush before a compaction', () => {
  const projection = projectionOf([
    { kind: 'user', text: `Never push to main. My key is ${KEY}` },
    { kind: 'said', text: 'I will not' },
  ]);
  const { entries } = projection;
  const facts = sessionFacts(projection, []);
  const flush = (memory: MemoryAdapter, more: object = {}) =>
    flushMemory(entries, facts, { memory, session: 's', at: AT, ...more });

  test('writes one item without secrets, once per text from any process', async () => {
    const memory = new KeptMemory();
    const first = await flush(memory);
    expect(first).toMatchObject({
      outcome: 'written',
      item: { kind: 'note', body_md: 'Constraints and preferences:\n- Never push to main.' },
    });
    expect(first.item?.tags).toEqual(['pre-compaction-flush', `preflush:${first.hash}`]);
    expect(tyrumFindings('MemoryItem', first.item)).toEqual([]);
    expect(await flush(memory)).toEqual({ outcome: 'known', hash: first.hash });
    // Another text with the same meaning adds nothing new.
    expect((await flush(memory, { session: 'other' })).outcome).toBe('nothing');
    expect(memory.changes).toHaveLength(1);
    expect((await flushMemory([], facts, { memory, session: 's', at: AT })).outcome).toBe('nothing');
  });

  test('keeps no half of a secret at the cut of a decision', async () => {
    for (let left = 180; left < 240; left++) {
      const memory = new KeptMemory();
      const decided = projectionOf([
        { kind: 'user', text: 'go' },
        { kind: 'approval', text: `${'x'.repeat(left)} ${KEY} and more`, state: 'approved' },
      ]);
      await flushMemory(decided.entries, sessionFacts(decided, []), { memory, session: 's', at: AT });
      expect(memory.changes).toHaveLength(1);
      expect(JSON.stringify(memory.changes)).not.toContain(KEY.slice(0, 5));
    }
  });

  test('passes no secret to a model and accepts none from it', async () => {
    const memory = new KeptMemory();
    const asked: string[] = [];
    const remember = async ({ text }: { readonly text: string }) => {
      asked.push(text);
      return { kind: 'fact', key: 'rule', value: `the token is token=${KEY}` };
    };
    const flushed = await flush(memory, { remember });
    expect(asked).toEqual([expect.stringContaining('Never push to main. My key is [redacted]')]);
    expect(flushed).toMatchObject({ outcome: 'written', item: { value: 'the token is token=[redacted]' } });
  });

  test('never throws, and stores nothing late, sensitive or forbidden', async () => {
    const memory = new KeptMemory();
    const draft = { kind: 'note', body_md: 'x' };
    expect(await flush(memory, { remember: async () => ({ kind: 'nonsense' }) })).toMatchObject({ outcome: 'failed' });
    expect(await flush(memory, { remember: () => Promise.reject(new Error(`no ${KEY}`)) })).toMatchObject({
      why: 'no [redacted]',
    });
    expect(await flush(memory, { remember: async () => null })).toMatchObject({ outcome: 'nothing' });
    expect(await flush(memory, { remember: async () => ({ ...draft, sensitivity: 'sensitive' }) })).toMatchObject({
      outcome: 'refused',
    });
    expect(await flush(memory, { remember: async () => draft, mayKeep: () => false })).toMatchObject({
      outcome: 'refused',
    });
    let late: (value: unknown) => void = () => undefined;
    const answer = new Promise((resolve) => {
      late = resolve;
    });
    expect(await flush(memory, { remember: () => answer, timeoutMs: 1 })).toMatchObject({ outcome: 'failed' });
    late(draft);
    await answer;
    expect(memory.changes).toEqual([]);
    const broken: MemoryAdapter = {
      agent,
      read: () => Promise.reject(new Error('away')),
      change: () => Promise.reject(new Error('away')),
    };
    expect(await flush(broken)).toMatchObject({ outcome: 'failed', why: 'away' });
  });
});

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type HistoryEntry, reconcile, reconcileWith, sameEntry } from '../../../src/harness/reconcile.js';
import { cpuMsOf } from '../../support/cpu-time.js';

const say = (text: string, id?: string): HistoryEntry => ({
  kind: 'message',
  key: text,
  weight: text.length,
  ...(id === undefined ? {} : { id }),
});
const call = (id: string, key = id): HistoryEntry => ({ kind: 'call', id, key, weight: 10 });
const picked = (known: readonly HistoryEntry[], sent: readonly HistoryEntry[]) =>
  reconcile(known, sent).fresh.map((i) => sent[i]);

/** Few distinct entries, so that repetitions are common. */
const repetitive = fc.array(
  fc.oneof(
    fc.constantFrom('yes', 'go on', 'ok').map((text) => say(text)),
    fc.constantFrom('call_1', 'call_2', 'call_3').map((id) => call(id)),
    fc.constantFrom('m1', 'm2', 'm3').map((id) => say('same words', id)),
  ),
  { maxLength: 30 },
);
/** Entries that occur once. */
const distinct = fc
  .uniqueArray(fc.integer({ min: 0, max: 10_000 }), { maxLength: 30 })
  .chain((numbers) =>
    fc.tuple(...numbers.map((n) => fc.boolean().map((isCall) => (isCall ? call(`call_${n}`) : say(`message ${n}`))))),
  ) as fc.Arbitrary<readonly HistoryEntry[]>;
const runs = { numRuns: 500 };

describe('reconciling a history that is sent again (decision F1)', () => {
  test('finds nothing new in an unchanged history', () => {
    fc.assert(
      fc.property(repetitive, (history) => {
        expect(reconcile(history, history)).toEqual({
          fresh: [],
          matched: history.map((_, i) => i),
          notice: undefined,
        });
      }),
      runs,
    );
  });

  test('finds exactly the added entries of a history that grew, even if they repeat earlier ones', () => {
    fc.assert(
      fc.property(repetitive, repetitive, (history, tail) => {
        expect(reconcile(history, [...history, ...tail])).toEqual({
          fresh: tail.map((_, i) => history.length + i),
          matched: [...history.map((_, i) => i), ...tail.map(() => undefined)],
          notice: undefined,
        });
      }),
      runs,
    );
  });

  test('finds each entry once and in order if the history is sent in growing pieces', () => {
    fc.assert(
      fc.property(repetitive, fc.array(fc.nat(30), { maxLength: 8 }), (history, cuts) => {
        const recorded: HistoryEntry[] = [];
        for (const cut of [...cuts.sort((a, b) => a - b), history.length]) {
          const sent = history.slice(0, cut);
          recorded.push(...reconcile(recorded, sent).fresh.map((i) => sent[i] as HistoryEntry));
        }
        expect(recorded).toEqual(history);
      }),
      runs,
    );
  });

  test('finds nothing new in a shortened history, and reports it', () => {
    fc.assert(
      fc.property(repetitive, fc.nat(30), (history, cut) => {
        const sent = history.slice(0, cut);
        const { fresh, notice } = reconcile(history, sent);
        expect(fresh).toEqual([]);
        expect(notice).toEqual(
          sent.length === history.length
            ? undefined
            : { kind: 'shortened', kept: sent.length, missing: history.length - sent.length },
        );
      }),
      runs,
    );
  });

  test('finds the summary and the added entries of a compacted history', () => {
    fc.assert(
      fc.property(distinct, distinct, fc.nat(30), (history, tail, cut) => {
        const kept = history.slice(Math.min(cut, history.length));
        fc.pre(kept.length >= 2 && kept.length < history.length);
        const known = new Set(history.map(({ key }) => key));
        const end = tail.filter(({ key }) => !known.has(key));
        const summary = say('a summary of what was said before');
        expect(picked(history, [summary, ...kept, ...end])).toEqual([summary, ...end]);
        expect(reconcile(history, [summary, ...kept, ...end]).notice).toMatchObject({
          kind: 'compacted',
          missing: history.length - kept.length,
        });
      }),
      runs,
    );
  });

  test('recognises a history that grew after a compaction, by its last list or by the chat alone', () => {
    fc.assert(
      fc.property(distinct, fc.nat(30), (history, cut) => {
        const kept = history.slice(Math.min(cut, history.length));
        fc.pre(kept.length >= 2 && kept.length < history.length);
        const summary = say('a summary of what was said before');
        const list = [summary, ...kept];
        const chat = [...history, summary];
        const more = [say('and now?'), call('call_new')];
        const grown = [...list, ...more];
        for (const views of [[list, chat], [[...chat, ...more]]]) {
          const { fresh } = reconcileWith(views, grown);
          expect(fresh.map((i) => grown[i])).toEqual(views.length === 2 ? more : []);
        }
      }),
      runs,
    );
  });

  test('finds an unseen entry at any place', () => {
    fc.assert(
      fc.property(repetitive, repetitive, fc.nat(30), (history, sent, at) => {
        const novel = say('never said before, whatever came earlier');
        const list = [...sent.slice(0, at), novel, ...sent.slice(at)];
        expect(picked(history, list)).toContain(novel);
      }),
      runs,
    );
  });

  test('maps every entry that is not new to its own known entry of the same kind and id or words', () => {
    fc.assert(
      fc.property(repetitive, repetitive, (history, sent) => {
        const { fresh, matched } = reconcile(history, sent);
        const used = matched.flatMap((place) => (place === undefined ? [] : [place]));
        expect(new Set(used).size).toBe(used.length);
        expect(fresh).toEqual(matched.flatMap((place, i) => (place === undefined ? [i] : [])));
        for (const [i, place] of matched.entries()) {
          if (place !== undefined)
            expect(sameEntry(history[place] as HistoryEntry, sent[i] as HistoryEntry)).toBe(true);
        }
      }),
      runs,
    );
  });

  test('recognises calls by id in any order', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.integer({ min: 0, max: 50 }), { minLength: 1, maxLength: 8 }), (numbers) => {
        const calls = numbers.map((n) => call(`call_${n}`));
        const known = [say('go'), ...calls];
        const sent = [say('go'), ...[...calls].reverse(), say('done')];
        expect(picked(known, sent)).toEqual([say('done')]);
      }),
      runs,
    );
  });
});

describe('reconciling a history that does not simply grow', () => {
  test('treats a call id that is sent twice as two calls', () => {
    const known = [say('go'), call('call_1', 'first')];
    expect(picked(known, [...known, call('call_1', 'second')])).toEqual([call('call_1', 'second')]);
  });

  test('recognises a call whose output the harness cleared', () => {
    expect(picked([say('go'), call('call_1', 'long output')], [say('go'), call('call_1', 'cleared')])).toEqual([]);
  });

  test('finds an edited prompt and all that follows it, even entries with known words', () => {
    const known = [say('a'), say('do it'), say('ok'), say('thanks')];
    const sent = [say('a'), say('do it well'), say('ok'), say('more')];
    expect(reconcile(known, sent)).toEqual({
      fresh: [1, 2, 3],
      matched: [0, undefined, undefined, undefined],
      notice: { kind: 'diverged', kept: 1, missing: 3 },
    });
  });

  test('matches a message by id although its words were normalised', () => {
    expect(picked([say('hello ', 'm1')], [say('hello', 'm1'), say('next', 'm2')])).toEqual([say('next', 'm2')]);
  });

  test('finds a text that appears before a known call', () => {
    const known = [say('go'), call('call_1')];
    expect(picked(known, [say('go'), say('let me look'), call('call_1'), say('done')])).toEqual([
      say('let me look'),
      say('done'),
    ]);
  });

  test('compares ten thousand entries quickly', () => {
    const history = Array.from({ length: 10_000 }, (_, i) => (i % 3 === 0 ? say(`m${i}`) : call(`c${i}`)));
    const took = cpuMsOf(() => {
      expect(picked(history, [...history, say('last')])).toEqual([say('last')]);
      expect(picked(history, [say('summary'), ...history.slice(5_000), say('last')])).toEqual([
        say('summary'),
        say('last'),
      ]);
    });
    expect(took).toBeLessThan(4_000);
  });
});

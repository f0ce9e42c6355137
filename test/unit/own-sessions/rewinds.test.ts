import { describe, expect, test } from '@jest/globals';
import { NO_MASK } from '../../../src/client/record-mask.js';
import type { RecordedEntry } from '../../../src/lab/recordings/neutral-session.js';
import { FactsCollector } from '../../../src/own-sessions/session-facts.js';

type Entry = RecordedEntry extends infer One ? (One extends unknown ? Omit<One, 'session' | 'place'> : never) : never;

/** Returns the counts of a recording with these entries. */
function countsOf(entries: readonly Entry[]) {
  const collector = new FactsCollector(NO_MASK);
  collector.take({ kind: 'session', format: 'codex', native_id: 's', place: '' });
  for (const [i, entry] of entries.entries())
    collector.take({ ...entry, session: 's', place: `${i}` } as RecordedEntry);
  const { turns, calls, toolCalls, uncounted } = collector.finish({}) ?? {};
  return { turns, calls, toolCalls, uncounted };
}

const usage = { input: 900, output: 10 };
/** A turn with two calls of the model and one of a tool. */
const turn = (id: string): readonly Entry[] => [
  { kind: 'message', role: 'user', origin: 'person', text: id, native_id: `${id}-asks` },
  { kind: 'call', call_id: id, tool: 'read', args: {}, native_id: `${id}-calls` },
  { kind: 'message', role: 'assistant', origin: 'model', text: '', usage, native_id: `${id}-says` },
  { kind: 'result', call_id: id, text: 'text', is_error: false, native_id: `${id}-result` },
  { kind: 'message', role: 'assistant', origin: 'model', text: 'Done.', usage, native_id: `${id}-ends` },
];
const rewind = (more: Partial<Extract<RecordedEntry, { kind: 'event' }>>): Entry => ({
  kind: 'event',
  name: 'rewind',
  ...more,
});

describe('the calls that a list counts after a rewind', () => {
  test.each<[string, Entry]>([
    ['so many turns', rewind({ undone_turns: 1 })],
    ['the first entry that was taken back', rewind({ undone_from: 'b-asks' })],
    ['the entry from which it continues', rewind({ parent_id: 'a-ends' })],
  ])('leave out those that were taken back: the recording names %s', (_name, back) => {
    const kept = countsOf([...turn('a'), ...turn('c')]);
    expect(kept).toMatchObject({ turns: 2, toolCalls: 2, uncounted: 0 });
    expect(countsOf([...turn('a'), ...turn('b'), back, ...turn('c')])).toEqual(kept);
  });

  test('are all calls if the recording does not say what was taken back', () => {
    const all = countsOf([...turn('a'), ...turn('b'), ...turn('c')]);
    expect(countsOf([...turn('a'), ...turn('b'), rewind({}), ...turn('c')])).toEqual(all);
  });

  test('return to a conversation that was left before', () => {
    const back = [rewind({ parent_id: 'a-ends' }), ...turn('c'), rewind({ parent_id: 'b-ends' })];
    expect(countsOf([...turn('a'), ...turn('b'), ...back])).toEqual(countsOf([...turn('a'), ...turn('b')]));
  });
});

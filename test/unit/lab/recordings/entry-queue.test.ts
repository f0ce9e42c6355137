import { describe, expect, test } from '@jest/globals';
import { EntryQueue } from '../../../../src/lab/recordings/entries/entry-queue.js';
import type { EntryOf } from '../../../../src/lab/recordings/neutral-session.js';

const said = (place: string, text = ''): EntryOf<'message'> => ({
  kind: 'message',
  session: 's',
  place,
  role: 'assistant',
  origin: 'model',
  text,
});
const places = (queue: EntryQueue): readonly (string | undefined)[] => queue.take().map(({ place }) => place);

describe('the entry queue', () => {
  test('holds the entries after a held one, in order', () => {
    const queue = new EntryQueue();
    queue.push(said('1'));
    const held = queue.hold<'message'>(said('2'));
    queue.push(said('3'));
    expect(places(queue)).toEqual(['1']);
    expect(held.update({ text: 'more' })).toBe(true);
    held.release();
    expect(queue.take()).toMatchObject([{ place: '2', text: 'more' }, { place: '3' }]);
    expect(held.update({ text: 'late' })).toBe(false);
  });

  test('releases everything at the end of the recording', () => {
    const queue = new EntryQueue();
    queue.hold<'message'>(said('1'));
    queue.push(said('2'));
    expect(queue.drain().map(({ place }) => place)).toEqual(['1', '2']);
  });

  test('is bounded by number and by length', () => {
    const many = new EntryQueue();
    many.hold<'message'>(said('first'));
    for (let index = 0; index < 4096; index += 1) many.push(said(String(index)));
    expect(places(many)).toHaveLength(4097);
    const long = new EntryQueue();
    const held = long.hold<'message'>(said('first'));
    for (let index = 0; index < 17; index += 1) long.push(said(String(index), 'x'.repeat(1024 * 1024)));
    expect(places(long)).toHaveLength(18);
    expect(held.update({ text: 'late' })).toBe(false);
  });
});

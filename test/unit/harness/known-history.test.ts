import { describe, expect, test } from '@jest/globals';
import { NO_MASK } from '../../../src/client/record-mask.js';
import type { HistoryItem } from '../../../src/harness/history-item.js';
import { chatEntries, knownSilent, nativeCallId, sentEntry, storedHash } from '../../../src/harness/known-history.js';
import { reconcile } from '../../../src/harness/reconcile.js';
import { hashText } from '../../../src/objects/hashes.js';
import { type ObjectId, objectId, type Sha256 } from '../../../src/objects/ids.js';
import type { ChatMark } from '../../../src/session/session-fold.js';

const marks: readonly ChatMark[] = [
  { seq: 1, turn: 1, message: { role: 'user', text: 'look' }, native: 'm1' },
  ...['call_1@s1', 'call_1@s1~2', 's1:4'].map((id, i) => ({ seq: i + 2, turn: 1, call: objectId(id) })),
  { seq: 5, turn: 1, message: { role: 'assistant', text: '' } },
  { seq: 6, turn: 1, message: { role: 'assistant', text: 'x'.repeat(1_000) } },
];
const metadataOf = (id: ObjectId) =>
  ({
    type: 'toolcall',
    id,
    tool: 'ls',
    contentHash: hashText('out') as Sha256,
    charCount: 3,
    fileRefs: [],
    status: 'ok',
    wholeRead: false,
  }) as const;
const call = (content: string, id?: string): HistoryItem => ({
  kind: 'call',
  index: 0,
  tool: 'ls',
  args: {},
  content,
  status: 'ok',
  files: [],
  ...(id === undefined ? {} : { id }),
});

describe('comparing with the known chat', () => {
  test('recognises calls by the harness’s ids, or by tool and output; leaves bare carriers out', () => {
    const sent = [
      { kind: 'message', index: 0, role: 'user', text: 'look' } as const,
      call('anything', 'call_1'),
      call('anything else', 'call_1'),
      call('out'),
      { kind: 'message', index: 0, role: 'assistant', text: 'x'.repeat(1_000) } as const,
    ].map((item) => sentEntry(item, NO_MASK));
    const known = chatEntries(marks, metadataOf, new Set(['call_1']));
    expect(known).toHaveLength(5);
    expect(reconcile(known, sent)).toMatchObject({ fresh: [], notice: undefined });
    expect(
      reconcile(known, [
        ...sent.slice(0, 4),
        sentEntry({ kind: 'message', index: 0, role: 'assistant', text: 'other' }, NO_MASK),
      ]).fresh,
    ).toEqual([4]);
  });

  test('recognises silent messages by id, by their successor, and by their count at the end of the chat', () => {
    const message = (role: string, text: string, id?: string): HistoryItem => ({
      kind: 'message',
      index: 0,
      role,
      text,
      ...(id === undefined ? {} : { id }),
    });
    const silent = (id?: string) => message('assistant', '', id);
    const end: readonly ChatMark[] = [
      ...marks,
      { seq: 7, turn: 1, message: { role: 'assistant', text: '' }, native: 'm7' },
      { seq: 8, turn: 1, message: { role: 'model', text: '' } },
    ];
    const known = (items: readonly HistoryItem[], chat: readonly ChatMark[], isKnown: readonly number[]) =>
      [...knownSilent(items, (i) => isKnown.includes(i), chat)].map(([place, mark]) => [place, mark?.seq]);
    const carried = [message('user', 'look'), silent('n1'), call('out'), silent(), silent(), call('new')];
    expect(known(carried, marks, [0, 2])).toEqual([[1, undefined]]);
    expect(known(carried, end, [0, 2])).toEqual([
      [1, undefined],
      [3, 7],
      [4, 8],
    ]);
    expect(known([silent('m7'), call('new'), silent(), silent()], end, [])).toEqual([
      [0, 7],
      [2, 8],
    ]);
  });

  test('matches the shared part of a fork under another message id, and nothing after it', () => {
    const forked: readonly ChatMark[] = [
      ...marks,
      { seq: 7, turn: 1, event: { kind: 'forked' } },
      { seq: 8, turn: 2, message: { role: 'user', text: 'go on' }, native: 'm9' },
    ];
    const known = chatEntries(forked, metadataOf, new Set(['call_1']));
    const said = (role: string, text: string, id: string) =>
      sentEntry({ kind: 'message', index: 0, role, text, id }, NO_MASK);
    const calls = ['call_1', 'call_1', undefined].map((id) => sentEntry(call('out', id), NO_MASK));
    const shared = [said('user', 'look', 'n1'), ...calls, said('assistant', 'x'.repeat(1_000), 'n2')];
    expect(reconcile(known, [...shared, said('user', 'go on', 'm9')]).fresh).toEqual([]);
    expect(reconcile(known, [...shared, said('user', 'go on', 'n3')]).fresh).toEqual([5]);
    expect(reconcile(chatEntries(marks, metadataOf, new Set(['call_1'])), shared).fresh).toContain(0);
  });

  test.each([
    ['call_1', 'call_1'],
    ['call_1~2', 'call_1'],
    ['call_1@s1', 'call_1'],
    ['call_1@s1~12', 'call_1'],
    ['call_1@s:a@b~2', 'call_1'],
    ['odd~2', 'odd~2'],
    ['odd@x', 'odd@x'],
    ['other', 'other'],
  ])('maps %s to the harness’s %s (decision B2)', (ref, native) => {
    expect(nativeCallId(ref, new Set(['call_1', 'odd~2', 'odd@x']))).toBe(native);
  });

  test('recognises an output over the cap by its stored part', () => {
    const long = 'line\n'.repeat(400_000);
    expect(storedHash(long)).not.toBe(hashText(long));
    expect(storedHash('short')).toBe(hashText('short'));
  });
});

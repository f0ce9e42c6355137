import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { renderAround } from '../../../src/assembly/around-tail.js';
import type { ActiveObject, AssemblyInput } from '../../../src/assembly/layout.js';
import type { ObjectMetadata } from '../../../src/assembly/metadata.js';
import { hashText } from '../../../src/objects/hashes.js';
import { type ObjectId, objectId } from '../../../src/objects/ids.js';
import type { Turn } from '../../../src/objects/object-type.js';

const call = (
  id: string,
  text: string,
  fileRefs: readonly ObjectId[] = [],
): ActiveObject & { readonly metadata: ObjectMetadata<'toolcall'> } => ({
  metadata: {
    type: 'toolcall',
    id: objectId(id),
    tool: 'read',
    status: 'ok',
    contentHash: hashText(text),
    charCount: text.length,
    fileRefs,
    wholeRead: fileRefs.length === 1,
  },
  content: text,
});
const file = (id: string, text: string): ActiveObject => ({
  metadata: {
    type: 'file',
    id: objectId(id),
    displayPath: `/p/${id}`,
    fileType: 'txt',
    charCount: text.length,
    state: 'indexed',
    fileHash: hashText(text),
    contentHash: hashText(text),
  },
  content: text,
});
const turn = (number: number, calls: readonly string[]): Turn => ({
  turn: number,
  messages: [
    { role: 'user', text: `request ${number}` },
    {
      role: 'assistant',
      text: `answer ${number}`,
      ...(calls.length === 0 ? {} : { toolcall_refs: calls.map(objectId) }),
    },
  ],
});

function input(
  objects: readonly ActiveObject[],
  active: ReadonlySet<string>,
  turns: readonly Turn[],
  strict = false,
): AssemblyInput {
  return {
    systemPrompt: 'be good',
    pool: objects.map(({ metadata }) => metadata),
    turns,
    active: objects.filter(({ metadata }) => active.has(metadata.id)),
    options: { strict, shortIds: false },
  };
}

const texts = ({ before, after }: ReturnType<typeof renderAround>): readonly string[] =>
  [...before, ...after].flatMap(({ parts }) => parts.map(({ text }) => text));

/** Two closed turns and a running one, each with a few calls, some of them active. */
const states = fc
  .record({
    counts: fc.tuple(fc.nat(6), fc.nat(6), fc.nat(8)),
    active: fc.array(fc.boolean(), { minLength: 20, maxLength: 20 }),
    strict: fc.boolean(),
  })
  .map(({ counts, active, strict }) => {
    const names = counts.map((count, t) => Array.from({ length: count }, (_, i) => `call_${t + 1}_${i}`));
    const objects = names.flat().map((id) => call(id, `what ${id} said, and nobody else`));
    const chosen = new Set(names.flat().filter((_, i) => active[i] === true));
    const turns = names.map((ids, t) => turn(t + 1, ids));
    const results = (names[2] ?? []).map(objectId);
    return { input: input(objects, chosen, turns, strict), tail: { turn: 3, results }, chosen, names };
  });

describe('a context around the running turn of a harness (decision E3)', () => {
  test('shows an active result outside the tail exactly once, and no other result', () => {
    fc.assert(
      fc.property(states, ({ input: given, tail, chosen, names }) => {
        const around = renderAround(given, tail);
        const all = texts(around).join('\n');
        for (const id of names.flat()) {
          const times = all.split(`what ${id} said`).length - 1;
          expect(times).toBe(chosen.has(id) && !tail.results.includes(objectId(id)) ? 1 : 0);
        }
      }),
    );
  });

  test('replaces exactly the inactive results of the tail by one line each', () => {
    fc.assert(
      fc.property(states, ({ input: given, tail, chosen }) => {
        const { references } = renderAround(given, tail);
        expect([...references.keys()]).toEqual(tail.results.filter((id) => !chosen.has(id)));
        for (const [id, line] of references) expect(line).toBe(`toolcall_ref id=${id} tool=read status=ok`);
      }),
    );
  });

  test('shows closed turns in order without the running one; every message has text and the role user', () => {
    fc.assert(
      fc.property(states, ({ input: given, tail }) => {
        const { before, after, system } = renderAround(given, tail);
        const chat = before.find(({ section }) => section === 'chat')?.parts[0]?.text ?? '';
        expect(chat).toMatch(/^user: request 1\n[\s\S]*answer 1\n[\s\S]*user: request 2\n[\s\S]*answer 2/);
        expect(chat).not.toContain('request 3');
        expect(system).toBe('be good');
        expect([...before, ...after].map(({ role }) => role)).toEqual([...before, ...after].map(() => 'user'));
        for (const { parts } of [...before, ...after]) for (const { text } of parts) expect(text).not.toBe('');
        const order = [...before.map(({ section }) => section), 'tail', ...after.map(({ section }) => section)];
        expect(order).toEqual(['pool', 'chat', 'tail', 'active'].filter((name) => order.includes(name)));
      }),
    );
  });

  test('moves the same sections to other places for another layout, without other changes', () => {
    fc.assert(
      fc.property(states, ({ input: given, tail }) => {
        const [one, two] = [renderAround(given, tail), renderAround(given, tail, 'chat-first')];
        expect(two.before.map(({ section }) => section)).toEqual(['chat']);
        expect(two.after.map(({ section }) => section)).toEqual(
          ['pool', 'active'].filter((name) => two.after.some((own) => own.section === name)),
        );
        const sorted = ({ before, after }: typeof one) =>
          [...before, ...after].toSorted((a, b) => (a.section < b.section ? -1 : 1));
        expect(sorted(two)).toEqual(sorted(one));
        expect(two.references).toEqual(one.references);
        expect(two.record.layout).toBe('chat-first');
        const three = renderAround(given, tail, 'pool-last');
        expect(three.after.map(({ section }) => section)).toEqual(given.pool.length === 0 ? [] : ['pool']);
        expect(sorted(three)).toEqual(sorted(one));
        if (one.before.length > 1) expect(two.record.sha256).not.toBe(one.record.sha256);
      }),
    );
  });

  test('returns the same bytes for the same state and tail, and records their hash', () => {
    fc.assert(
      fc.property(states, ({ input: given, tail }) => {
        const [one, two] = [renderAround(given, tail), renderAround(structuredClone(given), structuredClone(tail))];
        expect(two.record).toEqual(one.record);
        expect(one.record).toMatchObject({ renderer: 'around', layout: 'ssot', tail });
      }),
    );
  });

  test('returns only the prompt for an empty session', () => {
    const around = renderAround(input([], new Set(), [turn(1, [])]), { turn: 1, results: [] });
    expect(around).toMatchObject({ system: 'be good', before: [], after: [] });
  });
});

describe('a file that the tail shows (decisions E2, E4)', () => {
  const text = 'first\nsecond\nthird\n';
  const numbered = `<file>\n${text
    .trimEnd()
    .split('\n')
    .map((line, i) => `${i + 1}: ${line}`)
    .join('\n')}\n\n(End of file - total 3 lines)\n</file>`;
  const around = (shown: string, strict = false, active = ['f', 'c']) =>
    renderAround(
      input([file('f', text), call('c', shown, [objectId('f')])], new Set(active), [turn(1, ['c'])], strict),
      {
        turn: 1,
        results: [objectId('c')],
      },
    );
  const block = ({ after }: ReturnType<typeof renderAround>): string | undefined => after[0]?.parts[0]?.text;

  test.each([
    ['as it is', text],
    ['with numbered lines', numbered],
  ])('names the call that shows %s', (_how, shown) => {
    expect(block(around(shown))).toBe('ACTIVE_CONTENT id=f\ntoolcall_ref id=c tool=read status=ok');
  });

  test('shows the whole file in its block if the tail has a part, an older version or a collapsed result', () => {
    const whole = `ACTIVE_CONTENT id=f\n${text}`;
    expect(block(around('first\nsecond\n'))).toBe(whole);
    expect(block(around('first\n2nd\nthird\n'))).toBe(whole);
    expect(block(around(text, false, ['f']))).toBe(whole);
  });

  test('shows the file twice with --strict', () => {
    expect(block(around(text, true))).toBe(`ACTIVE_CONTENT id=f\n${text}`);
  });
});

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { LoopContext } from '../../../../src/extensions/loop/loop-context.js';
import type { OpencodeMessage } from '../../../../src/extensions/opencode/opencode1-api.js';
import {
  nothingSeen as nothingSeenByOpencode,
  opencodeList,
} from '../../../../src/extensions/opencode/opencode1-messages.js';
import type { PiMessage } from '../../../../src/extensions/pi/pi-api.js';
import { nothingSeen as nothingSeenByPi, piList } from '../../../../src/extensions/pi/pi-messages.js';
import { composed, HandedLists, type HarnessList } from '../../../../src/extensions/sidecar/composed-list.js';
import { canonicalJson } from '../../../../src/objects/canonical-json.js';
import { hashText } from '../../../../src/objects/hashes.js';
import { sessionId } from '../../../../src/objects/ids.js';

/** A message of a history; its index is its name. */
interface Said {
  readonly user: boolean;
  readonly text: string;
  readonly calls: number;
  readonly done: boolean;
}

const said: fc.Arbitrary<Said> = fc.record({
  user: fc.boolean(),
  text: fc.constantFrom('', 'go', 'on', 'x'.repeat(300)),
  calls: fc.nat(2),
  done: fc.boolean(),
});

/** Changes of a history between two lists. */
const edits = fc.oneof(
  fc.record({ kind: fc.constant('append'), said: fc.array(said, { minLength: 1, maxLength: 3 }) } as const),
  fc.record({ kind: fc.constant('change'), at: fc.nat(12), said } as const),
  fc.record({ kind: fc.constant('remove'), at: fc.nat(12) } as const),
  fc.record({ kind: fc.constant('revert'), left: fc.nat(12) } as const),
  fc.record({ kind: fc.constant('compact'), left: fc.nat(4), said } as const),
  fc.constant({ kind: 'nothing' } as const),
);

type Edit = typeof edits extends fc.Arbitrary<infer E> ? E : never;

function edited(history: readonly Said[], edit: Edit): readonly Said[] {
  const at = 'at' in edit ? edit.at % Math.max(1, history.length) : 0;
  switch (edit.kind) {
    case 'append':
      return [...history, ...edit.said];
    case 'change':
      return history.map((one, i) => (i === at ? edit.said : one));
    case 'remove':
      return history.filter((_, i) => i !== at);
    case 'revert':
      return history.slice(0, edit.left);
    case 'compact':
      return [{ ...edit.said, user: true }, ...history.slice(history.length - Math.min(history.length, edit.left))];
    default:
      return history;
  }
}

function opencode({ user, text, calls, done }: Said, i: number): OpencodeMessage {
  const ids = { sessionID: 's', messageID: `m${i}` };
  const state = done
    ? ({ status: 'completed', input: { command: text }, output: `${text} done`, metadata: { of: { i } } } as const)
    : ({ status: 'running', input: { command: text } } as const);
  const tools = Array.from({ length: user ? 0 : calls }, (_, c) => ({
    ...ids,
    id: `p${i}_${c}`,
    type: 'tool',
    tool: 'bash',
    callID: `c${i}_${c}`,
    state,
  }));
  const role = user ? 'user' : 'assistant';
  return {
    info: { id: `m${i}`, sessionID: 's', role, time: { created: i } },
    parts: [{ ...ids, id: `p${i}`, type: 'text', text }, ...tools],
  };
}

const pi = ({ user, text, calls, done }: Said, i: number): readonly PiMessage[] => {
  if (user) return [{ role: 'user', content: text, timestamp: i }];
  const ids = Array.from({ length: calls }, (_, c) => `c${i}_${c}`);
  const made = ids.map((id) => ({ type: 'toolCall', id, name: 'bash', arguments: { command: text } }));
  const results = ids.map((toolCallId) => ({
    role: 'toolResult',
    toolCallId,
    toolName: 'bash',
    content: [{ type: 'text', text }],
    details: { i },
  }));
  return [{ role: 'assistant', content: [{ type: 'text', text }, ...made], timestamp: i }, ...(done ? results : [])];
};

/** A context around the end of a list, with a note and a collapsed line. */
function contextFor({ list, places }: Pick<HarnessList<never>, 'list' | 'places'>, from: number): LoopContext {
  const start = Math.min(from, places.length);
  const message = (text: string) => ({ section: 'chat' as const, role: 'user', parts: [{ text }] });
  const isResult = (index: number): boolean => ['tool', 'toolResult'].includes(list.messages[index]?.role ?? '');
  const indexes = [...places.keys()].filter((index) => index >= start);
  const references = indexes
    .filter((index) => isResult(index) && index % 2 === 0)
    .map((index) => ({ index, text: `line ${index}` }));
  const inserts = indexes.slice(0, 1).map((index) => ({ index, message: message(`note ${index}`) }));
  return {
    session: sessionId('s'),
    from: start,
    before: [message('base')],
    inserts,
    after: [],
    references,
    pool: 1,
    active: 0,
  };
}

/** Everything that a harness and its sidecar derive from a list. */
const told = <M>(own: HarnessList<M>, context: LoopContext) =>
  JSON.stringify([own.list, own.places, composed(own, context)]);

/** Modifies a value as another plugin might modify its list. */
function spoil(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    if (typeof member === 'object') spoil(member);
    else (value as Record<string, unknown>)[name] = 'spoilt';
  }
}

describe('a list that is rebuilt for each model call', () => {
  test.each(['opencode', 'pi'] as const)(
    'is reported and hashed as if it were the first, after any edits and later modifications (%s)',
    (what) => {
      fc.assert(
        fc.property(
          fc.array(said, { maxLength: 6 }),
          fc.array(fc.tuple(edits, fc.nat(8)), { maxLength: 8 }),
          fc.boolean(),
          (begun, steps, spoils) => {
            const [seenByOpencode, seenByPi, handed] = [nothingSeenByOpencode(), nothingSeenByPi(), new HandedLists()];
            const others = { system: 'be good', model: 'm', window: 9 };
            const check = <M>(own: HarnessList<M>, fresh: HarnessList<M>, from: number): void => {
              const context = contextFor(own, from);
              expect(told(own, context)).toBe(told(fresh, context));
              const list = composed(own, context);
              const text = canonicalJson(JSON.parse(JSON.stringify(list)));
              const expected = { sha256: hashText(text), chars: text.length, messages: list.length };
              expect(handed.of(composed({ ...own, ...own.kept() }, context))).toEqual(expected);
              if (spoils) spoil(list);
            };
            let history: readonly Said[] = begun;
            for (const [edit, from] of steps) {
              history = edited(history, edit);
              if (what === 'pi') {
                const messages = () => structuredClone(history.flatMap(pi));
                check(piList('s', messages(), { ...others, seen: seenByPi }), piList('s', messages(), others), from);
              } else {
                const messages = () => structuredClone(history.map(opencode));
                check(
                  opencodeList('s', messages(), { ...others, seen: seenByOpencode }),
                  opencodeList('s', messages(), others),
                  from,
                );
              }
            }
          },
        ),
      );
    },
  );

  test('is reported and hashed again if any member of an OpenCode message changes', () => {
    const ids = { sessionID: 's', messageID: 'm' };
    const state = {
      status: 'completed',
      input: { command: 'x' },
      output: 'out',
      metadata: { diff: 'a' },
      attachments: [{ url: 'u' }],
    } as const;
    const whole: OpencodeMessage = {
      info: {
        id: 'm',
        sessionID: 's',
        role: 'assistant',
        tokens: { input: 1, output: 2, cache: { read: 3, write: 4 } },
        time: { created: 1 },
      },
      parts: [
        { ...ids, id: 'p1', type: 'text', text: 'hello', ignored: false, time: { start: 1 } },
        { ...ids, id: 'p2', type: 'file', mime: 'image/png', url: 'data:', filename: 'a.png', source: { path: 'a' } },
        { ...ids, id: 'p3', type: 'tool', tool: 'bash', callID: 'c', state },
        {
          ...ids,
          id: 'p4',
          type: 'tool',
          tool: 'bash',
          callID: 'd',
          state: { status: 'error', input: {}, error: 'no' },
        },
      ],
    };
    const context = (own: HarnessList<OpencodeMessage>): LoopContext => contextFor(own, 0);
    let changed = 0;
    /** Yields each way to change one member of a value. */
    function* changes(value: unknown): Iterable<unknown> {
      if (typeof value === 'string') yield `${value}!`;
      else if (typeof value === 'number') yield value + 1;
      else if (typeof value === 'boolean') yield !value;
      else if (Array.isArray(value))
        for (const [i, one] of value.entries()) for (const other of changes(one)) yield value.with(i, other);
      else if (typeof value === 'object' && value !== null)
        for (const [name, one] of Object.entries(value))
          for (const other of changes(one)) yield { ...value, [name]: other };
    }
    for (const other of changes(whole) as Iterable<OpencodeMessage>) {
      const [seen, handed] = [nothingSeenByOpencode(), new HandedLists()];
      for (const message of [whole, other, whole]) {
        const own = opencodeList('s', [structuredClone(message)], { system: undefined, seen });
        const fresh = opencodeList('s', [structuredClone(message)], { system: undefined });
        expect(told(own, context(own))).toBe(told(fresh, context(fresh)));
        const list = composed(fresh, context(fresh));
        expect(handed.of(composed({ ...own, ...own.kept() }, context(own))).sha256).toBe(
          hashText(canonicalJson(JSON.parse(JSON.stringify(list)))),
        );
      }
      changed += 1;
    }
    expect(changed).toBeGreaterThan(40);
  });

  test('reports an unchanged message as the same object in every list', () => {
    const seen = nothingSeenByOpencode();
    const history = [0, 1, 2].map((i) => opencode({ user: i === 0, text: 'go', calls: 1, done: true }, i));
    const of = (count: number) =>
      opencodeList('s', structuredClone(history.slice(0, count)), { system: undefined, seen });
    const [before, after] = [of(2), of(3)];
    expect(after.list.messages.slice(0, 3).map((message, i) => message === before.list.messages[i])).toEqual([
      true,
      true,
      true,
    ]);
    expect(after.list.messages).toHaveLength(5);
  });
});

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import { LoopSession } from '../../../src/extensions/loop/loop-session.js';
import type { ReportedMessage } from '../../../src/harness/message-schema.js';
import { hashText } from '../../../src/objects/hashes.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { messageOf } from '../../../src/values/thrown.js';
import { openClient } from '../../support/context.js';
import { effort } from '../../support/effort.js';
import { requestOf } from '../../support/loop-messages.js';
import { temporaryRoot } from '../../support/mcp-clients.js';

const FILES = ['a.txt', 'b.txt'] as const;

/** Edits of a harness's history before its next list. A number is a place, modulo the length. */
const edit = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('work' as const),
      calls: fc.nat(2),
      silent: fc.boolean(),
      read: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.constant({ kind: 'ask' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'answer late' as const }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('change' as const), at: fc.nat(20), sameId: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('remove' as const), at: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('revert' as const), at: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('compact' as const), left: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('repeat' as const), at: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'verb' as const }) },
);
type Edit = typeof edit extends fc.Arbitrary<infer E> ? E : never;

/** One history as reported to one session. Its names end in the session's own tag. */
class Told {
  readonly #name: string;
  readonly #root: string;
  messages: readonly ReportedMessage[];
  compacted = false;
  #made = 0;
  #open: readonly string[] = [];

  constructor(name: string, root: string) {
    this.#name = name;
    this.#root = root;
    this.messages = [this.#said('user')];
  }

  /** Applies an edit. Returns the id if the edit is a verb for the session. */
  take(one: Edit): string | undefined {
    const at = 'at' in one ? one.at % this.messages.length : 0;
    const before = this.messages;
    switch (one.kind) {
      case 'ask':
        this.messages = [...before, this.#said('user')];
        return undefined;
      case 'work':
        this.#work(one);
        return undefined;
      case 'answer late':
        this.messages = [...before, ...this.#open.map((id) => this.#result(id, 'late'))];
        this.#open = [];
        return undefined;
      case 'change':
        this.messages = before.map((message, i) => (i === at ? this.#changed(message, one.sameId) : message));
        return undefined;
      case 'remove':
        this.messages = before.filter((_, i) => i !== at || before.length === 1);
        return undefined;
      case 'revert':
        this.messages = before.slice(0, Math.max(1, at));
        return undefined;
      case 'compact':
        this.compacted = true;
        this.messages = [
          this.#said('compaction'),
          ...before.slice(before.length - Math.min(one.left, before.length)),
          this.#said('user'),
        ];
        return undefined;
      case 'repeat':
        this.messages = [...before, { ...(before[at] as ReportedMessage) }];
        return undefined;
      default:
        return this.#verb();
    }
  }

  #id(kind: string): string {
    this.#made += 1;
    return `${kind}${String(this.#made).padStart(5, '0')}-${this.#name}`;
  }

  #said(role: string, content?: string): ReportedMessage {
    const id = this.#id('message');
    return { role, content: content ?? `${id} is what the ${role} says`, id };
  }

  #result(id: string, content: string): ReportedMessage {
    return { role: 'tool', tool_call_id: id, content: `${content} of ${id}` };
  }

  #changed(message: ReportedMessage, sameId: boolean): ReportedMessage {
    const content = `${String(message.content)}, changed`;
    return message.id === undefined || sameId
      ? { ...message, content }
      : { ...message, content, id: this.#id('message') };
  }

  #work({ calls, silent, read }: Extract<Edit, { kind: 'work' }>): void {
    const ids = Array.from({ length: calls }, () => this.#id('call'));
    const args = read ? { path: join(this.#root, FILES[calls % 2] ?? '') } : { command: 'make' };
    const tool_calls = ids.map((id) => ({ id, name: read ? 'read' : 'bash', arguments: args }));
    const message = { ...this.#said('assistant', silent ? '' : undefined), tool_calls };
    // The last of several calls is still running.
    const done = ids.length > 1 ? ids.slice(0, -1) : ids;
    this.#open = ids.slice(done.length);
    this.messages = [
      ...this.messages,
      message,
      ...done.map((id) => this.#result(id, read ? 'first line\nsecond line' : 'output')),
    ];
  }

  #verb(): string {
    const id = this.#id('call');
    const tool_calls = [{ id, name: 'activate', arguments: { ids: [join(this.#root, 'b.txt')] } }];
    this.messages = [
      ...this.messages,
      { ...this.#said('assistant', ''), tool_calls },
      { role: 'tool', tool_call_id: id, content: 'activated' },
    ];
    return id;
  }
}

describe('a session whose lists continue the previous ones', () => {
  let root: string;
  let client: ContextClient;
  let remove: () => Promise<void>;
  let runs = 0;
  let now = Date.parse('2026-11-24T10:00:00Z');

  beforeAll(async () => {
    ({ root, remove } = await temporaryRoot());
    client = await openClient(root, { clock: () => now });
    for (const file of FILES) await writeFile(join(root, file), `first line of ${file}\nsecond line`);
  });
  afterAll(async () => {
    await client.close();
    await remove();
  });

  test('delivers the same bytes and records the same chat as one with fresh lists, for any edits', async () => {
    let grown = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(edit, fc.boolean()), { minLength: 4, maxLength: 14 }),
        fc.constantFrom('epoch' as const, 'ssot' as const, 'chat-first' as const),
        async (steps, layout) => {
          runs += 1;
          const tags = ['same', 'anew'].map((what) => `${what}-${process.pid}-${runs}`);
          const told = tags.map((tag) => new Told(tag, root));
          const loops = tags.map((id) => new LoopSession(client, { id, delivered: 'opencode', layout }));
          const without = (value: unknown, place: number): string =>
            JSON.stringify(value).replaceAll(tags[place] ?? '', 'TAG');
          /** The session's context for the current list. */
          const asked = async (place: number, followed: boolean, verb: string | undefined): Promise<string> => {
            const [loop, { messages, compacted }] = [loops[place] as LoopSession, told[place] as Told];
            const list = () => (place === 0 ? [...messages] : structuredClone([...messages]));
            try {
              if (verb !== undefined) await loop.verb('activate', [join(root, 'b.txt')], verb);
              if (followed) await loop.follow({ messages: list(), system: 'be good', compacted });
              const context = await loop.context({ messages: list(), system: 'be good', compacted });
              if (context === undefined) return 'none';
              const lines = requestOf(messages, context);
              const text = lines.join('\n');
              await loop.handed({ sha256: hashText(text), chars: text.length, messages: lines.length });
              const { marks = [], sets } = loop.session?.state ?? {};
              const chat = marks.map(({ seq, turn, message, native, event, call }) => ({
                seq,
                turn,
                message,
                native,
                event,
                call,
              }));
              return without([lines, context, chat, sets], place);
            } catch (error) {
              return without(messageOf(error), place);
            }
          };
          for (const [one, followed] of steps) {
            now += 1_000;
            const verbs = told.map((history) => history.take(one));
            // A verb needs a session, which the first list opens.
            const opened = loops.every(({ session }) => session !== undefined);
            const [same, anew] = [
              await asked(0, followed, opened ? verbs[0] : undefined),
              await asked(1, followed, opened ? verbs[1] : undefined),
            ];
            expect(same).toBe(anew);
            if (one.kind === 'work') grown += 1;
          }
          for (const loop of loops) await loop.close();
          const { contexts } = await verifySession(await client.delivered(), tags[0] ?? '');
          expect(contexts.unequal).toEqual([]);
        },
      ),
      { numRuns: effort(8, 120) },
    );
    expect(grown).toBeGreaterThan(5);
  });
});

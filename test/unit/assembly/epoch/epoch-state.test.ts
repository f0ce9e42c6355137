import { describe, expect, test } from '@jest/globals';
import { applyPatch } from 'diff';
import fc from 'fast-check';
import { EPOCH_GUIDE, guideText } from '../../../../src/assembly/epoch/epoch-guide.js';
import {
  beginEpoch,
  type EpochInput,
  type EpochState,
  epochText,
  noteInputOf,
  renderEpoch,
  withNote,
} from '../../../../src/assembly/epoch/epoch-state.js';
import { planNote, type ShownByTail } from '../../../../src/assembly/epoch/plan-note.js';
import type { ObjectMetadata } from '../../../../src/assembly/metadata.js';
import { sectionRecords } from '../../../../src/assembly/render-messages.js';
import { keptList } from '../../../../src/harness/growing-tail.js';
import { keptMessages } from '../../../../src/harness/kept-messages.js';
import type { ReportedMessage } from '../../../../src/harness/message-schema.js';
import type { PlacedEntry } from '../../../../src/harness/reported-chat.js';
import { canonicalJson } from '../../../../src/objects/canonical-json.js';
import { hashText } from '../../../../src/objects/hashes.js';
import { type ObjectId, objectId } from '../../../../src/objects/ids.js';
import type { Message } from '../../../../src/objects/object-type.js';
import type { ChatMark } from '../../../../src/session/session-fold.js';
import { callOf, fileOf, inputOf } from '../objects.js';

/** An event between two model calls. */
type Act =
  | {
      readonly kind: 'read' | 'change' | 'edit' | 'mention' | 'activate' | 'deactivate' | 'delete';
      readonly file: number;
    }
  | { readonly kind: 'shell' | 'recall' | 'say' | 'call' };

const FILES = 4;
const act: fc.Arbitrary<Act> = fc.oneof(
  fc.record({
    kind: fc.constantFrom('read', 'change', 'edit', 'mention', 'activate', 'deactivate', 'delete'),
    file: fc.nat(FILES - 1),
  }) as fc.Arbitrary<Act>,
  fc.record({ kind: fc.constantFrom('shell', 'recall', 'say', 'call') }) as fc.Arbitrary<Act>,
);

/** Uses only two files, so that they are read again and change in between. */
const ofTwo = act.map((one) => ('file' in one ? { ...one, file: one.file % 2 } : one));

/** Mostly reads. */
const reading: fc.Arbitrary<Act> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('read'), file: fc.nat(1) }) as fc.Arbitrary<Act> },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom('change', 'edit', 'deactivate'),
      file: fc.nat(1),
    }) as fc.Arbitrary<Act>,
  },
  { weight: 1, arbitrary: fc.constant<Act>({ kind: 'shell' }) },
);

/** A session and the list of its harness, in memory. */
class World {
  readonly messages: ReportedMessage[] = [];
  readonly placed: PlacedEntry[] = [];
  readonly calls: (ObjectMetadata<'toolcall'> & { readonly output: string })[] = [];
  readonly known = new Set<number>();
  readonly active = new Set<ObjectId>();
  readonly said: Message[] = [];
  readonly marks: ChatMark[] = [];
  readonly index: ObjectId[] = [];
  turn = 0;
  readonly texts: (string | null)[] = Array.from({ length: FILES }, (_, i) =>
    Array.from({ length: 40 }, (__, n) => `line ${n} of file ${i}`).join('\n'),
  );
  #edits = 0;
  #answer: number | undefined;

  static file(i: number): ObjectId {
    return objectId(`${'abcd'[i]}${'f'.repeat(i)}0123456789${i}`);
  }

  /**
   * Adds one answer of the model: one message with its calls, and their results. Then the user may
   * speak.
   */
  round(acts: readonly Act[]): void {
    this.#answer = undefined;
    const ends = acts.findIndex(({ kind }) => kind === 'say');
    for (const [i, one] of acts.entries()) if (ends < 0 || i <= ends || one.kind === 'change') this.take(one);
  }

  take(one: Act): void {
    switch (one.kind) {
      case 'say':
        this.turn += 1;
        this.messages.push({ role: 'user', content: `request ${this.turn}` });
        this.said.push({ role: 'user', text: `request ${this.turn}` });
        this.#mark({ message: { role: 'user', text: `request ${this.turn}` } });
        return;
      case 'shell':
        this.#call('bash', { command: 'run' }, `output ${this.calls.length}`, []);
        return;
      case 'recall': {
        const first = this.calls.find(({ id }) => !this.active.has(id));
        if (first !== undefined) this.active.add(first.id);
        return;
      }
      case 'call':
        return;
      case 'read': {
        const text = this.texts[one.file];
        if (text === null || text === undefined) return;
        this.#know(one.file);
        this.active.add(World.file(one.file));
        this.#call('read', { path: `f${one.file}` }, text, [World.file(one.file)]);
        return;
      }
      case 'mention':
        this.#know(one.file);
        return;
      case 'activate':
        this.#know(one.file);
        this.active.add(World.file(one.file));
        return;
      case 'deactivate':
        this.active.delete(World.file(one.file));
        return;
      case 'delete':
        if (this.known.has(one.file)) this.texts[one.file] = null;
        return;
      case 'change':
        this.#edits += 1;
        this.texts[one.file] = `${this.texts[one.file] ?? ''}\nchanged ${this.#edits}`;
        return;
      case 'edit': {
        const before = this.texts[one.file];
        const from = before?.split('\n').at(3);
        if (before === null || before === undefined || from === undefined || before.split(from).length !== 2) return;
        this.#edits += 1;
        this.#know(one.file);
        // Long enough for a block to show the written text.
        const newText = `edited ${this.#edits} in ${one.file}${' as the request asked for'.repeat(2)}`;
        const args = { path: `f${one.file}`, oldText: from, newText };
        this.texts[one.file] = before.replace(from, newText);
        this.#call('edit', args, 'done', [World.file(one.file)]);
      }
    }
  }

  input(): EpochInput {
    const files = [...this.known].map((i) => {
      const text = this.texts[i] ?? null;
      return fileOf(World.file(i), text, { displayPath: `/p/f${i}`, state: text === null ? 'deleted' : 'indexed' });
    });
    const pool = this.index.map(
      (id) => files.find((file) => file.id === id) ?? this.calls.find((call) => call.id === id),
    ) as ObjectMetadata[];
    const content = (metadata: ObjectMetadata): string | null =>
      metadata.type === 'file'
        ? (this.texts[[...this.known].find((i) => World.file(i) === metadata.id) ?? 0] ?? null)
        : (this.calls.find(({ id }) => id === metadata.id)?.output ?? null);
    const active = [...this.active].map((id) => pool.find((one) => one.id === id) as ObjectMetadata);
    const turns = [
      {
        turn: this.turn,
        messages: this.said.map((message, i) =>
          i < this.said.length - 1 ? message : { ...message, toolcall_refs: this.calls.map(({ id }) => id) },
        ),
      },
    ];
    return {
      ...inputOf({
        pool,
        turns,
        active: active.map((metadata) => ({ metadata, content: content(metadata), ...this.#made(metadata.id) })),
      }),
      options: { strict: false, shortIds: false, described: true, inputs: true },
      index: this.index,
      chatSince: (step) => this.marks.filter(({ seq }) => seq > step),
    };
  }

  #made(id: ObjectId): { readonly call?: { readonly tool: string; readonly args: unknown } } {
    const call = this.calls.find((one) => one.id === id);
    return call === undefined ? {} : { call: { tool: call.tool, args: argumentsOf(this, id) } };
  }

  #mark(mark: Pick<ChatMark, 'message' | 'call'>): void {
    this.marks.push({ seq: this.marks.length + 1, turn: this.turn, ...mark });
  }

  #know(i: number): void {
    if (this.known.has(i)) return;
    this.known.add(i);
    this.index.push(World.file(i));
  }

  #call(tool: string, args: Record<string, unknown>, output: string, fileRefs: readonly ObjectId[]): void {
    // Ids with a common beginning, so that short ids become ambiguous.
    const id = objectId(`call_of_this_test_${this.calls.length}`);
    const shown = String(args.path ?? args.command);
    this.calls.push({ ...callOf(id, output, { tool, fileRefs, wholeRead: tool === 'read', args: shown }), output });
    this.index.push(id);
    this.active.add(id);
    for (const old of this.calls.slice(0, -3)) this.active.delete(old.id);
    const before = this.#answer === undefined ? [] : (this.messages[this.#answer]?.tool_calls ?? []);
    if (this.#answer === undefined) this.#mark({ message: { role: 'assistant', text: `step ${this.calls.length}` } });
    this.#mark({ call: id });
    this.#answer ??= this.messages.length;
    this.messages[this.#answer] = {
      role: 'assistant',
      content: '',
      tool_calls: [...before, { id, name: tool, arguments: args }],
    };
    this.messages.push({ role: 'toolResult', tool_call_id: id, content: output });
    this.placed.push({
      index: this.messages.length - 1,
      kind: 'call',
      turn: this.turn,
      seq: this.calls.length,
      callId: id,
    });
  }
}

/** Returns the body of a block without the lines of what an edit wrote. */
const resultOf = (lines: readonly string[]): string => lines.slice(lines.indexOf('[result]') + 1).join('\n');

/** Returns the request: one line for each message, ours and the harness's. */
function requestOf(
  { before, notes, lines }: EpochState,
  messages: readonly ReportedMessage[],
  from: number,
): readonly string[] {
  const own = messages
    .slice(from)
    .map((message) =>
      lines.has(message.tool_call_id as ObjectId)
        ? { ...message, content: lines.get(message.tool_call_id as ObjectId) }
        : message,
    )
    .flatMap((message, i) => [
      message,
      ...notes.flatMap(({ after, message: note }) => (after === i + 1 ? [note] : [])),
    ]);
  return [...before, ...own].map((message) => JSON.stringify(message));
}

function argumentsOf({ messages }: World, id: string | undefined): Readonly<Record<string, string>> {
  const calls = messages.flatMap(({ tool_calls: made = [] }) => made);
  return (calls.find((made) => made.id === id)?.arguments ?? {}) as Readonly<Record<string, string>>;
}

/**
 * Reads the request from beginning to end and returns the text of an object: its shown text plus
 * its changes. A change refers to a text that the request has already shown.
 */
function readText(state: EpochState, world: World, id: ObjectId, from = 0): string | null | undefined {
  let text: string | null | undefined;
  const texts: string[] = [];
  const take = ({ parts }: EpochState['before'][number]): void => {
    for (const part of parts.filter((one) => one.id === id)) {
      const [header = '', ...lines] = part.text.split('\n');
      const body = resultOf(lines);
      if (!header.endsWith('changed=lines')) text = part.text.includes('\n') ? body : null;
      else text = texts.flatMap((one) => applyPatch(one, `--- a\n+++ b\n${body}\n`, { fuzzFactor: 0 }) || []).at(-1);
      if (typeof text === 'string') texts.push(text);
    }
  };
  for (const message of state.before) take(message);
  for (const [i, { content, tool_call_id: result }] of world.messages.slice(from).entries()) {
    const made = world.calls.find((call) => call.id === result);
    const args = argumentsOf(world, result);
    const line = state.lines.get(result as ObjectId);
    if (line !== undefined && made?.fileRefs.includes(id)) {
      const [first = '', ...changed] = line.split('\n');
      // A change refers to a whole text above it.
      text = first.includes('is unchanged')
        ? texts.find((one) => one === content)
        : texts
            .flatMap((one) => applyPatch(one, `--- a\n+++ b\n${changed.join('\n')}\n`, { fuzzFactor: 0 }) || [])
            .at(-1);
      expect(text).toBe(content);
      if (typeof text === 'string') texts.push(text);
    } else if (made?.id === id || (made?.tool === 'read' && made.fileRefs.includes(id))) {
      text = String(content);
      texts.push(text);
    }
    if (made?.tool === 'edit' && made.fileRefs.includes(id) && typeof text === 'string') {
      text = text.replace(args.oldText ?? '', args.newText ?? '');
      texts.push(text);
    }
    for (const { after, message } of state.notes) if (after === i + 1) take(message);
  }
  return text;
}

/** Returns the names in the lines of files that a request has. */
function listedFiles({ before, notes }: EpochState): ReadonlySet<string> {
  const texts = [...before, ...notes.map(({ message }) => message)].flatMap(({ parts }) => parts);
  const lines = texts.flatMap(({ text }) => text.split('\n'));
  return new Set(lines.flatMap((line) => /^id=(\S+) type=file /.exec(line)?.[1] ?? []));
}

/** Returns the names of the files that a request refers to by id. */
const namedFiles = ({ blocks, names }: EpochState, world: World): ReadonlySet<string> =>
  new Set(blocks.flatMap(({ id }) => (world.calls.some((call) => call.id === id) ? [] : [String(names.get(id))])));

const partsOf = ({ before, notes }: EpochState): readonly string[] =>
  [...before, ...notes.map(({ message }) => message)].map((message) => JSON.stringify(message));

/**
 * Returns the text of an object from the notes alone. A line that names a file stands for the
 * file's text there.
 */
function readNotes({ notes, names }: EpochState, id: ObjectId): string | null | undefined {
  const texts = new Map<ObjectId, string | null>();
  for (const { text: part, id: object } of notes.flatMap(({ message }) => message.parts)) {
    if (object === undefined) continue;
    const [header = '', ...lines] = part.split('\n');
    const body = resultOf(lines);
    const file = [...names].find(([, name]) => body === `file_ref id=${name}`)?.[0];
    const before = texts.get(object);
    if (file !== undefined) texts.set(object, texts.get(file) ?? null);
    else if (header.endsWith('changed=lines'))
      texts.set(object, applyPatch(before ?? '', `--- a\n+++ b\n${body}\n`, { fuzzFactor: 0 }) || null);
    else texts.set(object, part.includes('\n') ? body : null);
  }
  return texts.get(id);
}

/** Expects the record of a request to hash the canonical JSON of its parts. */
function expectRecorded(state: EpochState, input: EpochInput): void {
  const { before, notes, lines } = state;
  const { system, record } = renderEpoch(state, input, { tail: { turn: 1, results: [] } });
  const text = canonicalJson({ system, before, notes, ...(lines.size === 0 ? {} : { lines: [...lines] }) });
  expect(epochText({ system, before, notes, lines })).toBe(text);
  expect([record.chars, record.sha256]).toEqual([text.length, hashText(text)]);
  expect(record.sections).toEqual(sectionRecords(system, [...before, ...notes.map(({ message }) => message)]));
}

describe('an epoch (divergence E9)', () => {
  test('continues the previous request, shows active texts, lists the files that it names by id', () => {
    fc.assert(
      fc.property(fc.array(fc.array(act, { maxLength: 4 }), { maxLength: 12 }), (rounds) => {
        const world = new World();
        world.take({ kind: 'say' });
        let state = beginEpoch(world.input(), world.turn);
        let list = keptList(world.messages, 0);
        let before = requestOf(state, world.messages, 0);
        for (const round of rounds) {
          world.round(round);
          const input = world.input();
          const kept = keptMessages(world, list);
          if (kept === undefined) throw new Error('the list changed');
          const note = planNote(state, input, kept.shown(input));
          const again = note === undefined ? state : withNote(state, note, noteInputOf(input));
          state = note === undefined ? state : withNote(state, note, noteInputOf(input));
          expect(again).toEqual(state);
          expectRecorded(state, input);
          list = kept.list;
          const request = requestOf(state, world.messages, 0);
          expect(request.slice(0, before.length)).toEqual(before);
          before = request;
          for (const { metadata, content } of input.active) {
            expect([metadata.id, readText(state, world, metadata.id)]).toEqual([metadata.id, content]);
          }
          expect(listedFiles(state)).toEqual(namedFiles(state, world));
          const since = keptMessages(world, list)?.shown(input);
          expect(since === undefined ? since : planNote(state, input, since)).toBeUndefined();
        }
      }),
      { numRuns: 300 },
    );
  });

  test('shows one line with a unique id for every object, and the text that an active edit wrote', () => {
    fc.assert(
      fc.property(fc.array(fc.array(act, { maxLength: 4 }), { maxLength: 12 }), (rounds) => {
        const world = new World();
        world.take({ kind: 'say' });
        for (const round of rounds) world.round(round);
        const input = world.input();
        const base = beginEpoch(input, world.turn + 1);
        const text = base.before.flatMap(({ parts }) => parts.map((part) => part.text)).join('\n');
        const lines = text.split('\n');
        for (const metadata of input.pool) {
          const name = base.names.get(metadata.id) ?? '';
          // A whole id names its object, even if it is the beginning of another id.
          const named = world.index.filter((id) => (name === metadata.id ? id === name : id.startsWith(name)));
          expect(named).toEqual([metadata.id]);
          const shown =
            metadata.type === 'file'
              ? `id=${name} type=file path=${metadata.displayPath} `
              : `toolcall_ref id=${name} tool=${metadata.tool} status=ok args=${metadata.args}`;
          expect(
            lines.filter((line) => (metadata.type === 'file' ? line.startsWith(shown) : line === shown)),
          ).toHaveLength(1);
          if (metadata.type === 'toolcall' && metadata.tool === 'edit' && world.active.has(metadata.id))
            expect(text).toContain(`[newText]\n${argumentsOf(world, metadata.id).newText}\n[result]\ndone`);
        }
      }),
      { numRuns: 100 },
    );
  });

  test('replaces a repeated read by a line that refers to a text above it, in a block or an answer', () => {
    let unchanged = 0;
    let changed = 0;
    fc.assert(
      fc.property(
        fc.array(reading, { maxLength: 8 }),
        fc.array(fc.array(reading, { maxLength: 3 }), { minLength: 4, maxLength: 14 }),
        (first, rounds) => {
          const world = new World();
          for (const one of [{ kind: 'say' } as const, ...first, { kind: 'say' } as const]) world.take(one);
          const from = world.messages.length - 1;
          let state = beginEpoch(world.input(), world.turn);
          let list = keptList(world.messages, from);
          for (const round of rounds) {
            world.round(round);
            const input = world.input();
            const kept = keptMessages(world, list);
            if (kept === undefined) throw new Error('the list changed');
            const note = planNote(state, input, kept.shown(input));
            if (note !== undefined) state = withNote(state, note, noteInputOf(input));
            expectRecorded(state, input);
            list = kept.list;
            for (const { metadata, content } of input.active)
              if (metadata.type === 'file')
                expect([metadata.id, readText(state, world, metadata.id, from)]).toEqual([metadata.id, content]);
          }
          for (const [call, line] of state.lines) {
            if (line.includes('is unchanged')) unchanged += 1;
            else changed += 1;
            const { output } = world.calls.find(({ id }) => id === call) as { readonly output: string };
            expect(line.length).toBeLessThan(output.length);
          }
        },
      ),
      { numRuns: 150 },
    );
    expect(Math.min(unchanged, changed)).toBeGreaterThan(20);
  });

  test('shows the recorded chat once and in order if the harness gives no list; repeated outputs are one line', () => {
    fc.assert(
      fc.property(fc.array(fc.array(ofTwo, { maxLength: 6 }), { maxLength: 12 }), (rounds) => {
        const world = new World();
        world.take({ kind: 'say' });
        let upTo = 0;
        let state = beginEpoch(world.input(), world.turn);
        for (const round of rounds) {
          world.round(round);
          const input = world.input();
          const tail: ShownByTail = { count: 0, results: new Set(), shows: () => false, reads: [], chatUpTo: upTo };
          const note = planNote(state, input, tail);
          const before = partsOf(state);
          if (note !== undefined) state = withNote(state, note, noteInputOf(input));
          expect(partsOf(state).slice(0, before.length)).toEqual(before);
          upTo = world.marks.length;
          expect(planNote(state, input, { ...tail, chatUpTo: upTo })).toBeUndefined();
          for (const { metadata, content } of input.active)
            expect([metadata.id, readNotes(state, metadata.id)]).toEqual([metadata.id, content]);
        }
        const chat = state.notes.flatMap(({ message }) =>
          message.section === 'chat' ? message.parts.flatMap(({ text }) => text.split('\n')) : [],
        );
        const said = world.marks.slice(0, upTo).map(({ message, call }) => message?.text ?? `toolcall_ref id=${call}`);
        expect(chat.map((line) => line.replace(/ tool=.*/, ''))).toEqual(said);
      }),
      { numRuns: 300 },
    );
  });

  test('renders the same state to the same bytes; a short name is unique, or its line appears again', () => {
    fc.assert(
      fc.property(fc.array(act, { maxLength: 30 }), fc.array(act, { maxLength: 10 }), (first, more) => {
        const world = new World();
        for (const one of [{ kind: 'say' } as const, ...first]) world.take(one);
        const input = world.input();
        const place = { tail: { turn: 1, results: [] } };
        const [one, other] = [beginEpoch(input, 1), beginEpoch(world.input(), 1)].map(
          (state) => renderEpoch(state, input, place).record,
        );
        expect(one).toEqual(other);
        const begun = beginEpoch(input, 2);
        for (const each of more) world.take(each);
        const later = world.input();
        const note = planNote(begun, later, { count: 1, results: new Set(), shows: () => true, reads: [] });
        const names = note === undefined ? begun.names : withNote(begun, note, noteInputOf(later)).names;
        for (const [id, name] of names)
          expect(later.index.filter((each) => each.startsWith(name) && each !== id && name !== id)).toEqual([]);
      }),
    );
  });

  test('orders the base from stable to volatile: chat, lines of files, contents; only the chat lists calls', () => {
    const world = new World();
    for (const kind of ['say', 'shell'] as const) world.take({ kind });
    world.take({ kind: 'read', file: 0 });
    world.take({ kind: 'mention', file: 1 });
    const { before } = beginEpoch(world.input(), 2);
    expect(before.map(({ section, parts }) => [section, parts.length])).toEqual([
      ['chat', 1],
      ['pool', 1],
      ['active', 3],
    ]);
    expect(before[0]?.parts[0]?.text).toBe(
      'user: request 1\ntoolcall_ref id=call_of_this_test_0 tool=bash status=ok args=run\ntoolcall_ref ' +
        'id=call_of_this_test_1 tool=read status=ok args=f0',
    );
    expect(before[1]?.parts[0]?.text).toBe(
      'id=a0123456 type=file path=/p/f0 file_type=ts char_count=709\nid=bf012345 type=file path=/p/f1 ' +
        'file_type=ts char_count=709',
    );
  });

  test('shows the guide once, before our first text, and shows no guide without our text', () => {
    const guide = guideText(EPOCH_GUIDE);
    const world = new World();
    const guided = (): EpochInput => {
      const input = world.input();
      return { ...input, options: { ...input.options, guide: EPOCH_GUIDE } };
    };
    const textsIn = ({ before, notes }: EpochState): readonly string[] =>
      [...before, ...notes.map(({ message }) => message)].flatMap(({ parts }) => parts.map(({ text }) => text));
    const goOn = (state: EpochState, active: number): EpochState => {
      world.active.add(World.file(active));
      const input = guided();
      return withNote(state, { after: 1, contents: [World.file(active)] }, noteInputOf(input));
    };
    world.take({ kind: 'say' });
    world.take({ kind: 'mention', file: 0 });
    world.take({ kind: 'mention', file: 1 });
    const first = { ...beginEpoch(guided(), 1), before: [] };
    expect(textsIn(beginEpoch({ ...guided(), pool: [], index: [] }, 1))).toEqual([]);
    const noted = goOn(first, 0);
    expect(textsIn(noted)[0]).toBe(guide);
    expect(textsIn(goOn(noted, 1)).filter((text) => text === guide)).toHaveLength(1);
    const base = beginEpoch(guided(), 2);
    expect(textsIn(base)[0]).toBe(guide);
    expect(textsIn(goOn(base, 1)).filter((text) => text === guide)).toHaveLength(1);
    expect(renderEpoch(base, guided(), { tail: { turn: 2, results: [] } }).record.options.guide).toBe(EPOCH_GUIDE);
    // Requests without a guide are rebuilt without one, and so are those with a guide of a later
    // program.
    expect(textsIn(beginEpoch(world.input(), 2))).not.toContain(guide);
    const later = { ...guided(), options: { ...guided().options, guide: 1_000 } };
    expect(textsIn(beginEpoch(later, 2))).toEqual(textsIn(beginEpoch(world.input(), 2)));
    // Records name the guide's version, so its text must never change.
    expect(hashText(guide)).toBe('5658b910af7e47d410cdecc5f6055070f3957874fb185d3f839533e9ffef5b86');
  });
});

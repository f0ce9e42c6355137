import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { assemble } from '../../../src/assembly/assemble.js';
import { GrowingContext } from '../../../src/assembly/growing-context.js';
import type { ObjectMetadata } from '../../../src/assembly/metadata.js';
import { chatAfter, NO_CHAT, turnsOf } from '../../../src/objects/chat-log.js';
import { type ObjectId, objectId } from '../../../src/objects/ids.js';
import type { Step } from '../../../src/objects/step.js';
import { callOf, fileOf, inputOf } from './objects.js';

/** A session whose next contexts are rendered in both ways. */
class TwoWays {
  readonly #growing: GrowingContext;
  readonly #strict: boolean;
  readonly #known = new Map<ObjectId, { metadata: ObjectMetadata; content: string | null }>();
  readonly #changed = new Set<ObjectId>();
  readonly #index: ObjectId[] = [];
  #chat = NO_CHAT;
  #active: ObjectId[] = [];
  #prompt: string | null = null;
  #seq = 0;
  #turn = 0;
  /** Contents that were asked for. */
  asked = 0;

  constructor(strict: boolean) {
    this.#strict = strict;
    this.#growing = new GrowingContext(strict);
  }

  setPrompt(prompt: string | null): void {
    this.#prompt = prompt;
  }

  say(role: string, text: string): void {
    if (role === 'user') this.#turn += 1;
    this.#step({ message: { role, text } });
  }

  learn(metadata: ObjectMetadata, content: string | null): void {
    const { id } = metadata;
    if (!this.#known.has(id)) this.#index.push(id);
    this.#known.set(id, { metadata, content });
    this.#changed.add(id);
  }

  call(output: string, by: number | undefined, read: ObjectId | undefined): void {
    const id = `c${this.#seq}`;
    const refs = read === undefined ? {} : { fileRefs: [read], wholeRead: true };
    this.learn(callOf(id, output, refs), output);
    this.#step({ call: { id: objectId(id) }, ...(by === undefined ? {} : { by }) });
    this.activate(this.#index.length - 1);
  }

  /** Puts an object of the index at the end of the active set, or takes it out. */
  activate(place: number): void {
    const id = this.#index[place % Math.max(1, this.#index.length)];
    if (id === undefined) return;
    const rest = this.#active.filter((one) => one !== id);
    this.#active = rest.length === this.#active.length ? [...rest, id] : rest;
  }

  #step(step: object): void {
    this.#seq += 1;
    this.#chat = chatAfter(this.#chat, { ...step, seq: this.#seq, turn: this.#turn } as Step);
  }

  /** Renders the present context in both ways. */
  render() {
    const metadata = (id: ObjectId) => this.#known.get(id)?.metadata;
    const missing = this.#growing.missing({ active: this.#active, metadata });
    const { record, bytes } = this.#growing.next({
      systemPrompt: this.#prompt,
      index: this.#index,
      changed: this.#changed,
      metadata,
      chat: this.#chat,
      active: this.#active,
      content: (id) => {
        if (!missing.includes(id)) throw new Error(`${id} was not asked for`);
        this.asked += 1;
        return this.#known.get(id)?.content ?? null;
      },
    });
    this.#changed.clear();
    const pool = this.#index.flatMap((id) => metadata(id) ?? []);
    const active = this.#active.flatMap((id) => this.#known.get(id) ?? []);
    const input = inputOf({
      systemPrompt: this.#prompt,
      pool,
      turns: turnsOf(this.#chat),
      active,
      strict: this.#strict,
    });
    const whole = assemble(input);
    return { growing: { ...record }, bytes, whole: { ...whole.record, sections: whole.record.sections }, input: whole };
  }
}

const text = fc.oneof(
  fc.constant(''),
  fc.string({ unit: 'grapheme', maxLength: 30 }).map((one) => one.toWellFormed()),
);
const change = fc.oneof(
  fc.record({ kind: fc.constant('say'), role: fc.constantFrom('user', 'assistant', 'system'), text }),
  fc.record({ kind: fc.constant('file'), name: fc.nat(4), text: fc.option(text), gone: fc.boolean() }),
  fc.record({ kind: fc.constant('call'), text, by: fc.option(fc.nat(20)), file: fc.option(fc.nat(4)) }),
  fc.record({ kind: fc.constant('activate'), place: fc.nat(30) }),
  fc.record({ kind: fc.constant('prompt'), text: fc.option(text) }),
  fc.constant({ kind: 'render' } as const),
);

const fileNamed = (name: number): ObjectId => objectId(`f${name}`);

test('each context of a growing session has the record that a whole rendering has', () => {
  fc.assert(
    fc.property(fc.boolean(), fc.array(change, { maxLength: 60 }), (strict, changes) => {
      const session = new TwoWays(strict);
      for (const one of [...changes, { kind: 'render' } as const]) {
        if ('role' in one) session.say(one.role, one.text);
        else if ('by' in one)
          session.call(one.text, one.by ?? undefined, one.file === null ? undefined : fileNamed(one.file));
        else if ('name' in one) {
          const content = one.gone ? null : one.text;
          const state = one.gone ? ({ state: 'deleted' } as const) : {};
          session.learn(fileOf(`f${one.name}`, content, state), content);
        } else if ('place' in one) session.activate(one.place);
        else if (one.kind === 'prompt' && 'text' in one) session.setPrompt(one.text);
        else {
          const { growing, bytes, whole, input } = session.render();
          expect(growing).toEqual(whole);
          expect(Object.fromEntries(bytes)).toEqual(
            Object.fromEntries(input.sections.map(({ name, text: own }) => [name, Buffer.byteLength(own)])),
          );
        }
      }
    }),
  );
});

test('a context asks for the contents of new blocks only', () => {
  const session = new TwoWays(false);
  session.say('user', 'go');
  const counts = Array.from({ length: 40 }, (_, i) => {
    session.call(`output ${i} ${'x'.repeat(5_000)}`, undefined, undefined);
    session.asked = 0;
    const { growing, whole } = session.render();
    expect(growing.sha256).toBe(whole.sha256);
    return session.asked;
  });
  expect(new Set(counts)).toEqual(new Set([1]));
});

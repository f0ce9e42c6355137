import { createHash } from 'node:crypto';
import { type ChatLog, GrowingRows } from '../objects/chat-log.js';
import type { ObjectId, Sha256 } from '../objects/ids.js';
import type { Message } from '../objects/object-type.js';
import { blockText } from './assemble.js';
import { type AssemblyRecord, type BlockPlace, RENDERER_VERSION, type SectionName } from './assembly-record.js';
import { GrowingText, pieceOf, type TextPiece } from './growing-text.js';
import { blockOf, chatEntry, chatLines, repeatedFile } from './layout.js';
import { metadataLine, namesOf, type ObjectMetadata } from './metadata.js';

/** A session's state for its next context, with full ids. */
export interface GrowingInput {
  readonly systemPrompt: string | null;
  /** The index. It begins with the index of the previous context. */
  readonly index: readonly ObjectId[];
  /** Objects whose metadata may differ from the previous context. */
  readonly changed: ReadonlySet<ObjectId>;
  readonly metadata: (id: ObjectId) => ObjectMetadata | undefined;
  readonly chat: ChatLog;
  readonly active: readonly ObjectId[];
  /** Returns a content that `GrowingContext.missing` named. */
  readonly content: (id: ObjectId) => string | null;
}

/** The record of a context, with the UTF-8 sizes of its sections. */
export interface GrowingRecord {
  readonly record: AssemblyRecord;
  readonly bytes: ReadonlyMap<SectionName, number>;
}

type Described = Pick<GrowingInput, 'metadata' | 'active'>;
type Section = { readonly name: SectionName; readonly text: GrowingText };

interface KnownBlock {
  readonly key: string;
  readonly place: number;
  /** UTF-16 units of the header line. */
  readonly header: number;
}

const fullName = namesOf([], false);

/**
 * The contexts of one session's model calls, each rendered from the previous one. A record equals
 * that of `assemble` for the same state. Rendering a context costs only the changed parts and one
 * pass of the hash.
 */
export class GrowingContext {
  readonly #strict: boolean;
  readonly #system = new GrowingText();
  readonly #pool = new GrowingText();
  readonly #chat = new GrowingText();
  readonly #active = new GrowingText();
  #prompt = '';
  readonly #lines: (string | undefined)[] = [];
  readonly #places = new Map<ObjectId, number>();
  /** Number of closed turns in the chat, and of rows in them. */
  #closed = { turns: 0, rows: 0 };
  #running = { turn: -1, entries: 0, rows: new GrowingRows() };
  #blocks = new Map<ObjectId, KnownBlock>();

  constructor(strict: boolean) {
    this.#strict = strict;
  }

  /** Returns the active objects whose contents the next context needs. */
  missing(of: Described): readonly ObjectId[] {
    const files = activeFiles(of);
    return of.active.filter((id) => {
      const metadata = of.metadata(id);
      return metadata !== undefined && this.#blocks.get(id)?.key !== this.#keyOf(metadata, files);
    });
  }

  /**
   * Renders the next context.
   * @throws {AssemblyError} `unknown-object`
   * @throws {DocumentError} for text that is not well-formed
   */
  next(input: GrowingInput): GrowingRecord {
    this.#setSystem(input.systemPrompt ?? '');
    this.#setPool(input);
    this.#setChat(input);
    this.#setActive(input);
    const all: readonly Section[] = [
      { name: 'system', text: this.#system },
      { name: 'pool', text: this.#pool },
      { name: 'chat', text: this.#chat },
      { name: 'active', text: this.#active },
    ];
    const sections = all.filter(({ text }) => text.byteLength > 0);
    const between = 2 * Math.max(0, sections.length - 1);
    const chars = sections.reduce((sum, { text }) => sum + text.chars, between);
    const record: AssemblyRecord = {
      renderer: 'text',
      layout: 'ssot',
      version: RENDERER_VERSION,
      options: { strict: this.#strict, shortIds: false },
      sections: sections.map(({ name, text }) => ({ name, chars: text.chars, sha256: text.sha256() })),
      blocks: this.#blockPlaces(input.active, chars - this.#active.chars),
      chars,
      sha256: hashOf(sections),
    };
    return { record, bytes: new Map(sections.map(({ name, text }) => [name, text.byteLength])) };
  }

  #setSystem(prompt: string): void {
    if (prompt === this.#prompt) return;
    this.#prompt = prompt;
    this.#system.replaceFrom(0, prompt === '' ? [] : [pieceOf(prompt)]);
  }

  #setPool({ index, changed, metadata }: GrowingInput): void {
    const lineOf = (id: ObjectId): string | undefined => {
      const one = metadata(id);
      return one === undefined ? undefined : metadataLine(one, fullName, this.#strict);
    };
    let first = this.#lines.length;
    for (const id of changed) {
      const place = this.#places.get(id);
      if (place === undefined) continue;
      const line = lineOf(id);
      if (line === this.#lines[place]) continue;
      this.#lines[place] = line;
      first = Math.min(first, place);
    }
    for (const id of index.slice(this.#lines.length)) {
      this.#places.set(id, this.#lines.length);
      this.#lines.push(lineOf(id));
    }
    this.#pool.replaceFrom(
      first,
      this.#lines.slice(first).map((line) => (line === undefined ? undefined : pieceOf(line))),
    );
  }

  #setChat({ chat: { closed, running }, metadata }: GrowingInput): void {
    const piece = (message: Message): TextPiece | undefined => {
      const lines = chatLines(chatEntry(message, { metadata, nameOf: fullName }));
      return lines.length === 0 ? undefined : pieceOf(lines.join('\n'));
    };
    if (closed.size > this.#closed.turns) {
      const turns = closed.toArray(this.#closed.turns);
      const pieces = turns.flatMap(({ messages }) => messages.map(piece));
      this.#chat.replaceFrom(this.#closed.rows, pieces);
      this.#closed = { turns: closed.size, rows: this.#closed.rows + pieces.length };
      this.#running = { turn: -1, entries: 0, rows: new GrowingRows() };
    }
    const { rows } = this.#running;
    let first = rows.rows.length;
    for (const entry of running.toArray(this.#running.entries)) first = Math.min(first, rows.add(entry) ?? first);
    this.#running.entries = running.size;
    const pieces = rows.rows
      .slice(first)
      .map(({ message, calls }) =>
        piece(calls.length === 0 ? message : { ...message, toolcall_refs: calls.map(({ id }) => id) }),
      );
    this.#chat.replaceFrom(this.#closed.rows + first, pieces);
  }

  #setActive({ active, metadata, content }: GrowingInput): void {
    const shown = active.flatMap((id) => metadata(id) ?? []);
    const files = activeFiles({ active, metadata });
    const before = this.#blocks;
    const keys = shown.map((one) => this.#keyOf(one, files));
    let first = 0;
    while (first < shown.length && isAt(before.get(shown[first]?.id as ObjectId), first, keys[first])) first += 1;
    if (first === shown.length && first === this.#active.size) return;
    const blocks = new Map<ObjectId, KnownBlock>();
    const pieces = shown.map((one, place): TextPiece | undefined => {
      const { id } = one;
      const key = keys[place] as string;
      const known = before.get(id);
      if (place < first) {
        blocks.set(id, known as KnownBlock);
        return undefined;
      }
      if (known?.key === key) {
        blocks.set(id, { ...known, place });
        return this.#active.pieceAt(known.place);
      }
      const block = blockOf(
        { metadata: one, content: content(id) },
        { active: files, nameOf: fullName, strict: this.#strict },
      );
      blocks.set(id, { key, place, header: block.header.length });
      return pieceOf(blockText(block));
    });
    this.#active.replaceFrom(first, pieces.slice(first));
    this.#blocks = blocks;
  }

  #keyOf(metadata: ObjectMetadata, files: ReadonlyMap<ObjectId, ObjectMetadata>): string {
    return `${metadata.contentHash} ${this.#strict ? '' : (repeatedFile(metadata, files) ?? '')}`;
  }

  #blockPlaces(active: readonly ObjectId[], offset: number): readonly BlockPlace[] {
    return active.flatMap((id) => {
      const block = this.#blocks.get(id);
      if (block === undefined) return [];
      const from = this.#active.offsetOf(block.place) + block.header;
      const isLast = block.place === this.#active.size - 1;
      const to = isLast ? this.#active.chars : this.#active.offsetOf(block.place + 1) - 1;
      return to === from
        ? { id, offset: offset + from, chars: 0 }
        : { id, offset: offset + from + 1, chars: to - from - 1 };
    });
  }
}

const isAt = (block: KnownBlock | undefined, place: number, key: string | undefined): boolean =>
  block !== undefined && block.place === place && block.key === key;

const activeFiles = ({ active, metadata }: Described): ReadonlyMap<ObjectId, ObjectMetadata> =>
  new Map(
    active.flatMap((id) => {
      const one = metadata(id);
      return one === undefined ? [] : [[id, one] as const];
    }),
  );

function hashOf(sections: readonly Section[]): Sha256 {
  const hash = createHash('sha256');
  for (const [i, { text }] of sections.entries()) {
    if (i > 0) hash.update('\n\n');
    text.addTo(hash);
  }
  return hash.digest('hex') as Sha256;
}

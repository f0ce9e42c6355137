import { hashText } from '../objects/hashes.js';
import { type AssemblyRecord, type BlockPlace, RENDERER_VERSION, type SectionName } from './assembly-record.js';
import { type AssemblyInput, type Block, type ChatEntry, type Layout, layoutOf } from './layout.js';
import { renderedValue } from './rendered-value.js';

export type { AssemblyRecord } from './assembly-record.js';

/** A section that is not empty. */
export interface AssemblySection {
  readonly name: SectionName;
  readonly text: string;
  /** Where it begins in the whole text, in UTF-16 units. */
  readonly offset: number;
  /** The bodies of the active blocks, counted from the beginning of this section; empty for the other sections. */
  readonly pieces: readonly BlockPlace[];
}

/** A context as one text, its sections, and the record that can split it again (decision E3). */
export interface Assembly {
  readonly sections: readonly AssemblySection[];
  readonly text: string;
  readonly record: AssemblyRecord;
}

const BETWEEN_SECTIONS = '\n\n';

/** Every line of a message in the chat: its text, where it has some, and its tool calls. The name stands in no line (decision E1). */
export function chatLines({ message, references }: ChatEntry): readonly string[] {
  return message.text === '' ? references : [`${renderedValue(message.role)}: ${message.text}`, ...references];
}

/** A block of active content as text [§4.1]. */
export function blockText({ header, body }: Block): string {
  return body === null ? header : `${header}\n${body}`;
}

/** Where the body of a block stands when the block begins at `start`. */
export function bodyPlace({ id, header, body }: Block, start: number): BlockPlace {
  return body === null ? { id, offset: start + header.length, chars: 0 } : { id, offset: start + header.length + 1, chars: body.length };
}

function piecesOf(blocks: readonly Block[]): readonly BlockPlace[] {
  let start = 0;
  return blocks.map((block) => {
    const place = bodyPlace(block, start);
    start = place.offset + place.chars + 1;
    return place;
  });
}

const TEXTS: Readonly<Record<SectionName, (layout: Layout) => string>> = {
  system: ({ system }) => system,
  pool: ({ pool }) => pool.join('\n'),
  chat: ({ chat }) => chat.flatMap(chatLines).join('\n'),
  active: ({ blocks }) => blocks.map(blockText).join('\n'),
};

function sectionsOf(layout: Layout): readonly AssemblySection[] {
  let offset = 0;
  return (Object.keys(TEXTS) as SectionName[]).flatMap((name) => {
    const text = TEXTS[name](layout);
    if (text === '') return [];
    const section = { name, text, offset, pieces: name === 'active' ? piecesOf(layout.blocks) : [] };
    offset += text.length + BETWEEN_SECTIONS.length;
    return [section];
  });
}

/**
 * Assembles a context as one text [§4.1, decisions E1-E6]: system prompt, metadata pool, chat, active content. A pure function of its input: the
 * same state gives the same bytes. Throws AssemblyError when the chat and the pool do not fit, DocumentError for text that is not well-formed.
 */
export function assemble(input: AssemblyInput): Assembly {
  const sections = sectionsOf(layoutOf(input));
  const text = sections.map((section) => section.text).join(BETWEEN_SECTIONS);
  const record: AssemblyRecord = {
    renderer: 'text',
    layout: 'ssot',
    version: RENDERER_VERSION,
    options: { strict: input.options.strict, shortIds: input.options.shortIds },
    sections: sections.map((section) => ({ name: section.name, chars: section.text.length, sha256: hashText(section.text) })),
    blocks: sections.flatMap(({ offset, pieces }) => pieces.map((piece) => ({ ...piece, offset: offset + piece.offset }))),
    chars: text.length,
    sha256: hashText(text),
  };
  return { sections, text, record };
}

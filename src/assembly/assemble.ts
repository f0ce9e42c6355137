import { hashTexts } from '../objects/hashes.js';
import { type AssemblyRecord, type BlockPlace, RENDERER_VERSION, type SectionName } from './assembly-record.js';
import { type AssemblyInput, type Block, chatText, type Frame, frameOf } from './layout.js';

/** The sections of §4.1. */
type OwnSection = Exclude<SectionName, 'notes'>;

/** A non-empty section. */
export interface AssemblySection {
  readonly name: OwnSection;
  readonly text: string;
  /** Its offset in the whole text, in UTF-16 units. */
  readonly offset: number;
  /** The bodies of the active blocks, relative to this section; empty for the other sections. */
  readonly pieces: readonly BlockPlace[];
}

/** A context as one text, its sections, and the record that can split it again (decision E3). */
export interface Assembly {
  readonly sections: readonly AssemblySection[];
  readonly text: string;
  readonly record: AssemblyRecord;
}

const BETWEEN_SECTIONS = '\n\n';

/** Returns a block of active content as text [§4.1]. */
export function blockText({ header, body }: Block): string {
  return body === null ? header : `${header}\n${body}`;
}

/** Returns the place of a block's body if the block begins at `start`. */
export function bodyPlace({ id, header, body }: Block, start: number): BlockPlace {
  return body === null
    ? { id, offset: start + header.length, chars: 0 }
    : { id, offset: start + header.length + 1, chars: body.length };
}

function piecesOf(blocks: readonly Block[]): readonly BlockPlace[] {
  let start = 0;
  return blocks.map((block) => {
    const place = bodyPlace(block, start);
    start = place.offset + place.chars + 1;
    return place;
  });
}

const TEXTS: Readonly<Record<OwnSection, (frame: Frame, input: AssemblyInput) => string>> = {
  system: ({ system }) => system,
  pool: ({ pool }) => pool.join('\n'),
  chat: (frame, input) => chatText(input, frame),
  active: ({ blocks }) => blocks.map(blockText).join('\n'),
};

function sectionsOf(input: AssemblyInput): readonly AssemblySection[] {
  const frame = frameOf(input);
  let offset = 0;
  return (Object.keys(TEXTS) as OwnSection[]).flatMap((name) => {
    const text = TEXTS[name](frame, input);
    if (text === '') return [];
    const section = { name, text, offset, pieces: name === 'active' ? piecesOf(frame.blocks) : [] };
    offset += text.length + BETWEEN_SECTIONS.length;
    return [section];
  });
}

/** Yields the sections and their separators. */
function* piecesOfText(sections: readonly AssemblySection[]): Iterable<string> {
  for (const [i, { text }] of sections.entries()) {
    if (i > 0) yield BETWEEN_SECTIONS;
    yield text;
  }
}

/**
 * Assembles a context as one text [§4.1, decisions E1-E6]: system prompt, metadata pool, chat,
 * active content. Pure: the same state gives the same bytes.
 * @throws {AssemblyError} if the chat and the pool do not match
 * @throws {DocumentError} for text that is not well-formed
 */
export function assemble(input: AssemblyInput): Assembly {
  const sections = sectionsOf(input);
  // Concatenated, not joined: the text takes no extra memory until it is read, and a replay reads
  // only its hash.
  let text = '';
  for (const piece of piecesOfText(sections)) text += piece;
  let hashed: AssemblyRecord['sections'] | undefined;
  const record: AssemblyRecord = {
    renderer: 'text',
    layout: 'ssot',
    version: RENDERER_VERSION,
    options: { strict: input.options.strict, shortIds: input.options.shortIds },
    // Computed lazily: a comparison with a handed-out context needs the sections only if the whole
    // differs.
    get sections() {
      hashed ??= sections.map((section) => ({
        name: section.name,
        chars: section.text.length,
        sha256: hashTexts([section.text]),
      }));
      return hashed;
    },
    blocks: sections.flatMap(({ offset, pieces }) =>
      pieces.map((piece) => ({ ...piece, offset: offset + piece.offset })),
    ),
    chars: text.length,
    sha256: hashTexts(piecesOfText(sections)),
  };
  return { sections, text, record };
}

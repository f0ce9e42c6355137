import type { NoteProof } from '../../objects/assembly-proof.js';
import { canonicalJson, freezeDeep, lastingJson } from '../../objects/canonical-json.js';
import { GrowingHash } from '../../objects/hashes.js';
import type { ObjectId } from '../../objects/ids.js';
import { shortIds } from '../../session/object-reference.js';
import type { ChatMark } from '../../session/session-fold.js';
import { defined } from '../../values/defined.js';
import { blockText, bodyPlace } from '../assemble.js';
import type { AssemblyRecord, SectionRecord } from '../assembly-record.js';
import { editInput } from '../edit-input.js';
import { type ActiveObject, type AssemblyInput, type Block, chatText, type Frame, frameOf } from '../layout.js';
import { argsMark, metadataLine, type NameOf, type ObjectMetadata } from '../metadata.js';
import {
  type RenderedMessage,
  type RenderedPart,
  recordedChat,
  sectionRecords,
  sectionText,
} from '../render-messages.js';
import { renderedValue } from '../rendered-value.js';
import { changedLines, readAgainText } from './changed-lines.js';
import { guideText } from './epoch-guide.js';

const textsOf = (messages: readonly RenderedMessage[]): readonly string[] =>
  messages.flatMap(({ parts }) => parts.map(({ text }) => text));
const sum = (sizes: readonly number[]): number => sizes.reduce((all, one) => all + one, 0);

/** Returns the length of our text in an epoch's request, in UTF-16 units. */
export const charsOf = ({ before, notes }: EpochState): number =>
  sum(textsOf([...before, ...notes.map(({ message }) => message)]).map(({ length }) => length));

/**
 * Returns the length of the parts that two bases share at their beginning, in UTF-16 units. A
 * provider's cache can reuse these parts.
 */
export function sharedChars(a: Pick<EpochState, 'before'>, b: Pick<EpochState, 'before'>): number {
  const [one, other] = [textsOf(a.before), textsOf(b.before)];
  const differs = other.findIndex((text, i) => text !== one[i]);
  return sum(other.slice(0, differs < 0 ? other.length : differs).map(({ length }) => length));
}

/** The input of an epoch's request. */
export interface EpochInput extends AssemblyInput {
  /** All ids of the session's index in order, including those not shown. */
  readonly index: readonly ObjectId[];
  /** Returns the chat additions of each step after the given one. */
  readonly chatSince: (step: number) => readonly ChatMark[];
}

/** An addition to an epoch, and the number of the harness's messages before it. */
export interface EpochNote {
  readonly after: number;
  readonly message: RenderedMessage;
}

/** The content that an epoch's requests have shown so far (divergence E9). Immutable. */
export interface EpochState {
  /** The base: rendered at the border and then unchanged. */
  readonly before: readonly RenderedMessage[];
  readonly notes: readonly EpochNote[];
  /** The name of each object whose line was shown. */
  readonly names: ReadonlyMap<ObjectId, string>;
  /** Number of ids in the index when these names were chosen. */
  readonly indexed: number;
  /** Number of ids in the index when the epoch began. All of them have names. */
  readonly begun: number;
  /**
   * The newest text of each object in the request; null if the request says that it has none.
   * Excludes results in the harness's own messages.
   */
  readonly shown: ReadonlyMap<ObjectId, string | null>;
  /** The blocks of active contents in the request. */
  readonly blocks: readonly Block[];
  /** The lines that replace some calls' results in the harness's own list. */
  readonly lines: ReadonlyMap<ObjectId, string>;
}

/** The version of this rendering. Raise it when the same state and notes would give other bytes. */
export const EPOCH_VERSION = 1;

const named =
  (names: ReadonlyMap<ObjectId, string>): NameOf =>
  (id) =>
    renderedValue(names.get(id) ?? id);

/** The guide, which a model reads before our first text. */
const guidePart = ({ guide }: AssemblyInput['options']): RenderedPart => ({ text: guideText(guide) });

const isText = ({ text }: RenderedPart): boolean => text !== '';

function message(section: RenderedMessage['section'], parts: readonly RenderedPart[]): readonly RenderedMessage[] {
  const spoken = parts.filter(isText);
  return spoken.length === 0 ? [] : [{ section, role: 'user', parts: spoken }];
}

/** Returns the lines between a block's header and its result, with the text that an edit wrote. */
function inputMark(call: ActiveObject['call'], { inputs = false }: AssemblyInput['options']): string {
  const text = call === undefined || !inputs ? undefined : editInput(call);
  return text === undefined ? '' : `\n${text}\n[result]`;
}

const blockPart = (block: Block): RenderedPart => ({ id: block.id, text: blockText(block) });

/** Returns the lines of files; a call's line is in the chat. */
const fileLines = ({ pool, options }: AssemblyInput, { nameOf }: Frame): string =>
  pool
    .filter(({ type }) => type === 'file')
    .map((metadata) => metadataLine(metadata, nameOf, options.strict))
    .join('\n');

/**
 * Begins an epoch. Renders the turns before `turn`, one part each, then the files, then the active
 * contents, one part each. The most stable text comes first, so that successive bases share their
 * beginning.
 * @throws {AssemblyError} `unknown-object` if the pool lacks a call of the chat
 */
export function beginEpoch(given: EpochInput, turn: number): EpochState {
  const input = { ...given, options: { ...given.options, shortIds: true } };
  const names = shortIds(input.index);
  const { described = false } = input.options;
  const plain = frameOf(input, named(names));
  const called = new Map(
    input.active.map(({ metadata, call }) => [
      metadata.id,
      described ? `${argsMark(metadata)}${inputMark(call, input.options)}` : '',
    ]),
  );
  const blocks = plain.blocks.map((one) => ({ ...one, header: one.header + (called.get(one.id) ?? '') }));
  const frame = { ...plain, blocks, described };
  const closed = input.turns.filter((one) => one.turn < turn);
  const rendered = [
    ...message(
      'chat',
      closed.map((one) => ({ text: chatText({ ...input, turns: [one] }, frame) })),
    ),
    ...message('pool', [{ text: fileLines(input, frame) }]),
    ...message('active', frame.blocks.map(blockPart)),
  ];
  const before = rendered.length === 0 ? [] : [...message('notes', [guidePart(input.options)]), ...rendered];
  const shown = new Map(
    input.active.map(({ metadata, content }) => [metadata.id, metadata.contentHash === null ? null : content]),
  );
  const count = input.index.length;
  return { before, notes: [], names, indexed: count, begun: count, shown, blocks: frame.blocks, lines: new Map() };
}

/** The objects from which a note is rendered. */
export interface NoteInput extends Pick<EpochInput, 'index' | 'options' | 'chatSince'> {
  readonly metadata: (id: ObjectId) => ObjectMetadata | undefined;
  /** Returns an object's content: null if it has none, undefined for an unknown object. */
  readonly content: (id: ObjectId) => string | null | undefined;
  /** Returns the tool and arguments of an active call. */
  readonly call: (id: ObjectId) => ActiveObject['call'];
}

/** Returns a note's input from the input of a request. */
export function noteInputOf({ index, options, pool, active, chatSince }: EpochInput): NoteInput {
  const metadata = new Map([...active.map((one) => one.metadata), ...pool].map((one) => [one.id, one]));
  const contents = new Map(
    active.map((one) => [one.metadata.id, one.metadata.contentHash === null ? null : one.content]),
  );
  const calls = new Map(active.map((one) => [one.metadata.id, one.call]));
  return {
    index,
    options,
    chatSince,
    metadata: (id) => metadata.get(id),
    content: (id) => contents.get(id),
    call: (id) => calls.get(id),
  };
}

/**
 * Appends a request's additions to an epoch: the new chat if the harness sends no list, then lines,
 * texts, and changes of texts shown before. Earlier text is unchanged. Pure: the additions that a
 * context's record names can be rendered again from the database alone.
 * @throws {AssemblyError} `unknown-object` for an unknown call of the chat
 */
export function withNote(state: EpochState, note: NoteProof, input: NoteInput): EpochState {
  const { index, options, metadata, content } = input;
  const names = namesAfter(state, note, index);
  const nameOf = named(names);
  const lines = (note.lines ?? []).flatMap((id) => {
    const one = metadata(id);
    return one === undefined ? [] : [metadataLine(one, nameOf, options.strict)];
  });
  const shown = new Map(state.shown);
  const blocks = [...state.blocks];
  const isFirst = state.before.length === 0 && state.notes.length === 0;
  const parts: RenderedPart[] = [{ text: lines.join('\n') }];
  const append = (id: ObjectId, mark: string, body: string | null): void => {
    const args = options.described ? argsMark(metadata(id)) : '';
    const given = inputMark(input.call(id), options);
    const block = { id, header: `ACTIVE_CONTENT id=${nameOf(id)}${args}${mark}${given}`, body };
    blocks.push(block);
    parts.push(blockPart(block));
  };
  const known = (id: ObjectId): string | null => content(id) ?? null;
  for (const id of note.contents ?? []) append(id, '', known(id));
  for (const id of note.changes ?? []) {
    const [before, after] = [state.shown.get(id), known(id)];
    const changed = typeof before === 'string' && after !== null ? changedLines(before, after) : undefined;
    append(id, changed === undefined ? ' changed=whole' : ' changed=lines', changed ?? after);
  }
  // References follow the changes, because they stand for the file's current text.
  for (const id of note.refs ?? []) append(id, '', fileRef(metadata(id), nameOf));
  const read = (note.reads ?? []).flatMap(({ call, file, inBlock }) => {
    const [described, before, after] = [metadata(file), state.shown.get(file), known(file)];
    if (described?.type !== 'file' || typeof before !== 'string' || after === null) return [];
    const text = readAgainText({
      path: renderedValue(described.displayPath),
      name: nameOf(file),
      before,
      after,
      inBlock,
    });
    return text === undefined ? [] : [[call, text] as const];
  });
  for (const id of shownBy(note)) shown.set(id, known(id));
  const chat = note.chat === undefined ? [] : recordedChat(input.chatSince(note.chat), metadata, options.described);
  const guided = isFirst && parts.some(isText) ? [guidePart(options), ...parts] : parts;
  const added = [...chat, ...message('notes', guided)].map((one) => ({ after: note.after, message: one }));
  return {
    before: state.before,
    notes: [...state.notes, ...added],
    names,
    indexed: index.length,
    begun: state.begun,
    shown,
    blocks,
    lines: new Map([...state.lines, ...read]),
  };
}

/** Returns the objects whose text requests show since this note. */
export const shownBy = ({ contents = [], refs = [], changes = [], seen = [] }: NoteProof): readonly ObjectId[] => [
  ...contents,
  ...refs,
  ...changes,
  ...seen,
];

/** Returns the line that replaces a call's output if it equals a file's text [divergence E4]. */
function fileRef(call: ObjectMetadata | undefined, nameOf: NameOf): string | null {
  const [file] = call?.type === 'toolcall' ? call.fileRefs : [];
  return file === undefined ? null : `file_ref id=${nameOf(file)}`;
}

function namesAfter(
  { names }: EpochState,
  { lines = [], contents = [], changes = [], refs = [] }: NoteProof,
  index: readonly ObjectId[],
) {
  // A named object keeps its name, unless its line appears here again.
  const fresh = [...lines, ...[...contents, ...changes, ...refs].filter((id) => !names.has(id))];
  if (fresh.length === 0) return names;
  const present = shortIds(index);
  return new Map([...names, ...fresh.map((id) => [id, present.get(id) ?? id] as const)]);
}

/** A request of an epoch without the harness's own messages. */
export interface EpochContext extends Pick<EpochState, 'before' | 'notes' | 'lines'> {
  /** The system prompt; null if it is missing or empty. */
  readonly system: string | null;
  /**
   * The whole is hashed and measured as the canonical JSON of `{system, before, notes}`, with
   * `lines` if there are any. A section is hashed and measured as the canonical JSON of its
   * messages.
   */
  readonly record: AssemblyRecord;
}

/** The parts of an epoch's record that do not describe its text. */
export interface EpochPlace extends Required<Pick<AssemblyRecord, 'tail'>>, Pick<AssemblyRecord, 'epoch'> {}

/** Returns the canonical JSON of a list of immutable values. */
const listText = (values: readonly object[]): string => `[${values.map(lastingJson).join(',')}]`;

const baseText = (before: EpochState['before']): string => `{"before":${listText(before)}`;

/** Returns the text after the base in a request's canonical JSON, members sorted by name. */
const textBehind = ({ system, notes, lines }: Omit<EpochContext, 'record' | 'before'>): string =>
  `${lines.size === 0 ? '' : `,"lines":${canonicalJson([...lines])}`}` +
  `,"notes":${listText(notes)},"system":${canonicalJson(system)}}`;

/** Returns the canonical JSON of an epoch's request. */
export const epochText = ({ before, ...others }: Omit<EpochContext, 'record'>): string =>
  `${baseText(before)}${textBehind(others)}`;

/** Hashes of bases. Each is cached as long as its base exists. */
const bases = new WeakMap<EpochState['before'], GrowingHash>();

function baseHash(before: EpochState['before']): GrowingHash {
  const known = bases.get(before);
  if (known !== undefined) return known;
  const hash = new GrowingHash();
  hash.add(baseText(before));
  bases.set(freezeDeep(before), hash);
  return hash;
}

type ToldSection = Omit<SectionRecord, 'name'>;

/** Records of sections with a single message, such as those of a base. The message is the key. */
const sections = new WeakMap<RenderedMessage, ToldSection>();

function toldOf(messages: readonly RenderedMessage[]): ToldSection {
  const [only] = messages.length === 1 ? messages : [];
  const known = only === undefined ? undefined : sections.get(only);
  if (known !== undefined) return known;
  const told = sectionText(listText(messages));
  if (only !== undefined) sections.set(only, told);
  return told;
}

/** Renders the current request of an epoch and its record. */
export function renderEpoch(
  state: EpochState,
  input: Pick<AssemblyInput, 'systemPrompt' | 'options'>,
  place: EpochPlace,
): EpochContext {
  const { before, notes, blocks, lines } = state;
  const system = input.systemPrompt === null || input.systemPrompt === '' ? null : input.systemPrompt;
  const base = baseHash(before);
  const behind = textBehind({ system, notes, lines });
  const record: AssemblyRecord = {
    renderer: 'epoch',
    layout: 'epoch',
    version: EPOCH_VERSION,
    options: {
      strict: input.options.strict,
      shortIds: true,
      ...(input.options.described ? { described: true } : {}),
      ...(input.options.inputs ? { inputs: true } : {}),
      ...defined({ guide: input.options.guide }),
    },
    tail: place.tail,
    ...defined({ epoch: place.epoch }),
    sections: sectionRecords(system, [...before, ...notes.map((note) => note.message)], toldOf),
    blocks: blocks.map((block) => bodyPlace(block, 0)),
    chars: base.chars + behind.length,
    sha256: base.with(behind),
  };
  return { system, before, notes, lines, record };
}

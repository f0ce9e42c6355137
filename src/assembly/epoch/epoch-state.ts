import type { NoteProof } from '../../objects/assembly-proof.js';
import { canonicalJson, freezeDeep, lastingJson } from '../../objects/canonical-json.js';
import { GrowingHash } from '../../objects/hashes.js';
import type { ObjectId } from '../../objects/ids.js';
import { shortIds } from '../../session/object-reference.js';
import type { ChatMark } from '../../session/session-fold.js';
import { defined } from '../../values/defined.js';
import { blockText, bodyPlace } from '../assemble.js';
import type { AssemblyRecord, SectionRecord } from '../assembly-record.js';
import { type AssemblyInput, type Block, chatText, type Frame, frameOf } from '../layout.js';
import { metadataLine, type NameOf, type ObjectMetadata } from '../metadata.js';
import { type RenderedMessage, type RenderedPart, recordedChat, sectionRecords, sectionText } from '../render-messages.js';
import { renderedValue } from '../rendered-value.js';
import { changedLines, readAgainText } from './changed-lines.js';

/** What a request of an epoch is made of: as any context, and every id of the session's index, in its order, also those that are not shown. */
export interface EpochInput extends AssemblyInput {
  readonly index: readonly ObjectId[];
  /** What each step behind one brought into the chat. */
  readonly chatSince: (step: number) => readonly ChatMark[];
}

/** What was appended in an epoch, and behind how many of the messages that stay it stands. */
export interface EpochNote {
  readonly after: number;
  readonly message: RenderedMessage;
}

/** What the requests of an epoch have shown so far (divergence E9). A change is a new value. */
export interface EpochState {
  /** The base: rendered at the border, and left as it is. */
  readonly before: readonly RenderedMessage[];
  readonly notes: readonly EpochNote[];
  /** What each object is called that has its line. */
  readonly names: ReadonlyMap<ObjectId, string>;
  /** How many ids of the index these names were chosen among. */
  readonly indexed: number;
  /** How many ids the index had where the epoch began: all of them have names. */
  readonly begun: number;
  /** The newest text that the request shows of an object; null where it says that there is none. Results in the harness's own messages are not in it. */
  readonly shown: ReadonlyMap<ObjectId, string | null>;
  /** The active blocks and contents that stand in it. */
  readonly blocks: readonly Block[];
  /** What stands in the harness's own list in the place of what some calls answered. */
  readonly lines: ReadonlyMap<ObjectId, string>;
}

/** The version of this rendering; it rises when the same state and notes would give other bytes. */
export const EPOCH_VERSION = 1;

const named =
  (names: ReadonlyMap<ObjectId, string>): NameOf =>
  (id) =>
    renderedValue(names.get(id) ?? id);

const isText = ({ text }: RenderedPart): boolean => text !== '';

function message(section: RenderedMessage['section'], parts: readonly RenderedPart[]): readonly RenderedMessage[] {
  const spoken = parts.filter(isText);
  return spoken.length === 0 ? [] : [{ section, role: 'user', parts: spoken }];
}

const blockPart = (block: Block): RenderedPart => ({ id: block.id, text: blockText(block) });

/** The lines of files; a call has its line in the chat. */
const fileLines = ({ pool, options }: AssemblyInput, { nameOf }: Frame): string =>
  pool
    .filter(({ type }) => type === 'file')
    .map((metadata) => metadataLine(metadata, nameOf, options.strict))
    .join('\n');

/**
 * Begins an epoch: renders the turns before one of them, a part each, then the files, then what is active, a part each: what changes least stands first, so
 * that two bases share their beginning.
 * @throws {AssemblyError} `unknown-object` for a call in the chat that the pool does not hold
 */
export function beginEpoch(given: EpochInput, turn: number): EpochState {
  const input = { ...given, options: { ...given.options, shortIds: true } };
  const names = shortIds(input.index);
  const frame = frameOf(input, named(names));
  const closed = input.turns.filter((one) => one.turn < turn);
  const before = [
    ...message(
      'chat',
      closed.map((one) => ({ text: chatText({ ...input, turns: [one] }, frame) })),
    ),
    ...message('pool', [{ text: fileLines(input, frame) }]),
    ...message('active', frame.blocks.map(blockPart)),
  ];
  const shown = new Map(input.active.map(({ metadata, content }) => [metadata.id, metadata.contentHash === null ? null : content]));
  const count = input.index.length;
  return { before, notes: [], names, indexed: count, begun: count, shown, blocks: frame.blocks, lines: new Map() };
}

/** What a note is rendered from: the objects that it names. */
export interface NoteInput extends Pick<EpochInput, 'index' | 'options' | 'chatSince'> {
  readonly metadata: (id: ObjectId) => ObjectMetadata | undefined;
  /** Null where there is none; undefined for an object that is not known. */
  readonly content: (id: ObjectId) => string | null | undefined;
}

/** A note's objects from everything that a request is made of. */
export function noteInputOf({ index, options, pool, active, chatSince }: EpochInput): NoteInput {
  const metadata = new Map(pool.map((one) => [one.id, one]));
  const contents = new Map(active.map((one) => [one.metadata.id, one.metadata.contentHash === null ? null : one.content]));
  return { index, options, chatSince, metadata: (id) => metadata.get(id), content: (id) => contents.get(id) };
}

/**
 * Appends what a request of an epoch adds: what the chat says where no list of a harness does, lines, then texts, then changes of what is shown already. What
 * stands before it stays as it is. A pure function: the record of a context names what it adds, so that it is rendered again from the database alone.
 * @throws {AssemblyError} `unknown-object` for a call of the chat that is not known
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
  const parts: RenderedPart[] = [{ text: lines.join('\n') }];
  const append = (id: ObjectId, mark: string, body: string | null): void => {
    const block = { id, header: `ACTIVE_CONTENT id=${nameOf(id)}${mark}`, body };
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
  // Behind the changes: the line stands for what the file says now.
  for (const id of note.refs ?? []) append(id, '', fileRef(metadata(id), nameOf));
  const read = (note.reads ?? []).flatMap(({ call, file, inBlock }) => {
    const [described, before, after] = [metadata(file), state.shown.get(file), known(file)];
    if (described?.type !== 'file' || typeof before !== 'string' || after === null) return [];
    const text = readAgainText({ path: renderedValue(described.displayPath), name: nameOf(file), before, after, inBlock });
    return text === undefined ? [] : [[call, text] as const];
  });
  for (const id of shownBy(note)) shown.set(id, known(id));
  const chat = note.chat === undefined ? [] : recordedChat(input.chatSince(note.chat), metadata);
  const added = [...chat, ...message('notes', parts)].map((one) => ({ after: note.after, message: one }));
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

/** The objects whose text a request shows from this note on. */
export const shownBy = ({ contents = [], refs = [], changes = [], seen = [] }: NoteProof): readonly ObjectId[] => [
  ...contents,
  ...refs,
  ...changes,
  ...seen,
];

/** The line that stands for the output of a call whose text is that of a file [divergence E4]. */
function fileRef(call: ObjectMetadata | undefined, nameOf: NameOf): string | null {
  const [file] = call?.type === 'toolcall' ? call.fileRefs : [];
  return file === undefined ? null : `file_ref id=${nameOf(file)}`;
}

function namesAfter({ names }: EpochState, { lines = [], contents = [], changes = [], refs = [] }: NoteProof, index: readonly ObjectId[]) {
  // What is called by its name already keeps it, unless its line stands here again.
  const fresh = [...lines, ...[...contents, ...changes, ...refs].filter((id) => !names.has(id))];
  if (fresh.length === 0) return names;
  const present = shortIds(index);
  return new Map([...names, ...fresh.map((id) => [id, present.get(id) ?? id] as const)]);
}

/** A request of an epoch without the harness's own messages. */
export interface EpochContext extends Pick<EpochState, 'before' | 'notes' | 'lines'> {
  /** Null when there is none, or an empty one. */
  readonly system: string | null;
  /** Its hashes and lengths are those of canonical JSON: of `{system, before, notes}`, with `lines` where there are some, and of each section. */
  readonly record: AssemblyRecord;
}

/** What a record says of a request of an epoch beside its text. */
export interface EpochPlace extends Required<Pick<AssemblyRecord, 'tail'>>, Pick<AssemblyRecord, 'epoch'> {}

/** The canonical JSON of a list of what never changes. */
const listText = (values: readonly object[]): string => `[${values.map(lastingJson).join(',')}]`;

const baseText = (before: EpochState['before']): string => `{"before":${listText(before)}`;

/** What stands behind the base in the canonical JSON of a request: members in the order of their names. */
const textBehind = ({ system, notes, lines }: Omit<EpochContext, 'record' | 'before'>): string =>
  `${lines.size === 0 ? '' : `,"lines":${canonicalJson([...lines])}`},"notes":${listText(notes)},"system":${canonicalJson(system)}}`;

/** The canonical JSON of a request of an epoch. */
export const epochText = ({ before, ...others }: Omit<EpochContext, 'record'>): string => `${baseText(before)}${textBehind(others)}`;

/** Hashes of bases, which stay for as long as their epochs. */
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

/** What is told of messages that are the only ones of their section, as those of a base are. */
const sections = new WeakMap<RenderedMessage, ToldSection>();

function toldOf(messages: readonly RenderedMessage[]): ToldSection {
  const [only] = messages.length === 1 ? messages : [];
  const known = only === undefined ? undefined : sections.get(only);
  if (known !== undefined) return known;
  const told = sectionText(listText(messages));
  if (only !== undefined) sections.set(only, told);
  return told;
}

/** A request of an epoch as it stands, with its record. */
export function renderEpoch(state: EpochState, input: Pick<AssemblyInput, 'systemPrompt' | 'options'>, place: EpochPlace): EpochContext {
  const { before, notes, blocks, lines } = state;
  const system = input.systemPrompt === null || input.systemPrompt === '' ? null : input.systemPrompt;
  const base = baseHash(before);
  const behind = textBehind({ system, notes, lines });
  const record: AssemblyRecord = {
    renderer: 'epoch',
    layout: 'epoch',
    version: EPOCH_VERSION,
    options: { strict: input.options.strict, shortIds: true },
    tail: place.tail,
    ...defined({ epoch: place.epoch }),
    sections: sectionRecords(system, [...before, ...notes.map((note) => note.message)], toldOf),
    blocks: blocks.map((block) => bodyPlace(block, 0)),
    chars: base.chars + behind.length,
    sha256: base.with(behind),
  };
  return { system, before, notes, lines, record };
}

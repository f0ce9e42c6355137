import type { NoteProof } from '../../objects/assembly-proof.js';
import type { ObjectId } from '../../objects/ids.js';
import { defined } from '../../values/defined.js';
import { repeatedFile } from '../layout.js';
import type { ObjectMetadata } from '../metadata.js';
import type { EpochInput, EpochState } from './epoch-state.js';
import { newReads, readAgain, type TailRead } from './read-again.js';

/** The session's objects that the harness's own messages show. */
export interface ShownByTail {
  /** Number of those messages before a new note. */
  readonly count: number;
  /** The calls whose results are in those messages. */
  readonly results: ReadonlySet<ObjectId>;
  /**
   * Returns whether the messages show a file's current text. Either a call's result contains it
   * whole, or a call after the last request changed the text that this request showed. `before` is
   * that text; undefined if the request showed none.
   */
  readonly shows: (file: ObjectMetadata<'file'>, text: string, before: string | undefined) => boolean;
  /** The reading calls in those messages, in order. */
  readonly reads: readonly TailRead[];
  /**
   * The last step whose message is in the request. Set only if the request is built from the
   * recorded chat, not from a harness's own list.
   */
  readonly chatUpTo?: number;
}

interface ShortNames {
  readonly short: ReadonlyMap<string, ObjectId>;
  readonly lengths: readonly number[];
}

/** Caches the short names of each map. A map never changes, because adding a name makes a copy. */
const shortened = new WeakMap<EpochState['names'], ShortNames>();

/**
 * Returns the names that are shorter than ids. They have few distinct lengths, so looking up by
 * length is cheap even for ten thousand new objects.
 */
function shortNames(names: EpochState['names']): ShortNames {
  const known = shortened.get(names);
  if (known !== undefined) return known;
  const short = new Map([...names].flatMap(([id, name]) => (name === id ? [] : [[name, id] as const])));
  const found = { short, lengths: [...new Set([...short.keys()].map(({ length }) => length))] };
  shortened.set(names, found);
  return found;
}

/** Returns the objects whose short names have become a prefix of another id. */
function ambiguous({ names, indexed }: EpochState, index: readonly ObjectId[]): readonly ObjectId[] {
  const fresh = index.slice(indexed);
  if (fresh.length === 0) return [];
  const { short, lengths } = shortNames(names);
  return [...new Set(fresh.flatMap((other) => lengths.flatMap((length) => short.get(other.slice(0, length)) ?? [])))];
}

/**
 * Returns the new files that a call read or wrote. A file that was only named gets its line at the
 * next border.
 */
function freshLines({ names, begun }: EpochState, { pool, active, index }: EpochInput): readonly ObjectId[] {
  // Objects indexed before the epoch already have names, so skip them. The pool may be shorter than
  // the index.
  const fresh = pool
    .slice(Math.max(0, begun - (index.length - pool.length)))
    .filter(({ id, type }) => type === 'file' && !names.has(id));
  if (fresh.length === 0) return [];
  const isActive = new Set(active.map(({ metadata }) => metadata.id));
  return fresh.flatMap((metadata) =>
    metadata.type === 'file' && (metadata.state !== 'stub' || isActive.has(metadata.id)) ? [metadata.id] : [],
  );
}

/**
 * Returns a predicate that tests whether a call's output equals the text of an active file. The
 * request shows that text, so one line that names the file is enough (divergence E4).
 */
function repeatedBy(active: EpochInput['active']): (call: ObjectMetadata<'toolcall'>) => boolean {
  const files = new Map(active.map(({ metadata }) => [metadata.id, metadata]));
  return (call) => repeatedFile(call, files) !== undefined;
}

/**
 * Returns the last step whose message is already in the request. Undefined if no newer step has a
 * message or a call.
 */
function newChat({ chatSince }: EpochInput, { chatUpTo }: ShownByTail): number | undefined {
  const isNew =
    chatUpTo !== undefined &&
    chatSince(chatUpTo).some(({ message, call }) => call !== undefined || (message?.text ?? '') !== '');
  return isNew ? chatUpTo : undefined;
}

/**
 * Plans the note of an epoch's next request. It contains newly active texts that the request does
 * not show, and changes of shown active texts. It also contains the lines of files that it names
 * for the first time. Undefined if nothing is missing. Texts that are no longer active stay in the
 * request.
 */
export function planNote(state: EpochState, input: EpochInput, tail: ShownByTail): NoteProof | undefined {
  const { index, active } = input;
  // With a harness's list, the calls in the request already name their files. Until a note refers
  // to a file by its id, a line would only repeat the path.
  const lines = [...(tail.chatUpTo === undefined ? [] : freshLines(state, input)), ...ambiguous(state, index)];
  const contents: ObjectId[] = [];
  const changes: ObjectId[] = [];
  const seen: ObjectId[] = [];
  const refs: ObjectId[] = [];
  const isReadAnew = newReads(input, tail.reads);
  const isRepeated = tail.chatUpTo === undefined || input.options.strict ? () => false : repeatedBy(active);
  for (const { metadata, content } of active) {
    const { id } = metadata;
    const text = metadata.contentHash === null ? null : content;
    const before = state.shown.get(id);
    if (text === before) continue;
    if (metadata.type === 'toolcall') {
      if (before === undefined && !tail.results.has(id)) (isRepeated(metadata) ? refs : contents).push(id);
    } else if (text !== null && tail.shows(metadata, text, before ?? undefined)) seen.push(id);
    // After a new read, show the whole text. Changed lines would look like changes since that read.
    else if (before === undefined || (text !== null && isReadAnew.has(id))) contents.push(id);
    else {
      changes.push(id);
      // Without a text, the line shows the file's state.
      if (text === null) lines.push(id);
    }
    const isNamed = contents.at(-1) === id || changes.at(-1) === id;
    if (isNamed && metadata.type === 'file' && !state.names.has(id)) lines.push(id);
  }
  const parts = Object.entries({ lines: [...new Set(lines)], contents, changes, seen, refs }).filter(
    ([, ids]) => ids.length > 0,
  );
  const chat = newChat(input, tail);
  const reads = readAgain(state, input, tail.reads);
  if (parts.length === 0 && reads.length === 0 && chat === undefined) return undefined;
  return {
    after: tail.count,
    ...Object.fromEntries(parts),
    ...(reads.length === 0 ? {} : { reads }),
    ...defined({ chat }),
  };
}

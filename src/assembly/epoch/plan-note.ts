import type { NoteProof } from '../../objects/assembly-proof.js';
import type { ObjectId } from '../../objects/ids.js';
import { defined } from '../../values/defined.js';
import { repeatedFile } from '../layout.js';
import type { ObjectMetadata } from '../metadata.js';
import type { EpochInput, EpochState } from './epoch-state.js';
import { newReads, readAgain, type TailRead } from './read-again.js';

/** What the messages that stay show of the session's objects. */
export interface ShownByTail {
  /** Behind how many of those messages a note would stand. */
  readonly count: number;
  /** The calls whose results stand there. */
  readonly results: ReadonlySet<ObjectId>;
  /**
   * Whether the messages show a file's present text: a call's result from beginning to end, or, since the last request, what a call did to the text that
   * the request has shown of it; `before` is undefined where it has shown none.
   */
  readonly shows: (file: ObjectMetadata<'file'>, text: string, before: string | undefined) => boolean;
  /** The calls there that read something, in their order. */
  readonly reads: readonly TailRead[];
  /** Where no list of a harness stays, and the chat as recorded stands in its place: the step up to which the request has it. */
  readonly chatUpTo?: number;
}

interface ShortNames {
  readonly short: ReadonlyMap<string, ObjectId>;
  readonly lengths: readonly number[];
}

/** Names are added to a copy: what is made of them once serves for as long as none comes. */
const shortened = new WeakMap<EpochState['names'], ShortNames>();

/** The names that are shorter than ids. They have few lengths: looked up by each of them, ten thousand new objects cost no more than reading their ids. */
function shortNames(names: EpochState['names']): ShortNames {
  const known = shortened.get(names);
  if (known !== undefined) return known;
  const short = new Map([...names].flatMap(([id, name]) => (name === id ? [] : [[name, id] as const])));
  const found = { short, lengths: [...new Set([...short.keys()].map(({ length }) => length))] };
  shortened.set(names, found);
  return found;
}

/** Objects whose short names another one's id begins with since it came. */
function ambiguous({ names, indexed }: EpochState, index: readonly ObjectId[]): readonly ObjectId[] {
  const fresh = index.slice(indexed);
  if (fresh.length === 0) return [];
  const { short, lengths } = shortNames(names);
  return [...new Set(fresh.flatMap((other) => lengths.flatMap((length) => short.get(other.slice(0, length)) ?? [])))];
}

/** New files that a call read or wrote. One that was merely named has its line from the next border on; a call stands in the request itself. */
function freshLines({ names, begun }: EpochState, { pool, active, index }: EpochInput): readonly ObjectId[] {
  // What the index had where the epoch began has a name; the pool may lack some of it.
  const fresh = pool.slice(Math.max(0, begun - (index.length - pool.length))).filter(({ id, type }) => type === 'file' && !names.has(id));
  if (fresh.length === 0) return [];
  const isActive = new Set(active.map(({ metadata }) => metadata.id));
  return fresh.flatMap((metadata) =>
    metadata.type === 'file' && (metadata.state !== 'stub' || isActive.has(metadata.id)) ? [metadata.id] : [],
  );
}

/** Whether a call's output is the text of an active file, which the request shows: then one line names the file (divergence E4). */
function repeatedBy(active: EpochInput['active']): (call: ObjectMetadata<'toolcall'>) => boolean {
  const files = new Map(active.map(({ metadata }) => [metadata.id, metadata]));
  return (call) => repeatedFile(call, files) !== undefined;
}

/** The step behind which the chat says something that the request does not have yet. */
function newChat({ chatSince }: EpochInput, { chatUpTo }: ShownByTail): number | undefined {
  const isNew =
    chatUpTo !== undefined && chatSince(chatUpTo).some(({ message, call }) => call !== undefined || (message?.text ?? '') !== '');
  return isNew ? chatUpTo : undefined;
}

/**
 * What the next request of an epoch must have behind the last one: lines of new objects, texts that became active and that the request does not show, and
 * changes of active texts that it shows in an older version. Undefined where it has everything. What is active no longer stays where it stands.
 */
export function planNote(state: EpochState, input: EpochInput, tail: ShownByTail): NoteProof | undefined {
  const { index, active } = input;
  const lines = [...freshLines(state, input), ...ambiguous(state, index)];
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
    // Lines that changed would be taken to be against what such a read has answered.
    else if (before === undefined || (text !== null && isReadAnew.has(id))) contents.push(id);
    else {
      changes.push(id);
      // Its line says what became of the file.
      if (text === null) lines.push(id);
    }
  }
  const parts = Object.entries({ lines: [...new Set(lines)], contents, changes, seen, refs }).filter(([, ids]) => ids.length > 0);
  const chat = newChat(input, tail);
  const reads = readAgain(state, input, tail.reads);
  if (parts.length === 0 && reads.length === 0 && chat === undefined) return undefined;
  return { after: tail.count, ...Object.fromEntries(parts), ...(reads.length === 0 ? {} : { reads }), ...defined({ chat }) };
}

import { filesystemId } from '../../objects/ids.js';
import { textsIn } from '../../session/used-lines.js';
import { REWINDS } from '../recordings/kept-places.js';
import type { EntryOf, RecordedEntry, RecordingFormat } from '../recordings/neutral-session.js';
import { callEffects } from '../replay/call-effects.js';
import type { FileTree, UndoTexts } from '../replay/files/file-tree.js';
import { INPUT_WITHOUT_CACHE } from '../replay/model-usage.js';
import type {
  FileFacts,
  ItemKind,
  ModelCall,
  RecordedCompaction,
  RecordedTokens,
  Timeline,
  TimelineItem,
} from './timeline.js';

type Usage = NonNullable<EntryOf<'message'>['usage']>;

/**
 * Formats in which every answer has a message, even if it only calls tools. A call belongs to the
 * newest message.
 */
const MESSAGE_FIRST: ReadonlySet<RecordingFormat> = new Set(['claude-code', 'pi', 'opencode', 'atif', 'dataclaw']);

/** A filesystem id that no machine has. The builder only compares paths. */
const NO_FILESYSTEM = filesystemId('timeline');
const NO_FILES: FileFacts = { shows: [], changes: [], texts: new Map() };

function recordedTokens(format: RecordingFormat, usage: Usage): RecordedTokens | undefined {
  const { input, output, cache_read, cache_write } = usage;
  if (input === undefined) return undefined;
  const prompt = INPUT_WITHOUT_CACHE.has(format) ? input + (cache_read ?? 0) + (cache_write ?? 0) : input;
  return prompt === 0 ? undefined : { prompt, cacheRead: cache_read, cacheWrite: cache_write, output };
}

/**
 * An item whose position may change: until the next model call, other items may be inserted before
 * it.
 */
type Placed = Omit<TimelineItem, 'position'> & { position: number };

interface OpenAnswer {
  readonly call: { recorded: RecordedTokens | undefined } & ModelCall;
  readonly outputs: TimelineItem[];
  /** True if a result or message arrived after the call began. */
  answered: boolean;
}

type ItemFields = Pick<TimelineItem, 'kind' | 'text'> &
  Partial<Pick<TimelineItem, 'answer' | 'callId' | 'tool' | 'isError' | 'files' | 'args' | 'argumentTexts'>>;

/** The state of a recording's files after the calls read so far. */
interface FollowedFiles {
  readonly tree: FileTree;
  readonly undo: UndoTexts;
}

/**
 * Builds the timeline of a session from its entries in order. All sessions of a recording share one
 * file tree. Without a tree, items name no files, and building takes half the time.
 */
export class TimelineBuilder {
  readonly #entry: EntryOf<'session'>;
  readonly #files: FollowedFiles | undefined;
  readonly #items: TimelineItem[] = [];
  readonly #calls: ModelCall[] = [];
  readonly #compactions: RecordedCompaction[] = [];
  /** The current conversation. */
  #current: TimelineItem[] = [];
  #turn = 0;
  #opensTurn = false;
  #at: number | undefined;
  #model: string | undefined;
  #answer: OpenAnswer | undefined;
  #unknownRewinds = 0;
  #copied = 0;
  readonly #open = new Map<string, EntryOf<'call'>>();
  /** For each entry, by its id in the recording, the range of its items in the conversation. */
  readonly #places = new Map<string, { readonly from: number; readonly to: number }>();

  constructor(entry: EntryOf<'session'>, files: FollowedFiles | undefined) {
    this.#entry = entry;
    this.#files = files;
    this.#model = entry.model;
    if (entry.system_prompt !== undefined) this.#add({ kind: 'system', text: entry.system_prompt });
  }

  take(entry: Exclude<RecordedEntry, { kind: 'session' }>): void {
    const from = this.#current.length;
    if (entry.kind === 'message') this.#message(entry);
    else if (entry.kind === 'call') this.#call(entry);
    else if (entry.kind === 'result') this.#result(entry);
    else if (entry.kind === 'compaction') this.#compaction(entry);
    else this.#event(entry);
    if (entry.native_id === undefined || entry.kind === 'event') return;
    const known = this.#places.get(entry.native_id);
    this.#places.set(entry.native_id, { from: known?.from ?? from, to: this.#current.length });
  }

  /** Returns the timeline. `recording` is the hash of the recording. */
  finish(recording: string): Timeline {
    const { format, native_id: nativeId, model, cwd } = this.#entry;
    return {
      key: `${recording} ${nativeId}`,
      cwd,
      format,
      nativeId,
      model: model ?? this.#calls.find((call) => call.model !== undefined)?.model,
      items: this.#items,
      calls: this.#calls,
      compactions: this.#compactions,
      unknownRewinds: this.#unknownRewinds,
      copiedCalls: this.#copied,
    };
  }

  /**
   * Adds an item to the conversation: at the end, or at a position before results that arrived
   * earlier.
   */
  #add(fields: ItemFields, position = this.#current.length): TimelineItem {
    const item: Placed = {
      index: this.#items.length,
      position,
      turn: this.#turn,
      callId: undefined,
      tool: undefined,
      isError: false,
      files: NO_FILES,
      answer: undefined,
      args: undefined,
      argumentTexts: [],
      staleFrom: undefined,
      ...fields,
    };
    this.#items.push(item);
    for (const later of this.#current.slice(position) as Placed[]) later.position += 1;
    this.#current.splice(position, 0, item);
    if (position + 1 < this.#current.length) this.#movePlaces(position);
    return item;
  }

  #movePlaces(position: number): void {
    for (const [id, { from, to }] of this.#places) {
      if (to > position) this.#places.set(id, { from: from >= position ? from + 1 : from, to: to + 1 });
    }
  }

  /** Adds an input, which the next model call answers. */
  #input(fields: ItemFields, at: number | undefined): TimelineItem {
    this.#at = at ?? this.#at;
    if (this.#answer !== undefined) this.#answer.answered = true;
    return this.#add(fields);
  }

  #output(fields: ItemFields, copied: boolean | undefined): void {
    this.#answer ??= this.#begin(copied);
    const { call, outputs } = this.#answer;
    const last = outputs.at(-1);
    // In a request the calls of one answer are adjacent, even if the recording has results between
    // them.
    outputs.push(
      this.#add({ ...fields, answer: call.index }, last === undefined ? this.#current.length : last.position + 1),
    );
  }

  #begin(copied = false): OpenAnswer {
    if (copied) this.#copied += 1;
    const outputs: TimelineItem[] = [];
    const call: OpenAnswer['call'] = {
      index: this.#calls.length,
      turn: this.#turn,
      opensTurn: this.#opensTurn,
      items: this.#current,
      visible: this.#current.length,
      outputs,
      at: this.#at,
      model: this.#model,
      recorded: undefined,
    };
    this.#opensTurn = false;
    this.#calls.push(call);
    return { call, outputs, answered: false };
  }

  #message(entry: EntryOf<'message'>): void {
    const { role, origin, text, thinking, usage, copied, at } = entry;
    if (role === 'assistant' && origin === 'model') {
      const ends = this.#answer !== undefined && (this.#answer.answered || MESSAGE_FIRST.has(this.#entry.format));
      if (ends) this.#answer = undefined;
      this.#answer ??= this.#begin(copied);
      if (thinking !== undefined) this.#output({ kind: 'thinking', text: thinking }, copied);
      if (text !== '') this.#output({ kind: 'text', text }, copied);
      if (usage !== undefined) this.#usage(usage);
      return;
    }
    const isUser = role === 'user' && origin !== 'harness';
    if (isUser) {
      this.#turn += 1;
      this.#opensTurn = true;
    }
    const kind: ItemKind = isUser ? 'user' : role === 'system' ? 'system' : 'harness';
    if (text !== '') this.#input({ kind, text }, at);
  }

  #usage(usage: Usage): void {
    const recorded = recordedTokens(this.#entry.format, usage);
    if (this.#answer !== undefined && recorded !== undefined) this.#answer.call.recorded = recorded;
  }

  #call(entry: EntryOf<'call'>): void {
    if (this.#answer?.answered === true && !MESSAGE_FIRST.has(this.#entry.format)) this.#answer = undefined;
    this.#open.set(entry.call_id, entry);
    const { call_id: callId, tool, args } = entry;
    const text = `${tool} ${JSON.stringify(args)}`;
    this.#output({ kind: 'call', text, callId, tool, args, argumentTexts: textsIn(args) }, entry.copied);
  }

  #result(entry: EntryOf<'result'>): void {
    const call = this.#open.get(entry.call_id);
    if (call === undefined) return;
    this.#open.delete(entry.call_id);
    const files = this.#filesOf(call, entry);
    for (const path of files.changes) this.#outdate(path);
    const { text, is_error: isError } = entry;
    this.#input({ kind: 'result', text, callId: entry.call_id, tool: call.tool, isError, files }, entry.at);
  }

  #filesOf(call: EntryOf<'call'>, result: EntryOf<'result'>): FileFacts {
    const files = this.#files;
    if (files === undefined) return NO_FILES;
    const context = {
      ...files,
      cwd: this.#entry.cwd,
      filesystem: NO_FILESYSTEM,
      now: result.at ?? 0,
      strict: false,
    };
    const { seen } = callEffects(call, result, context);
    const texts = seen.flatMap(({ path }) => {
      const text = files.tree.text(path);
      return text === undefined ? [] : [[path, text] as const];
    });
    return {
      texts: new Map(texts),
      shows: seen.filter(({ how }) => how === 'whole' || how === 'part').map(({ path }) => path),
      changes: seen.filter(({ how }) => how === 'written' || how === 'deleted').map(({ path }) => path),
    };
  }

  #outdate(path: string): void {
    for (const item of this.#current) {
      if (item.staleFrom === undefined && item.files.shows.some((shown) => shown === path))
        item.staleFrom = this.#calls.length;
    }
  }

  #compaction(entry: EntryOf<'compaction'>): void {
    const from = this.#places.get(entry.kept_from ?? '')?.from;
    const dropped = new Set(entry.dropped?.flatMap((id) => range(this.#places.get(id))));
    const keeps = (item: TimelineItem): boolean =>
      item.kind === 'system' ||
      (entry.dropped !== undefined ? !dropped.has(item.position) : from !== undefined && item.position >= from);
    this.#compactions.push({
      before: this.#calls.length,
      summary: entry.summary ?? '',
      kept: this.#current.filter(keeps),
      visible: this.#current.length,
    });
    this.#answer = undefined;
    this.#at = entry.at ?? this.#at;
  }

  #event(entry: EntryOf<'event'>): void {
    if (entry.name === 'model-change') this.#model = entry.text ?? this.#model;
    if (entry.usage !== undefined) this.#usage(entry.usage);
    if (REWINDS.has(entry.name)) this.#rewind(entry);
    const text = entry.files?.map((file) => file.text ?? '').join('\n') ?? '';
    if (text !== '') this.#input({ kind: 'harness', text }, entry.at);
  }

  /** Continues the conversation from an earlier position. Earlier calls keep the removed items. */
  #rewind({ undone_from, undone_turns, parent_id }: EntryOf<'event'>): void {
    const prompts = this.#current.filter(({ kind }) => kind === 'user').map(({ position }) => position);
    const kept =
      undone_turns === undefined
        ? (this.#places.get(undone_from ?? '')?.from ?? this.#places.get(parent_id ?? '')?.to)
        : prompts.at(-undone_turns);
    this.#answer = undefined;
    if (kept === undefined || kept > this.#current.length) {
      this.#unknownRewinds += 1;
      return;
    }
    this.#current = this.#current.slice(0, kept);
    for (const [id, { to }] of this.#places) if (to > kept) this.#places.delete(id);
  }
}

function range(place: { readonly from: number; readonly to: number } | undefined): readonly number[] {
  return place === undefined ? [] : Array.from({ length: place.to - place.from }, (_one, i) => place.from + i);
}

import type { JsonObject } from '../../../values/json-object.js';
import { ownMember } from '../../../values/own-member.js';
import { type EntryCommon, idAt, momentOf, numberAt, objectAt, textAt } from '../entries/fields.js';
import { excerpt, type Importer, type OnLoss } from '../importer.js';
import { type LineReader, lineImporter } from '../json/line-format.js';
import type { RecordedEntry } from '../neutral-session.js';
import { PiMessages } from './messages.js';

type Handler = (record: JsonObject, common: EntryCommon) => readonly RecordedEntry[];

/** Kinds of entries that are not part of the conversation. */
const BOOKKEEPING = new Set(['label', 'custom']);

/**
 * Returns an id for an entry of format version 1, which has no ids. The header is entry 0, because
 * compactions of that version count it too.
 */
const entryId = (index: number): string => `entry-${index}`;

/** Returns the session's id from the name of its file: `<time>_<id>.jsonl`. */
function sessionOfFile(path: string): string {
  return /([^/\\_]+)\.jsonl$/.exec(path)?.[1] ?? path;
}

/**
 * Reads the entries of a file, which form a tree, or a list in version 1. Keeps only the ids of
 * earlier entries in memory.
 */
class PiReader implements LineReader {
  readonly #fallbackId: string;
  readonly #onLoss: OnLoss;
  readonly #messages: PiMessages;
  readonly #ids = new Set<string>();
  #last: string | undefined;
  #session: string | undefined;
  #startedAt: number | undefined;
  #fork = false;
  /** Number of the current entry. The header is entry 0. */
  #index = -1;
  readonly #handlers: Readonly<Record<string, Handler>> = {
    message: (record, common) => this.#messages.entries(objectAt(record, 'message'), common),
    compaction: (record, common) => [compaction(record, common)],
    model_change: (record, common) => [
      { kind: 'event', ...common, name: 'model-change', text: textAt(record, 'modelId') },
    ],
    thinking_level_change: (record, common) => [
      { kind: 'event', ...common, name: 'thinking-level', text: textAt(record, 'thinkingLevel') },
    ],
    session_info: (record, common) => [{ kind: 'event', ...common, name: 'titled', text: textAt(record, 'name') }],
    branch_summary: (record, common) => [
      this.#messages.handed('branch_summary', { summary: textAt(record, 'summary') ?? '' }, common),
    ],
    custom_message: (record, common) => [this.#messages.handed('custom_message', { content: record.content }, common)],
  };

  constructor(fallbackId: string, onLoss: OnLoss) {
    this.#fallbackId = fallbackId;
    this.#onLoss = onLoss;
    this.#messages = new PiMessages(onLoss);
  }

  read(record: JsonObject, place: string): readonly RecordedEntry[] {
    const type = textAt(record, 'type') ?? '';
    this.#index += 1;
    if (type === 'session') return this.#header(record, place);
    const handler = ownMember(this.#handlers, type);
    if (handler === undefined && !BOOKKEEPING.has(type)) {
      this.#onLoss({
        reason: 'unknown-record',
        place,
        detail: `an entry of the kind ${JSON.stringify(excerpt(type))}: left out`,
      });
    }
    const begun = this.#session === undefined ? this.#begin(undefined, place) : [];
    return [...begun, ...this.#entry(record, place, handler)];
  }

  finish(): readonly RecordedEntry[] {
    this.#messages.finish();
    return [];
  }

  #header(record: JsonObject, place: string): readonly RecordedEntry[] {
    if (this.#session === undefined) return this.#begin(record, place);
    this.#onLoss({ reason: 'duplicate-id', place, detail: 'a second header: the session continues' });
    return [];
  }

  #begin(record: JsonObject | undefined, place: string): readonly RecordedEntry[] {
    this.#session = idAt(record, 'id') ?? this.#fallbackId;
    this.#startedAt = momentOf(record?.timestamp);
    const origin = idAt(record, 'parentSession') ?? idAt(record, 'branchedFrom');
    this.#fork = origin !== undefined;
    return [
      {
        kind: 'session',
        format: 'pi',
        native_id: this.#session,
        place,
        agent: 'pi',
        model: textAt(record, 'modelId'),
        cwd: textAt(record, 'cwd'),
        started_at: this.#startedAt,
        parent: origin === undefined ? undefined : { native_id: sessionOfFile(origin), relation: 'fork' },
      },
    ];
  }

  /**
   * Returns the entries of a record. If the record's parent is not the previous record, first
   * returns a rewind. In a fork, entries older than the header are copies.
   */
  #entry(record: JsonObject, place: string, handler: Handler | undefined): readonly RecordedEntry[] {
    const own = idAt(record, 'id');
    const id = own ?? entryId(this.#index);
    if (this.#ids.has(id)) {
      this.#onLoss({ reason: 'duplicate-id', place, detail: `the entry ${excerpt(id)} occurs again: left out` });
      return [];
    }
    this.#ids.add(id);
    const last = this.#last;
    this.#last = id;
    const at = momentOf(record.timestamp) ?? momentOf(objectAt(record, 'message')?.timestamp);
    const copied = this.#fork && at !== undefined && this.#startedAt !== undefined && at < this.#startedAt;
    const parent_id = own === undefined ? last : idAt(record, 'parentId');
    const session = this.#session ?? this.#fallbackId;
    const common: EntryCommon = { session, place, at, native_id: id, parent_id, ...(copied ? { copied } : {}) };
    const rewinds = last !== undefined && own !== undefined && parent_id !== last;
    const rewind: readonly RecordedEntry[] = rewinds ? [{ kind: 'event', ...common, name: 'rewind', text: last }] : [];
    return [...rewind, ...(handler?.(record, common) ?? [])];
  }
}

function compaction(record: JsonObject, common: EntryCommon): RecordedEntry {
  const index = numberAt(record, 'firstKeptEntryIndex');
  return {
    kind: 'compaction',
    ...common,
    summary: textAt(record, 'summary'),
    tokens_before: numberAt(record, 'tokensBefore'),
    kept_from: idAt(record, 'firstKeptEntryId') ?? (index === undefined ? undefined : entryId(index)),
  };
}

/**
 * Reads pi's JSON lines, one file per session. Version 1 is a list, and versions 2 and 3 are a tree
 * of entries.
 */
export const pi: Importer = lineImporter('pi', (id, onLoss) => new PiReader(id, onLoss));

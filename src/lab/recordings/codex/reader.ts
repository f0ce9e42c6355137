import { defined } from '../../../values/defined.js';
import { EntryQueue, type HeldEntry } from '../entries/entry-queue.js';
import { excerpt } from '../entries/excerpt.js';
import { idAt, momentOf, numberAt, objectAt, objectsAt, textAt } from '../entries/fields.js';
import { partsText } from '../entries/message-parts.js';
import { createOpaqueContent } from '../entries/opaque-content.js';
import type { OnLoss } from '../importer.js';
import type { JsonObject } from '../json/json-text.js';
import { lineFormat } from '../json/line-format.js';
import type { RecordedEntry } from '../neutral-session.js';
import { codexItems, type ItemContext } from './items.js';
import { exitCodeOf, patchEvidence } from './outputs.js';
import { CopiedHistory, codexSession } from './session.js';

type Handler = (payload: JsonObject, place: string, at: number | undefined) => void;

/** Records and events that say nothing beyond the transcript. */
const BOOKKEEPING = new Set(['world_state', 'inter_agent_communication_metadata', 'ghost_snapshot', 'state']);

/** Reads the records of one file of Codex, one after the other. */
export class CodexReader {
  readonly #fallbackId: string;
  readonly #onLoss: OnLoss;
  readonly #queue = new EntryQueue();
  readonly #opaque = createOpaqueContent();
  readonly #copy = new CopiedHistory();
  readonly #items: Readonly<Record<string, (payload: JsonObject, common: ItemContext['common']) => void>>;
  readonly #context: ItemContext;
  #head: HeldEntry<'session'> | undefined;
  #tokens: string | undefined;
  readonly #records: Readonly<Record<string, Handler>> = {
    session_meta: (payload, place, at) => this.#meta(payload, place, at),
    turn_context: (payload, place, at) => this.#turn(payload, place, at),
    response_item: (payload, place, at) => this.#item(payload, place, at),
    compacted: (payload, place, at) => this.#compacted(payload, place, at),
    event_msg: (payload, place, at) => this.#event(payload, place, at),
  };

  constructor(fallbackId: string, onLoss: OnLoss) {
    this.#fallbackId = fallbackId;
    this.#onLoss = onLoss;
    this.#context = {
      queue: this.#queue,
      opaque: this.#opaque,
      onLoss,
      calls: new Map(),
      common: { session: fallbackId, place: '' },
      sessionCwd: undefined,
      turnCwd: undefined,
      model: undefined,
      thinking: undefined,
    };
    this.#items = codexItems(this.#context);
  }

  /** Takes one record. */
  read(record: JsonObject, place: string): void {
    const at = momentOf(record.timestamp);
    const type = textAt(record, 'type') ?? textAt(record, 'record_type') ?? '';
    const payload = objectAt(record, 'payload');
    const handler = Object.hasOwn(this.#records, type) ? this.#records[type] : undefined;
    const found = lineFormat(record);
    if (found !== undefined && found.format !== 'codex') {
      this.#onLoss({ reason: 'mixed-formats', place, detail: `a record of ${found.format}: left out` });
    } else if (handler !== undefined && payload !== undefined) handler(payload, place, at);
    else if (payload === undefined && type === '' && idAt(record, 'id') !== undefined) this.#meta(record, place, at);
    else if (payload === undefined && Object.hasOwn(this.#items, type)) this.#item(record, place, at);
    else if (!BOOKKEEPING.has(type)) {
      this.#onLoss({ reason: 'unknown-record', place, detail: `a record of the kind ${JSON.stringify(excerpt(type))}: left out` });
    }
  }

  /** The entries that are finished. */
  ready(): readonly RecordedEntry[] {
    return this.#queue.take();
  }

  /** The end of the file: everything that is left. */
  finish(): readonly RecordedEntry[] {
    this.#flushThinking();
    this.#opaque.finish(this.#onLoss);
    return this.#queue.drain();
  }

  #at(place: string, at: number | undefined, payload?: JsonObject): ItemContext['common'] {
    if (this.#head === undefined) this.#open(undefined, place);
    const copied = this.#copy.holds(at) ? { copied: true } : {};
    this.#context.common = { session: this.#context.common.session, place, at, native_id: idAt(payload, 'id'), ...copied };
    return this.#context.common;
  }

  #open(meta: JsonObject | undefined, place: string): void {
    const session = codexSession(meta, place, this.#fallbackId);
    this.#head = this.#queue.hold<'session'>(session);
    this.#context.common = { session: session.native_id, place };
    this.#context.sessionCwd = session.cwd;
    this.#context.turnCwd = session.cwd;
  }

  #meta(meta: JsonObject, place: string, at: number | undefined): void {
    if (this.#head === undefined) {
      this.#open(meta, place);
      return;
    }
    const { native_id: own, parent } = this.#head.entry;
    const id = idAt(meta, 'id');
    if (id === parent?.native_id) this.#copy.begin(at);
    else this.#queue.push({ kind: 'event', ...this.#at(place, at), name: 'resumed', text: id === own ? undefined : id });
  }

  #turn(payload: JsonObject, place: string, at: number | undefined): void {
    const common = this.#at(place, at);
    this.#context.turnCwd = textAt(payload, 'cwd') ?? this.#context.turnCwd;
    const model = textAt(payload, 'model');
    if (model === undefined || model === this.#context.model) return;
    const first = this.#context.model === undefined;
    this.#context.model = model;
    if (first && this.#head?.update({ model }) === true) this.#head.release();
    else this.#queue.push({ kind: 'event', ...common, name: 'model-change', text: model });
  }

  #item(payload: JsonObject, place: string, at: number | undefined): void {
    const type = textAt(payload, 'type') ?? '';
    const common = this.#at(place, at, payload);
    if (type !== 'message' && type !== 'reasoning') this.#flushThinking();
    const handler = Object.hasOwn(this.#items, type) ? this.#items[type] : undefined;
    if (handler !== undefined) handler(payload, common);
    else if (!BOOKKEEPING.has(type)) {
      this.#onLoss({ reason: 'unknown-record', place, detail: `an item of the kind ${JSON.stringify(excerpt(type))}: left out` });
    }
  }

  /** Thoughts with a call and no message behind them. */
  #flushThinking(): void {
    const { thinking } = this.#context;
    if (thinking === undefined) return;
    this.#queue.push({ kind: 'message', ...thinking.common, role: 'assistant', origin: 'model', text: '', thinking: thinking.text });
    this.#context.thinking = undefined;
  }

  #compacted(payload: JsonObject, place: string, at: number | undefined): void {
    const common = this.#at(place, at);
    this.#flushThinking();
    const kept: string[] = [];
    for (const item of objectsAt(payload, 'replacement_history')) {
      const role = textAt(item, 'role');
      if (textAt(item, 'type') === 'message' && role !== undefined) kept.push(`${role}: ${partsText(item.content, place, this.#onLoss)}`);
      else this.#opaque.note('what a compaction kept', place);
    }
    const message = textAt(payload, 'message') ?? '';
    const summary = [...(message === '' ? [] : [message]), ...kept].join('\n\n');
    this.#queue.push({ kind: 'compaction', ...common, summary: summary === '' ? undefined : summary });
  }

  /** Events repeat the transcript for the screen; a few say more than it. */
  #event(payload: JsonObject, place: string, at: number | undefined): void {
    const type = textAt(payload, 'type') ?? '';
    const common = this.#at(place, at);
    const call = this.#context.calls.get(idAt(payload, 'call_id') ?? '');
    if (type === 'token_count') this.#usage(payload, common);
    else if (type === 'turn_aborted') this.#queue.push({ kind: 'event', ...common, name: 'aborted', text: textAt(payload, 'reason') });
    else if (type === 'thread_rolled_back') {
      const turns = numberAt(payload, 'num_turns') ?? 0;
      const undone_turns = Number.isSafeInteger(turns) && turns > 0 ? turns : undefined;
      this.#queue.push({ kind: 'event', ...common, name: 'rewind', text: `${turns} turns`, ...defined({ undone_turns }) });
    } else if (type === 'error' || type === 'stream_error') {
      this.#queue.push({ kind: 'event', ...common, name: 'api-error', text: textAt(payload, 'message') });
    } else if (type === 'patch_apply_end' && call !== undefined) call.files = patchEvidence(payload);
    else if (type === 'exec_command_end' && call !== undefined) {
      call.exitCode = numberAt(payload, 'exit_code') ?? exitCodeOf(textAt(payload, 'formatted_output') ?? '');
    }
  }

  /** The tokens of the answer before it; the same count comes again when only limits have changed. */
  #usage(payload: JsonObject, common: ItemContext['common']): void {
    const info = objectAt(payload, 'info');
    const last = objectAt(info, 'last_token_usage');
    const total = JSON.stringify(info?.total_token_usage);
    if (last === undefined || total === this.#tokens) return;
    this.#tokens = total;
    const usage = {
      input: numberAt(last, 'input_tokens'),
      output: numberAt(last, 'output_tokens'),
      cache_read: numberAt(last, 'cached_input_tokens'),
      total: numberAt(last, 'total_tokens'),
    };
    this.#queue.push({ kind: 'event', ...common, name: 'usage', usage });
  }
}

import type { JsonObject } from '../../../values/json-object.js';
import { ownMember } from '../../../values/own-member.js';
import { partsText } from '../entries/chat-message.js';
import { EntryQueue, type HeldEntry } from '../entries/entry-queue.js';
import { type EntryCommon, idAt, momentOf, numberAt, objectAt, objectsAt, textAt, usageAt } from '../entries/fields.js';
import { excerpt, type Importer, type OnLoss, OpaqueContent } from '../importer.js';
import { type LineReader, lineImporter } from '../json/line-format.js';
import type { EntryOf, RecordedEntry } from '../neutral-session.js';
import { CompletedItems } from './completed-items.js';
import { CopiedHistory } from './copied-history.js';
import { CountedAnswers } from './counted-answers.js';
import { codexItems, exitCodeOf, type ItemContext, patchEvidence } from './items.js';

/** Returns the session that the first `session_meta` record of a file describes. */
function codexSession(meta: JsonObject | undefined, place: string, fallbackId: string): EntryOf<'session'> {
  const source = objectAt(meta, 'source');
  const spawn = objectAt(objectAt(source, 'subagent'), 'thread_spawn');
  const origin = idAt(meta, 'forked_from_id') ?? idAt(spawn, 'parent_thread_id');
  const subagent = source !== undefined && 'subagent' in source;
  return {
    kind: 'session',
    format: 'codex',
    native_id: idAt(meta, 'id') ?? fallbackId,
    place,
    agent: 'Codex',
    agent_version: textAt(meta, 'cli_version'),
    cwd: textAt(meta, 'cwd'),
    started_at: momentOf(meta?.timestamp),
    system_prompt: textAt(objectAt(meta, 'base_instructions'), 'text') ?? textAt(meta, 'instructions'),
    parent: origin === undefined ? undefined : { native_id: origin, relation: subagent ? 'subagent' : 'fork' },
  };
}

/** A record or its payload, with its place in the file and its time. */
interface CodexRecord {
  readonly payload: JsonObject;
  readonly place: string;
  readonly at: number | undefined;
}

type Handler = (record: CodexRecord) => void;

/** Kinds of records and items that are not part of the transcript. */
const BOOKKEEPING = new Set(['world_state', 'inter_agent_communication_metadata', 'ghost_snapshot', 'state']);

/** Events that end the model's answer. */
const ENDS: ReadonlySet<string> = new Set(['task_complete', 'turn_aborted', 'thread_rolled_back']);

class CodexReader implements LineReader {
  readonly #fallbackId: string;
  readonly #onLoss: OnLoss;
  readonly #queue = new EntryQueue();
  readonly #opaque = new OpaqueContent();
  readonly #answers = new CountedAnswers(this.#queue);
  readonly #copy = new CopiedHistory();
  readonly #items: Readonly<Record<string, (payload: JsonObject, common: EntryCommon) => void>>;
  readonly #context: ItemContext;
  readonly #completed: CompletedItems;
  #head: HeldEntry<'session'> | undefined;
  #tokens: string | undefined;
  readonly #records: Readonly<Record<string, Handler>> = {
    session_meta: (record) => this.#meta(record),
    turn_context: (record) => this.#turn(record),
    response_item: (record) => this.#item(record),
    compacted: (record) => this.#compacted(record),
    event_msg: (record) => this.#event(record),
  };

  constructor(fallbackId: string, onLoss: OnLoss) {
    this.#fallbackId = fallbackId;
    this.#onLoss = onLoss;
    this.#context = {
      queue: this.#queue,
      answers: this.#answers,
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
    this.#completed = new CompletedItems(this.#context);
  }

  read(record: JsonObject, place: string): readonly RecordedEntry[] {
    const at = momentOf(record.timestamp);
    const type = textAt(record, 'type') ?? textAt(record, 'record_type') ?? '';
    const payload = objectAt(record, 'payload');
    const handler = ownMember(this.#records, type);
    this.#copy.turn(textAt(payload, 'turn_id'));
    if (handler !== undefined && payload !== undefined) {
      if (type === 'response_item') this.#answers.mayCount = true;
      handler({ payload, place, at });
    } else if (payload === undefined && type === '' && idAt(record, 'id') !== undefined)
      this.#meta({ payload: record, place, at });
    else if (payload === undefined && Object.hasOwn(this.#items, type)) this.#item({ payload: record, place, at });
    else if (!BOOKKEEPING.has(type)) {
      this.#onLoss({
        reason: 'unknown-record',
        place,
        detail: `a record of the kind ${JSON.stringify(excerpt(type))}: left out`,
      });
    }
    return this.#queue.take();
  }

  rest(): readonly RecordedEntry[] {
    this.#head?.release();
    this.#answers.rest();
    return this.#queue.take();
  }

  finish(): readonly RecordedEntry[] {
    this.#flushThinking();
    this.#answers.end();
    this.#completed.finish();
    this.#opaque.finish(this.#onLoss);
    return this.#queue.drain();
  }

  /**
   * Returns the fields that all entries of a record share. If the file has no `session_meta`
   * record, it opens the session first.
   */
  #common({ place, at }: Omit<CodexRecord, 'payload'>, item?: JsonObject): EntryCommon {
    if (this.#head === undefined) this.#open(undefined, place);
    const isCopied = this.#copy.holds(at);
    this.#context.common = {
      session: this.#context.common.session,
      place,
      at: isCopied ? this.#copy.madeAt(at) : at,
      native_id: idAt(item, 'id'),
      ...(isCopied ? { copied: true } : {}),
    };
    return this.#context.common;
  }

  #open(meta: JsonObject | undefined, place: string): void {
    const session = codexSession(meta, place, this.#fallbackId);
    this.#head = this.#queue.hold<'session'>(session);
    this.#copy.session(session.started_at);
    this.#context.common = { session: session.native_id, place };
    this.#context.sessionCwd = session.cwd;
    this.#context.turnCwd = session.cwd;
  }

  #meta({ payload: meta, place, at }: CodexRecord): void {
    if (this.#head === undefined) {
      this.#open(meta, place);
      return;
    }
    const { native_id: own, parent } = this.#head.entry;
    const id = idAt(meta, 'id');
    if (id === parent?.native_id) this.#copy.begin(at, momentOf(meta.timestamp));
    else
      this.#queue.push({
        kind: 'event',
        ...this.#common({ place, at }),
        name: 'resumed',
        text: id === own ? undefined : id,
      });
  }

  #turn({ payload, ...where }: CodexRecord): void {
    const common = this.#common(where);
    this.#context.turnCwd = textAt(payload, 'cwd') ?? this.#context.turnCwd;
    const model = textAt(payload, 'model');
    if (model === undefined || model === this.#context.model) return;
    const first = this.#context.model === undefined;
    this.#context.model = model;
    if (first && this.#head?.update({ model }) === true) this.#head.release();
    else this.#queue.push({ kind: 'event', ...common, name: 'model-change', text: model });
  }

  #item({ payload, place, at }: CodexRecord): void {
    const type = textAt(payload, 'type') ?? '';
    const common = this.#common({ place, at }, payload);
    this.#completed.transcript(payload);
    if (type !== 'message' && type !== 'reasoning') this.#flushThinking();
    const handler = Object.hasOwn(this.#items, type) ? this.#items[type] : undefined;
    if (handler !== undefined) handler(payload, common);
    else if (!BOOKKEEPING.has(type)) {
      this.#onLoss({
        reason: 'unknown-record',
        place,
        detail: `an item of the kind ${JSON.stringify(excerpt(type))}: left out`,
      });
    }
  }

  /**
   * Queues waiting thoughts as a separate message, because a call follows them instead of a
   * message.
   */
  #flushThinking(): void {
    const { thinking } = this.#context;
    if (thinking === undefined) return;
    this.#answers.message({
      kind: 'message',
      ...thinking.common,
      role: 'assistant',
      origin: 'model',
      text: '',
      thinking: thinking.text,
    });
    this.#context.thinking = undefined;
  }

  #compacted({ payload, place, at }: CodexRecord): void {
    const common = this.#common({ place, at });
    this.#flushThinking();
    this.#answers.end();
    const kept: string[] = [];
    for (const item of objectsAt(payload, 'replacement_history')) {
      const role = textAt(item, 'role');
      if (textAt(item, 'type') === 'message' && role !== undefined)
        kept.push(`${role}: ${partsText(item.content, { place, onLoss: this.#onLoss })}`);
      else this.#opaque.note('what a compaction kept', place);
    }
    const message = textAt(payload, 'message') ?? '';
    const summary = [...(message === '' ? [] : [message]), ...kept].join('\n\n');
    this.#queue.push({ kind: 'compaction', ...common, summary: summary === '' ? undefined : summary });
  }

  /**
   * Reads the events that contain more than the transcript. Other events repeat the transcript for
   * the screen.
   */
  #event({ payload, ...where }: CodexRecord): void {
    const type = textAt(payload, 'type') ?? '';
    const common = this.#common(where);
    const call = this.#context.calls.get(idAt(payload, 'call_id') ?? '');
    if (ENDS.has(type)) this.#answers.end();
    if (type === 'token_count') this.#usage(payload, common);
    else if (type === 'item_completed') this.#completed.item(objectAt(payload, 'item'), common);
    else if (type === 'turn_aborted')
      this.#queue.push({ kind: 'event', ...common, name: 'aborted', text: textAt(payload, 'reason') });
    else if (type === 'thread_rolled_back') {
      const turns = numberAt(payload, 'num_turns') ?? 0;
      const undone_turns = Number.isSafeInteger(turns) && turns > 0 ? turns : undefined;
      this.#queue.push({ kind: 'event', ...common, name: 'rewind', text: `${turns} turns`, undone_turns });
    } else if (type === 'error' || type === 'stream_error') {
      this.#queue.push({ kind: 'event', ...common, name: 'api-error', text: textAt(payload, 'message') });
    } else if (type === 'patch_apply_end' && call !== undefined) call.files = patchEvidence(payload);
    else if (type === 'exec_command_end' && call !== undefined) {
      call.exitCode = numberAt(payload, 'exit_code') ?? exitCodeOf(textAt(payload, 'formatted_output') ?? '');
    }
  }

  /**
   * Adds token counts to the preceding answer. Skips a repeated count, which Codex writes when only
   * rate limits have changed.
   */
  #usage(payload: JsonObject, common: EntryCommon): void {
    const info = objectAt(payload, 'info');
    const last = objectAt(info, 'last_token_usage');
    const total = JSON.stringify(info?.total_token_usage);
    if (last === undefined || total === this.#tokens) return;
    this.#tokens = total;
    const names = {
      input: 'input_tokens',
      output: 'output_tokens',
      cache_read: 'cached_input_tokens',
      total: 'total_tokens',
    };
    const usage = usageAt(last, names) ?? {};
    if (!this.#answers.count(usage)) this.#queue.push({ kind: 'event', ...common, name: 'usage', usage });
  }
}

/** Reads Codex's JSON lines under `~/.codex/sessions`, one file per session and per sub-agent. */
export const codex: Importer = lineImporter('codex', (id, onLoss) => new CodexReader(id, onLoss));

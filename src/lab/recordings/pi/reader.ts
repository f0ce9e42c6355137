import { callArguments } from '../entries/call-arguments.js';
import { excerpt } from '../entries/excerpt.js';
import { idAt, momentOf, numberAt, objectAt, objectsAt, textAt } from '../entries/fields.js';
import { partsText } from '../entries/message-parts.js';
import { createOpaqueContent } from '../entries/opaque-content.js';
import type { OnLoss } from '../importer.js';
import type { JsonObject } from '../json/json-text.js';
import { lineFormat } from '../json/line-format.js';
import type { RecordedEntry } from '../neutral-session.js';
import { bashExecutionText, piUsage, readEvidence } from './messages.js';
import { entryId, type PiCommon, PiTree } from './tree.js';

type Handler = (record: JsonObject, common: PiCommon) => readonly RecordedEntry[];

/** Entries that are no part of the conversation. */
const BOOKKEEPING = new Set(['label', 'session_info', 'custom']);

/** Reads the records of one file of pi, one after the other. */
export class PiReader {
  readonly #fallbackId: string;
  readonly #onLoss: OnLoss;
  readonly #opaque = createOpaqueContent();
  /** Calls without a result: their tools and arguments. */
  readonly #calls = new Map<string, { readonly tool: string; readonly args: JsonObject }>();
  readonly #tree: PiTree;
  #session: string | undefined;
  #startedAt: number | undefined;
  #fork = false;
  /** How many entries the file has had, the header among them: the first version counts by it. */
  #index = -1;
  readonly #entries: Readonly<Record<string, Handler>> = {
    message: (record, common) => this.#message(record, common),
    compaction: (record, common) => [this.#compaction(record, common)],
    model_change: (record, common) => [{ kind: 'event', ...common, name: 'model-change', text: textAt(record, 'modelId') }],
    thinking_level_change: (record, common) => [
      { kind: 'event', ...common, name: 'thinking-level', text: textAt(record, 'thinkingLevel') },
    ],
    branch_summary: (record, common) => [
      { kind: 'message', ...common, role: 'user', origin: 'harness', name: 'branch_summary', text: textAt(record, 'summary') ?? '' },
    ],
    custom_message: (record, common) => [
      {
        kind: 'message',
        ...common,
        role: 'user',
        origin: 'harness',
        name: 'custom_message',
        text: this.#text(record.content, common.place),
      },
    ],
  };
  readonly #roles: Readonly<Record<string, Handler>> = {
    user: (message, common) => [
      { kind: 'message', ...common, role: 'user', origin: 'person', text: this.#text(message.content, common.place) },
    ],
    assistant: (message, common) => this.#assistant(message, common),
    toolResult: (message, common) => this.#result(message, common),
    bashExecution: (message, common) => {
      const text = bashExecutionText(message);
      if (message.excludeFromContext === true) return [{ kind: 'event', ...common, name: 'person-ran', text }];
      return [{ kind: 'message', ...common, role: 'user', origin: 'person', name: 'bashExecution', text }];
    },
    custom: (message, common) => this.#handed(message, common),
    hookMessage: (message, common) => this.#handed(message, common),
    branchSummary: (message, common) => this.#handed(message, common),
    compactionSummary: (message, common) => this.#handed(message, common),
  };

  constructor(fallbackId: string, onLoss: OnLoss) {
    this.#fallbackId = fallbackId;
    this.#onLoss = onLoss;
    this.#tree = new PiTree(onLoss);
  }

  /** The entries of one record. */
  read(record: JsonObject, place: string): readonly RecordedEntry[] {
    const type = textAt(record, 'type') ?? '';
    const found = lineFormat(record);
    if (found !== undefined && found.format !== 'pi') {
      this.#onLoss({ reason: 'mixed-formats', place, detail: `a record of ${found.format}: left out` });
      return [];
    }
    this.#index += 1;
    if (type === 'session') return this.#header(record, place);
    const handler = Object.hasOwn(this.#entries, type) ? this.#entries[type] : undefined;
    if (handler === undefined && !BOOKKEEPING.has(type)) {
      this.#onLoss({ reason: 'unknown-record', place, detail: `an entry of the kind ${JSON.stringify(excerpt(type))}: left out` });
    }
    const begun = this.#session === undefined ? this.#begin(undefined, place) : [];
    const session = this.#session ?? this.#fallbackId;
    const position = this.#tree.place(record, place, this.#index, { session, startedAt: this.#startedAt, fork: this.#fork });
    if (position === undefined) return begun;
    const { common, rewound } = position;
    const back: readonly RecordedEntry[] = rewound === undefined ? [] : [{ kind: 'event', ...common, name: 'rewind', text: rewound }];
    return [...begun, ...back, ...(handler?.(record, common) ?? [])];
  }

  /** The end of the file. */
  finish(): void {
    this.#opaque.finish(this.#onLoss);
  }

  #header(record: JsonObject, place: string): readonly RecordedEntry[] {
    if (this.#session === undefined) return this.#begin(record, place);
    this.#onLoss({ reason: 'duplicate-id', place, detail: 'a second header: the session goes on' });
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

  #text(content: unknown, place: string): string {
    return partsText(content, place, this.#onLoss, (part) => {
      const type = textAt(part, 'type');
      if (type === 'image') this.#opaque.note(type, place);
      return type === 'thinking' || type === 'toolCall' ? '' : undefined;
    });
  }

  #message(record: JsonObject, common: PiCommon): readonly RecordedEntry[] {
    const message = objectAt(record, 'message');
    const role = textAt(message, 'role') ?? '';
    const handler = Object.hasOwn(this.#roles, role) ? this.#roles[role] : undefined;
    if (message !== undefined && handler !== undefined) return handler(message, common);
    this.#onLoss({
      reason: 'unknown-record',
      place: common.place,
      detail: `a message of the role ${JSON.stringify(excerpt(role))}: left out`,
    });
    return [];
  }

  #handed(message: JsonObject, common: PiCommon): readonly RecordedEntry[] {
    const text = textAt(message, 'summary') ?? this.#text(message.content, common.place);
    return [{ kind: 'message', ...common, role: 'user', origin: 'harness', name: textAt(message, 'role'), text }];
  }

  #assistant(message: JsonObject, common: PiCommon): readonly RecordedEntry[] {
    const blocks = objectsAt(message, 'content');
    const thoughts: string[] = [];
    const calls: RecordedEntry[] = [];
    for (const [index, block] of blocks.entries()) {
      if (textAt(block, 'type') === 'thinking') {
        const thinking = textAt(block, 'thinking') ?? '';
        if (thinking === '') this.#opaque.note('encrypted thoughts', common.place);
        else thoughts.push(thinking);
      } else if (textAt(block, 'type') === 'toolCall') calls.push(this.#call(block, common, index));
    }
    const reason = textAt(message, 'stopReason');
    const stopped = reason === 'aborted' || reason === 'error';
    return [
      {
        kind: 'message',
        ...common,
        role: 'assistant',
        origin: 'model',
        text: this.#text(message.content, common.place),
        thinking: thoughts.length === 0 ? undefined : thoughts.join('\n'),
        usage: piUsage(message),
      },
      ...calls,
      ...(stopped ? [{ kind: 'event' as const, ...common, name: reason, text: textAt(message, 'errorMessage') }] : []),
    ];
  }

  #call(block: JsonObject, common: PiCommon, index: number): RecordedEntry {
    const id = idAt(block, 'id') ?? `call-at-${common.native_id ?? this.#index}-${index}`;
    const tool = textAt(block, 'name') ?? '';
    const args = callArguments(block.arguments, common.place, this.#onLoss);
    this.#calls.set(id, { tool, args });
    return { kind: 'call', ...common, call_id: id, tool, args: { ...args } };
  }

  #result(message: JsonObject, common: PiCommon): readonly RecordedEntry[] {
    const id = idAt(message, 'toolCallId');
    if (id === undefined) {
      this.#onLoss({ reason: 'orphan-result', place: common.place, detail: 'a result that names no call: left out' });
      return [];
    }
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    const text = this.#text(message.content, common.place);
    const file = call?.tool === 'read' ? readEvidence(call.args, message, text) : undefined;
    const truncated = objectAt(objectAt(message, 'details'), 'truncation')?.truncated === true;
    return [
      {
        kind: 'result',
        ...common,
        call_id: id,
        text,
        is_error: message.isError === true,
        ...(truncated ? { truncated } : {}),
        ...(file === undefined ? {} : { files: [file] }),
      },
    ];
  }

  #compaction(record: JsonObject, common: PiCommon): RecordedEntry {
    const index = numberAt(record, 'firstKeptEntryIndex');
    return {
      kind: 'compaction',
      ...common,
      summary: textAt(record, 'summary'),
      tokens_before: numberAt(record, 'tokensBefore'),
      kept_from: idAt(record, 'firstKeptEntryId') ?? (index === undefined ? undefined : entryId(index)),
    };
  }
}

/** The id of a session whose file is named: `<moment>_<id>.jsonl`. */
function sessionOfFile(path: string): string {
  return /([^/\\_]+)\.jsonl$/.exec(path)?.[1] ?? path;
}

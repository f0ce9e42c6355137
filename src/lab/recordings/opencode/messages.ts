import type { JsonObject } from '../../../values/json-object.js';
import { callArguments, partsText } from '../entries/chat-message.js';
import {
  type EntryCommon,
  entryCommon,
  idAt,
  momentOf,
  numberAt,
  objectAt,
  objectsAt,
  textAt,
} from '../entries/fields.js';
import { fileEvidence, fileText } from '../entries/shown-file.js';
import { excerpt, type OnLoss, OpaqueContent, unknownRole } from '../importer.js';
import type { EntryOf, RecordedEntry, ShownFile } from '../neutral-session.js';

/** Kinds of parts that are skipped: bookkeeping, and repetitions of other parts. */
const BOOKKEEPING: ReadonlySet<string> = new Set(['step-start', 'step-finish', 'snapshot', 'patch', 'retry']);

/** Returns the lines of a file that a `read` showed. */
function shownBy(state: JsonObject | undefined): readonly ShownFile[] {
  const shown = objectAt(objectAt(state, 'metadata'), 'display');
  const [path, text] = [textAt(shown, 'path'), textAt(shown, 'text')];
  if (path === undefined || path === '' || text === undefined || textAt(shown, 'type') !== 'file') return [];
  const start = numberAt(shown, 'lineStart') ?? 1;
  const [last, total] = [numberAt(shown, 'lineEnd'), numberAt(shown, 'totalLines')];
  const isWhole = start === 1 && total !== undefined && last === total && shown?.truncated !== true;
  // The recorded text lacks the line end of the last line.
  return start < 1 ? [] : [fileText(path, isWhole ? `${text}\n` : text, { start, whole: isWhole, total })];
}

function usageOf(info: JsonObject): EntryOf<'message'>['usage'] {
  const tokens = objectAt(info, 'tokens');
  const cache = objectAt(tokens, 'cache');
  const [input, output, reasoning] = ['input', 'output', 'reasoning'].map((name) => numberAt(tokens, name));
  if (input === undefined && output === undefined) return undefined;
  const cost = numberAt(info, 'cost');
  return {
    input,
    // Reasoning is counted separately from `output` and billed as output.
    output: (output ?? 0) + (reasoning ?? 0),
    cache_read: numberAt(cache, 'read'),
    cache_write: numberAt(cache, 'write'),
    // OpenCode writes 0 if it does not know the price.
    cost: cost === undefined || cost <= 0 ? undefined : cost,
  };
}

/** Converts the messages of an OpenCode session to entries. */
export class OpencodeMessages {
  readonly #session: string;
  readonly #onLoss: OnLoss;
  readonly #opaque = new OpaqueContent();
  #model: string | undefined;

  constructor({ native_id, model }: EntryOf<'session'>, onLoss: OnLoss) {
    this.#session = native_id;
    this.#model = model;
    this.#onLoss = onLoss;
  }

  *entries(message: JsonObject, place: string): Iterable<RecordedEntry> {
    const info = objectAt(message, 'info') ?? {};
    const parts = objectsAt(message, 'parts');
    const at = momentOf(objectAt(info, 'time')?.created);
    const common = entryCommon({ session: this.#session, place }, info, at);
    if (info.role === 'user') yield* this.#user(parts, common);
    else if (info.role === 'assistant') yield* this.#assistant(info, parts, common);
    else {
      this.#onLoss(unknownRole(info.role, place));
      yield { kind: 'message', ...common, role: 'user', origin: 'harness', text: this.#text(parts, place) };
    }
  }

  /** Reports content that only the provider can read. */
  finish(): void {
    this.#opaque.finish(this.#onLoss);
  }

  *#user(parts: readonly JsonObject[], common: EntryCommon): Iterable<RecordedEntry> {
    // The message that requests a summary has no text. The summary is in the answer.
    if (parts.some((part) => part.type === 'compaction')) return;
    const isPerson = parts.some((part) => part.type === 'text' && part.synthetic !== true);
    const text = this.#text(parts, common.place);
    yield { kind: 'message', ...common, role: 'user', origin: isPerson ? 'person' : 'harness', text };
  }

  *#assistant(info: JsonObject, parts: readonly JsonObject[], common: EntryCommon): Iterable<RecordedEntry> {
    const text = this.#text(parts, common.place);
    const usage = usageOf(info);
    if (info.summary === true) {
      yield { kind: 'compaction', ...common, summary: text };
      if (usage !== undefined) yield { kind: 'event', ...common, name: 'summarised', usage };
      return;
    }
    const model = textAt(info, 'modelID');
    if (model !== undefined && model !== this.#model)
      yield { kind: 'event', session: common.session, place: common.place, name: 'model-change', text: model };
    this.#model = model ?? this.#model;
    const thoughts = parts.flatMap((part) => (part.type === 'reasoning' ? [textAt(part, 'text') ?? ''] : []));
    const thinking = thoughts.filter((one) => one !== '').join('\n');
    if (thoughts.includes('')) this.#opaque.note('encrypted thoughts', common.place);
    yield {
      kind: 'message',
      ...common,
      role: 'assistant',
      origin: 'model',
      text,
      thinking: thinking === '' ? undefined : thinking,
      usage,
    };
    const tools = parts.filter((part) => part.type === 'tool');
    for (const [index, part] of tools.entries()) yield this.#call(part, common, index);
    for (const [index, part] of tools.entries()) yield* this.#result(part, common, index);
    const error = objectAt(info, 'error');
    if (error !== undefined) {
      const reason = textAt(objectAt(error, 'data'), 'message') ?? textAt(error, 'name');
      yield { kind: 'event', ...common, name: 'error', text: reason };
    }
  }

  #call(part: JsonObject, common: EntryCommon, index: number): RecordedEntry {
    const state = objectAt(part, 'state');
    const args = callArguments(state?.input, common.place, this.#onLoss);
    const at = momentOf(objectAt(state, 'time')?.start) ?? common.at;
    return { kind: 'call', ...common, at, call_id: idOf(part, common, index), tool: textAt(part, 'tool') ?? '', args };
  }

  *#result(part: JsonObject, common: EntryCommon, index: number): Iterable<RecordedEntry> {
    const state = objectAt(part, 'state');
    const status = textAt(state, 'status');
    if (status !== 'completed' && status !== 'error') return;
    const truncated = objectAt(state, 'metadata')?.truncated === true;
    yield {
      kind: 'result',
      ...common,
      at: momentOf(objectAt(state, 'time')?.end) ?? common.at,
      call_id: idOf(part, common, index),
      text: textAt(state, status === 'error' ? 'error' : 'output') ?? '',
      is_error: status === 'error',
      ...(truncated ? { truncated } : {}),
      ...fileEvidence(shownBy(state)),
    };
  }

  #text(parts: readonly JsonObject[], place: string): string {
    const spoken = parts.filter((part) => part.ignored !== true && !BOOKKEEPING.has(textAt(part, 'type') ?? ''));
    const other = (part: JsonObject): string | undefined => {
      const type = textAt(part, 'type') ?? '';
      if (type === 'tool' || type === 'reasoning' || type === 'compaction') return '';
      if (type === 'file') return `[file ${textAt(part, 'mime') ?? ''} ${excerpt(textAt(part, 'filename') ?? '')}]`;
      if (type === 'agent' || type === 'subtask') return `@${textAt(part, 'name') ?? textAt(part, 'agent') ?? ''}`;
      return undefined;
    };
    return partsText(spoken, { place, onLoss: this.#onLoss, other });
  }
}

const idOf = (part: JsonObject, { place, native_id }: EntryCommon, index: number): string =>
  idAt(part, 'callID') ?? `call-at-${native_id ?? place}-${index}`;

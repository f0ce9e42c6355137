import { createHash } from 'node:crypto';
import { isJsonObject, type JsonObject } from '../../../values/json-object.js';
import { callArguments, partsText } from '../entries/chat-message.js';
import {
  type EntryCommon,
  entryCommon,
  idAt,
  listAt,
  momentOf,
  numberAt,
  objectAt,
  objectsAt,
  textAt,
  usageAt,
} from '../entries/fields.js';
import { notAnObject, type OnLoss } from '../importer.js';
import type { EntryOf, RecordedEntry } from '../neutral-session.js';
import { geminiEvidence, referencedFiles } from './evidence.js';

/** Skips parts that become other entries or fields: calls, results and thoughts. */
const other = (part: JsonObject): string | undefined =>
  'functionCall' in part || 'functionResponse' in part || part.thought === true ? '' : undefined;
const HARNESS_TEXT = /^\s*<(?:session_context|hook_context|state_snapshot|environment_context)>/;
const CUT = new RegExp(
  '^IMPORTANT: The file content has been truncated|' +
    '\\.\\.\\. \\[CONTENT TRUNCATED\\] \\.\\.\\.|\\[WARNING: This file was truncated',
);

/**
 * Converts messages of Gemini CLI to entries. If a message is rewritten, only its new content is
 * added.
 */
export class GeminiRecords {
  /** Ids of the messages that are in the model's context. */
  readonly #live = new Set<string>();
  /** Ids of all messages so far. */
  readonly #seen = new Set<string>();
  /** Digests of the texts so far. */
  readonly #texts = new Set<string>();
  /** Calls by id. `call` is undefined once the result has been read. */
  readonly #calls = new Map<string, { readonly tool: string; readonly call: JsonObject | undefined }>();
  readonly #session: string;
  readonly #onLoss: OnLoss;
  #model: string | undefined;

  constructor(session: string, onLoss: OnLoss) {
    this.#session = session;
    this.#onLoss = onLoss;
  }

  entries(message: JsonObject, place: string): readonly RecordedEntry[] {
    const id = idAt(message, 'id');
    const common = entryCommon({ session: this.#session, place }, message, momentOf(message.timestamp));
    const known = id !== undefined && this.#seen.has(id);
    if (id !== undefined) {
      this.#live.add(id);
      this.#seen.add(id);
    }
    const type = textAt(message, 'type');
    if (type === 'user') return this.#user(message, common, known);
    if (type === 'gemini' || type === 'model') return this.#gemini(message, common, known);
    if (type === 'info' || type === 'warning' || type === 'error') {
      return known
        ? []
        : [{ ...common, kind: 'event', name: type, text: partsText(message.content, { place, onLoss: this.#onLoss }) }];
    }
    this.#onLoss({
      reason: 'unknown-record',
      place,
      detail: `a message of the type ${JSON.stringify(message.type)}: left out`,
    });
    return [];
  }

  /**
   * Replaces the messages of the model's context. If messages are dropped, that is a compaction.
   * New messages become entries.
   */
  replaced(messages: readonly JsonObject[], place: string): readonly RecordedEntry[] {
    const ids = new Set(messages.flatMap((message) => idAt(message, 'id') ?? []));
    const dropped = [...this.#live].filter((id) => !ids.has(id));
    for (const id of dropped) this.#live.delete(id);
    const compacted = dropped.length > 0;
    const summary = messages
      .map((message) => partsText(message.content, { place, onLoss: () => undefined, other }))
      .find((text) => /<state_snapshot>/.test(text));
    const entries: RecordedEntry[] = [];
    if (compacted)
      entries.push({ kind: 'compaction', session: this.#session, place, trigger: 'replaced', dropped, summary });
    for (const [index, message] of messages.entries()) {
      const id = idAt(message, 'id');
      if (id === undefined || this.#seen.has(id)) continue;
      const text = partsText(message.content, { place, onLoss: () => undefined, other });
      // After a compaction, the kept messages have new ids.
      const copy = compacted && (this.#texts.has(digest(textAt(message, 'type'), text)) || text === summary);
      if (copy) {
        this.#seen.add(id);
        this.#live.add(id);
      } else entries.push(...this.entries(message, `${place}.messages[${index}]`));
    }
    return entries;
  }

  /** Undoes a message and all messages after it. */
  rewound(id: string, place: string): readonly RecordedEntry[] {
    const ids = [...this.#live];
    const from = ids.indexOf(id);
    for (const gone of from < 0 ? ids : ids.slice(from)) this.#live.delete(gone);
    const parent_id = from < 0 ? undefined : ids[from - 1];
    return [{ kind: 'event', session: this.#session, place, name: 'rewind', text: id, undone_from: id, parent_id }];
  }

  #user(message: JsonObject, common: EntryCommon, known: boolean): readonly RecordedEntry[] {
    const parts = objectsAt(message, 'content').map((part) => objectAt(part, 'functionResponse'));
    const answers = parts.filter((answer) => answer !== undefined);
    const results = answers.flatMap((answer) => {
      const id = idAt(answer, 'id') ?? this.#openOf(textAt(answer, 'name')) ?? common.place;
      return [...this.#result(id, { parts: [{ functionResponse: answer }] }, common)];
    });
    const text = partsText(message.content, {
      place: common.place,
      onLoss: known ? () => undefined : this.#onLoss,
      other,
    });
    if (known || (text === '' && answers.length > 0)) return results;
    this.#texts.add(digest('user', text));
    const files = referencedFiles(text);
    const said: RecordedEntry = {
      ...common,
      kind: 'message',
      role: 'user',
      origin: HARNESS_TEXT.test(text) ? 'harness' : 'person',
      text,
    };
    const attached: RecordedEntry[] =
      files.length === 0 ? [] : [{ ...common, kind: 'event', name: 'file-attached', files: [...files] }];
    return [...results, said, ...attached];
  }

  #gemini(message: JsonObject, common: EntryCommon, known: boolean): readonly RecordedEntry[] {
    const entries: RecordedEntry[] = known ? [] : [...this.#said(message, common)];
    const calls: { readonly call: JsonObject; readonly common: EntryCommon }[] = [];
    const listed = listAt(message, 'toolCalls');
    for (const [index, call] of listed.entries()) {
      const place = `${common.place}.toolCalls[${index}]`;
      if (isJsonObject(call)) calls.push({ call, common: { ...common, place } });
      else this.#onLoss(notAnObject(call, 'a call', place));
    }
    for (const [index, part] of objectsAt(message, 'content').entries()) {
      const call = objectAt(part, 'functionCall');
      const place = `${common.place}.content[${index}]`;
      if (call !== undefined && !listed.some((one) => isJsonObject(one) && one.id === call.id))
        calls.push({ call, common: { ...common, place } });
    }
    for (const { call, common: own } of calls) entries.push(...this.#begun(call, own));
    // Calls of one message run in parallel. Their results are ordered by their end times.
    const results = calls.flatMap(({ call, common: own }) => [...this.#ended(call, own)]);
    return [...entries, ...results.sort((a, b) => (a.at ?? 0) - (b.at ?? 0))];
  }

  *#said(message: JsonObject, common: EntryCommon): Iterable<RecordedEntry> {
    const model = textAt(message, 'model');
    if (model !== undefined && this.#model !== undefined && model !== this.#model)
      yield { ...common, kind: 'event', name: 'model-change', text: model };
    this.#model = model ?? this.#model;
    const text = partsText(message.content, { place: common.place, onLoss: this.#onLoss, other });
    this.#texts.add(digest('gemini', text));
    const thoughts = objectsAt(message, 'thoughts').map((thought) =>
      [textAt(thought, 'subject'), textAt(thought, 'description')].filter(Boolean).join('\n'),
    );
    const inText = objectsAt(message, 'content').flatMap((part) =>
      part.thought === true ? (textAt(part, 'text') ?? []) : [],
    );
    const thinking = [...thoughts, ...inText].filter((thought) => thought !== '').join('\n\n');
    const usage = usageOf(objectAt(message, 'tokens'));
    const more = { thinking: thinking === '' ? undefined : thinking, usage };
    yield { ...common, kind: 'message', role: 'assistant', origin: 'model', text, ...more };
  }

  *#begun(call: JsonObject, common: EntryCommon): Iterable<RecordedEntry> {
    const { place } = common;
    const id = idAt(call, 'id') ?? place;
    if (this.#calls.has(id)) return;
    const tool = textAt(call, 'name') ?? 'unknown';
    this.#calls.set(id, { tool, call });
    yield { ...common, kind: 'call', call_id: id, tool, args: callArguments(call.args, place, this.#onLoss) };
  }

  *#ended(call: JsonObject, common: EntryCommon): Iterable<EntryOf<'result'>> {
    const result = call.result ?? call.response;
    if (result === undefined || result === null) return;
    const at = { at: momentOf(call.timestamp) ?? common.at };
    const parts: readonly unknown[] = Array.isArray(result) ? result : [result];
    yield* this.#result(idAt(call, 'id') ?? common.place, { parts, given: call }, { ...common, ...at });
  }

  *#result(
    id: string,
    { parts, given }: { readonly parts: readonly unknown[]; readonly given?: JsonObject },
    common: EntryCommon,
  ): Iterable<EntryOf<'result'>> {
    const known = this.#calls.get(id);
    if (known !== undefined && known.call === undefined) return;
    if (known !== undefined) this.#calls.set(id, { tool: known.tool, call: undefined });
    const call = given ?? known?.call ?? {};
    const outputs = parts.map((part) => answerOf(part, common.place, this.#onLoss));
    const text = outputs
      .map((output) => output.text)
      .filter((output) => output !== '')
      .join('\n');
    const status = textAt(call, 'status');
    const exit = Number(/(?:^|\n)Exit Code: (-?\d+)/.exec(text)?.[1] ?? 0);
    const is_error =
      status === 'error' || status === 'cancelled' || outputs.some((output) => output.failed) || exit > 0;
    const evidence = is_error ? {} : geminiEvidence(known?.tool ?? '', call, text);
    const cut = CUT.test(text);
    yield { ...common, kind: 'result', call_id: id, text, is_error, ...(cut ? { truncated: true } : {}), ...evidence };
  }

  /**
   * Returns the call of a result that has no id: the oldest call of the same tool without a result.
   */
  #openOf(tool: string | undefined): string | undefined {
    for (const [id, known] of this.#calls) if (known.call !== undefined && known.tool === tool) return id;
    return undefined;
  }
}

function answerOf(part: unknown, place: string, onLoss: OnLoss): { readonly text: string; readonly failed: boolean } {
  const answer = isJsonObject(part) ? objectAt(part, 'functionResponse') : undefined;
  if (answer === undefined) return { text: partsText([part], { place, onLoss }), failed: false };
  const response = objectAt(answer, 'response');
  const error = response?.error;
  const given = response?.output ?? error ?? response?.result ?? response ?? answer.response;
  const text = typeof given === 'string' ? given : given === undefined ? '' : JSON.stringify(given);
  return { text, failed: error !== undefined && error !== null && response?.output === undefined };
}

function usageOf(tokens: JsonObject | undefined): EntryOf<'message'>['usage'] {
  const total = numberAt(tokens, 'total');
  if (tokens === undefined || total === 0) return undefined;
  return usageAt(tokens, { input: 'input', output: 'output', cache_read: 'cached', total: 'total' }) ?? {};
}

const digest = (role: string | undefined, text: string): string =>
  createHash('sha256').update(`${role}\0${text}`).digest('base64').slice(0, 16);

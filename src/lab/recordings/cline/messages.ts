import { isJsonObject, type JsonObject } from '../../../values/json-object.js';
import { ownMember } from '../../../values/own-member.js';
import { callArguments, partsText, saysSomething } from '../entries/chat-message.js';
import {
  type EntryCommon,
  entryCommon,
  idAt,
  momentOf,
  numberAt,
  objectAt,
  objectsAt,
  textAt,
  usageAt,
} from '../entries/fields.js';
import { fileEvidence, numberedText, printedFile, shownLines, wholeFile } from '../entries/shown-file.js';
import { type OnLoss, OpaqueContent, unknownRole } from '../importer.js';
import { parseJson } from '../json/json-text.js';
import type { EntryOf, RecordedEntry, ShownFile } from '../neutral-session.js';

/** One answer in a result. A call in Cline may ask several queries. */
interface Answer {
  readonly query: string;
  readonly result: string;
  readonly success: boolean;
}

function answersOf(content: unknown): readonly Answer[] {
  const list: readonly unknown[] = Array.isArray(content) ? content : [content];
  return list.filter(isJsonObject).flatMap((item) => {
    const query = textAt(item, 'query');
    const result = textAt(item, 'result') ?? textAt(item, 'error') ?? '';
    return query === undefined ? [] : [{ query, result, success: item.success !== false }];
  });
}

/** Returns the file that an answer to the query `PATH` or `PATH:A-B` shows. */
function readFile({ query, result }: Answer, asked: readonly JsonObject[]): ShownFile | undefined {
  const range = /^(.+):(\d+)-(\d+|end|EOF)?$/.exec(query);
  const path = range?.[1] ?? query;
  const file = asked.find((one) => textAt(one, 'path') === path);
  const shown = numberedText(result, 'spacedBar');
  if (shown === undefined)
    return range === null && result === '' ? { path, moment: 'after', whole: true, text: '' } : undefined;
  const all =
    range === null &&
    (file === undefined || (file.start_line === undefined && file.end_line === undefined)) &&
    !/truncated/i.test(result.slice(-200));
  return shownLines(path, shown, { total: all ? shown.lines.length : undefined });
}

/** Returns the files that the answers to a call show. */
function clineEvidence(tool: string, args: JsonObject, content: unknown): readonly ShownFile[] {
  const answers = answersOf(content).filter(({ success }) => success);
  if (tool === 'read_files') return answers.flatMap((answer) => readFile(answer, objectsAt(args, 'files')) ?? []);
  if (tool === 'run_commands')
    return answers.flatMap(
      ({ query, result }) => printedFile(query, result.endsWith('\n') ? result : `${result}\n`) ?? [],
    );
  return [];
}

/** Returns whether a result has answers and all of them failed. */
function allFailed(content: unknown): boolean {
  const answers = answersOf(content);
  return answers.length > 0 && answers.every(({ success }) => !success);
}

/** The content of a message, sorted by kind. */
interface Blocks {
  readonly texts: unknown[];
  readonly thoughts: string[];
  readonly entries: RecordedEntry[];
}

/** Returns the model that a message names. */
export function modelOf(message: JsonObject): string | undefined {
  const about = objectAt(message, 'modelInfo');
  return textAt(about, 'id') ?? textAt(about, 'modelId');
}

/** Matches a call that the model writes as tags in its text. Its result is in the next prompt. */
const TAGGED_CALL = /^<(\w+_\w+)>\s*<(\w+)>[\s\S]*<\/\2>\s*<\/\1>/m;

/** Converts the messages of a Cline session to entries. */
export class ClineMessages {
  readonly #session: string;
  readonly #onLoss: OnLoss;
  readonly #calls = new Map<string, { readonly tool: string; readonly args: JsonObject }>();
  readonly #opaque = new OpaqueContent();
  #model: string | undefined;

  constructor(session: string, onLoss: OnLoss) {
    this.#session = session;
    this.#onLoss = onLoss;
  }

  entries(message: JsonObject, place: string): readonly RecordedEntry[] {
    if (!saysSomething(message, { place, onLoss: this.#onLoss })) return [];
    const common = entryCommon({ session: this.#session, place }, message, momentOf(message.ts));
    const role = textAt(message, 'role');
    const metadata = objectAt(message, 'metadata');
    const kind = textAt(metadata, 'kind');
    const blocks = this.#blocks(message, common);
    const text = partsText(blocks.texts, { place, onLoss: this.#onLoss });
    const before = this.#modelChange(message, common);
    if (kind === 'compaction_summary') {
      const tokens_before =
        numberAt(objectAt(metadata, 'details'), 'tokensBefore') ?? numberAt(metadata, 'tokensBefore');
      return [...before, { ...common, kind: 'compaction', summary: text, tokens_before }, ...blocks.entries];
    }
    if (kind === 'compaction')
      before.push({ ...common, kind: 'compaction', trigger: textAt(metadata, 'reason') ?? 'unknown' });
    const said =
      role === 'assistant'
        ? this.#answer(message, { text, thoughts: blocks.thoughts }, common)
        : this.#prompt(role, text, common);
    const silent = role !== 'assistant' && text === '' && blocks.entries.length > 0;
    return silent
      ? [...before, ...blocks.entries]
      : [...before, ...blocks.entries.filter(isResult), said, ...blocks.entries.filter((entry) => !isResult(entry))];
  }

  /** Reports content that only the provider can read. */
  finish(): void {
    this.#opaque.finish(this.#onLoss);
  }

  #modelChange(message: JsonObject, common: EntryCommon): RecordedEntry[] {
    const model = modelOf(message);
    const changed = model !== undefined && this.#model !== undefined && model !== this.#model;
    this.#model = model ?? this.#model;
    return changed ? [{ ...common, kind: 'event', name: 'model-change', text: model }] : [];
  }

  #prompt(role: string | undefined, text: string, common: EntryCommon): EntryOf<'message'> {
    if (role !== 'user' && role !== 'system') {
      this.#onLoss(unknownRole(role, common.place));
    }
    const system = role === 'system';
    const person = role === 'user' && !/^\s*<(?:SYSTEM_NOTICE|environment_details)>/i.test(text);
    return {
      ...common,
      kind: 'message',
      role: system ? 'system' : 'user',
      origin: person ? 'person' : 'harness',
      text,
    };
  }

  #answer(
    message: JsonObject,
    { text, thoughts }: { readonly text: string; readonly thoughts: readonly string[] },
    common: EntryCommon,
  ): EntryOf<'message'> {
    const names = {
      input: 'inputTokens',
      output: 'outputTokens',
      cache_read: 'cacheReadTokens',
      cache_write: 'cacheWriteTokens',
    };
    const metrics = objectAt(message, 'metrics');
    const usage =
      usageAt(metrics, names) ??
      usageAt(objectAt(metrics, 'tokens'), { input: 'prompt', output: 'completion', cache_read: 'cached' });
    if (TAGGED_CALL.test(text)) this.#opaque.note('calls written as tags in a text', common.place);
    const thinking = thoughts.length === 0 ? undefined : thoughts.join('\n\n');
    return { ...common, kind: 'message', role: 'assistant', origin: 'model', text, usage, thinking };
  }

  #blocks(message: JsonObject, common: EntryCommon): Blocks {
    const blocks: Blocks = { texts: [], thoughts: [], entries: [] };
    const { content } = message;
    const list: readonly unknown[] = Array.isArray(content)
      ? content
      : content === undefined || content === null
        ? []
        : [content];
    for (const [index, block] of list.entries()) {
      const here = { ...common, place: Array.isArray(content) ? `${common.place}.content[${index}]` : common.place };
      const type = isJsonObject(block) ? textAt(block, 'type') : undefined;
      const read = type === undefined ? undefined : ownMember(this.#readers, type);
      if (!isJsonObject(block) || read === undefined) blocks.texts.push(block);
      else read(block, here, blocks);
    }
    return blocks;
  }

  readonly #readers: Readonly<Record<string, (block: JsonObject, common: EntryCommon, into: Blocks) => void>> = {
    thinking: (block, _common, { thoughts }) =>
      void thoughts.push(textAt(block, 'thinking') ?? textAt(block, 'text') ?? ''),
    redacted_thinking: (_block, { place }) => this.#opaque.note('encrypted thoughts', place),
    file: (block, common, { texts, entries }) => {
      const path = textAt(block, 'path');
      const text = textAt(block, 'content');
      if (path === undefined || path === '') {
        texts.push(block);
        return;
      }
      const files = [
        text === undefined ? { path, moment: 'before' as const, whole: false } : wholeFile(path, text, 'before'),
      ];
      entries.push({ ...common, kind: 'event', name: 'file-attached', text: path, files });
    },
    tool_use: (block, common, { entries }) => {
      const { place } = common;
      const call_id = idAt(block, 'id') ?? place;
      const tool = textAt(block, 'name') ?? 'unknown';
      const args = callArguments(block.input, place, this.#onLoss);
      this.#calls.set(call_id, { tool, args });
      entries.push({ ...common, kind: 'call', call_id, tool, args });
    },
    tool_result: (block, common, { entries }) => {
      const call_id = idAt(block, 'tool_use_id') ?? common.place;
      const call = this.#calls.get(call_id);
      this.#calls.delete(call_id);
      const { content } = block;
      const parsed = typeof content === 'string' && /^\s*[[{]/.test(content) ? parseJson(content) : content;
      const is_error = block.is_error === true || allFailed(parsed);
      const files = clineEvidence(call?.tool ?? textAt(block, 'name') ?? '', call?.args ?? {}, parsed);
      const text = resultText(content, common.place, this.#onLoss);
      entries.push({ ...common, kind: 'result', call_id, text, is_error, ...fileEvidence(files) });
    },
  };
}

const isResult = ({ kind }: RecordedEntry): boolean => kind === 'result';

/**
 * Returns the text of a result as the model sees it: several answers as JSON, message parts as
 * text.
 */
function resultText(content: unknown, place: string, onLoss: OnLoss): string {
  const answers = Array.isArray(content) && content.some((item) => isJsonObject(item) && 'query' in item);
  return answers || (isJsonObject(content) && 'query' in content)
    ? JSON.stringify(content)
    : partsText(content, { place, onLoss });
}

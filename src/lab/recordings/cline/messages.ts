import { defined } from '../../../values/defined.js';
import { callArguments } from '../entries/call-arguments.js';
import { idAt, momentOf, numberAt, objectAt, textAt } from '../entries/fields.js';
import { partsText } from '../entries/message-parts.js';
import { createOpaqueContent } from '../entries/opaque-content.js';
import { wholeFile } from '../evidence/shown-file.js';
import type { OnLoss } from '../importer.js';
import { isJsonObject, type JsonObject, parseJson } from '../json/json-text.js';
import type { EntryOf, RecordedEntry } from '../neutral-session.js';
import { allFailed, clineEvidence } from './evidence.js';

type Common = { session: string; place: string; at?: number; native_id?: string };

/** What of a message is no text of its own. */
interface Blocks {
  readonly texts: unknown[];
  readonly thoughts: string[];
  readonly entries: RecordedEntry[];
}

/** Turns the messages of a Cline session, one by one, into entries. */
export class ClineMessages {
  private readonly calls = new Map<string, { readonly tool: string; readonly args: JsonObject }>();
  private readonly opaque = createOpaqueContent();
  private model: string | undefined;

  constructor(
    private readonly session: string,
    private readonly onLoss: OnLoss,
  ) {}

  entries(message: JsonObject, place: string): readonly RecordedEntry[] {
    const common: Common = { session: this.session, place, ...defined({ at: momentOf(message.ts), native_id: idAt(message, 'id') }) };
    const role = textAt(message, 'role');
    const metadata = objectAt(message, 'metadata');
    const kind = textAt(metadata, 'kind');
    const blocks = this.blocks(message, common);
    const text = partsText(blocks.texts, place, this.onLoss);
    const before = this.modelChange(message, common);
    if (kind === 'compaction_summary') {
      const tokens_before = numberAt(objectAt(metadata, 'details'), 'tokensBefore') ?? numberAt(metadata, 'tokensBefore');
      return [...before, { ...common, kind: 'compaction', summary: text, ...defined({ tokens_before }) }, ...blocks.entries];
    }
    if (kind === 'compaction') before.push({ ...common, kind: 'compaction', trigger: textAt(metadata, 'reason') ?? 'unknown' });
    const said = role === 'assistant' ? this.answer(message, text, blocks.thoughts, common) : this.prompt(role, text, common);
    const silent = role !== 'assistant' && text === '' && blocks.entries.length > 0;
    return silent
      ? [...before, ...blocks.entries]
      : [...before, ...blocks.entries.filter(isResult), said, ...blocks.entries.filter((entry) => !isResult(entry))];
  }

  /** Tells what could be read by nobody. */
  finish(): void {
    this.opaque.finish(this.onLoss);
  }

  private modelChange(message: JsonObject, common: Common): RecordedEntry[] {
    const model = textAt(objectAt(message, 'modelInfo'), 'id');
    const changed = model !== undefined && this.model !== undefined && model !== this.model;
    this.model = model ?? this.model;
    return changed ? [{ ...common, kind: 'event', name: 'model-change', text: model }] : [];
  }

  private prompt(role: string | undefined, text: string, common: Common): EntryOf<'message'> {
    if (role !== 'user' && role !== 'system') {
      this.onLoss({
        reason: 'unknown-record',
        place: common.place,
        detail: `a message with the role ${JSON.stringify(role)}: kept as what the program said`,
      });
    }
    const system = role === 'system';
    const person = role === 'user' && !/^\s*<(?:SYSTEM_NOTICE|environment_details)>/i.test(text);
    return { ...common, kind: 'message', role: system ? 'system' : 'user', origin: person ? 'person' : 'harness', text };
  }

  private answer(message: JsonObject, text: string, thoughts: readonly string[], common: Common): EntryOf<'message'> {
    const metrics = objectAt(message, 'metrics');
    const counts = defined({
      input: numberAt(metrics, 'inputTokens'),
      output: numberAt(metrics, 'outputTokens'),
      cache_read: numberAt(metrics, 'cacheReadTokens'),
      cache_write: numberAt(metrics, 'cacheWriteTokens'),
    });
    const usage = Object.keys(counts).length === 0 ? undefined : counts;
    const thinking = thoughts.length === 0 ? undefined : thoughts.join('\n\n');
    return { ...common, kind: 'message', role: 'assistant', origin: 'model', text, ...defined({ usage, thinking }) };
  }

  private blocks(message: JsonObject, common: Common): Blocks {
    const blocks: Blocks = { texts: [], thoughts: [], entries: [] };
    const { content } = message;
    const list: readonly unknown[] = Array.isArray(content) ? content : content === undefined || content === null ? [] : [content];
    for (const [index, block] of list.entries()) {
      const here = { ...common, place: Array.isArray(content) ? `${common.place}.content[${index}]` : common.place };
      const type = isJsonObject(block) ? textAt(block, 'type') : undefined;
      if (!isJsonObject(block) || type === undefined || !Object.hasOwn(this.readers, type)) blocks.texts.push(block);
      else this.readers[type]?.(block, here, blocks);
    }
    return blocks;
  }

  private readonly readers: Readonly<Record<string, (block: JsonObject, common: Common, into: Blocks) => void>> = {
    thinking: (block, _common, { thoughts }) => void thoughts.push(textAt(block, 'thinking') ?? textAt(block, 'text') ?? ''),
    redacted_thinking: (_block, { place }) => this.opaque.note('encrypted thoughts', place),
    file: (block, common, { texts, entries }) => {
      const path = textAt(block, 'path');
      const text = textAt(block, 'content');
      if (path === undefined || path === '') {
        texts.push(block);
        return;
      }
      const files = [text === undefined ? { path, moment: 'before' as const, whole: false } : wholeFile(path, text, 'before')];
      entries.push({ ...common, kind: 'event', name: 'file-attached', text: path, files });
    },
    tool_use: (block, common, { entries }) => {
      const { place } = common;
      const call_id = idAt(block, 'id') ?? place;
      const tool = textAt(block, 'name') ?? 'unknown';
      const args = callArguments(block.input, place, this.onLoss);
      this.calls.set(call_id, { tool, args });
      entries.push({ ...common, kind: 'call', call_id, tool, args });
    },
    tool_result: (block, common, { entries }) => {
      const call_id = idAt(block, 'tool_use_id') ?? common.place;
      const call = this.calls.get(call_id);
      this.calls.delete(call_id);
      const { content } = block;
      const parsed = typeof content === 'string' && /^\s*[[{]/.test(content) ? parseJson(content) : content;
      const is_error = block.is_error === true || allFailed(parsed);
      const files = clineEvidence(call?.tool ?? textAt(block, 'name') ?? '', call?.args ?? {}, parsed);
      const text = resultText(content, common.place, this.onLoss);
      entries.push({ ...common, kind: 'result', call_id, text, is_error, ...(files.length === 0 ? {} : { files: [...files] }) });
    },
  };
}

const isResult = ({ kind }: RecordedEntry): boolean => kind === 'result';

/** The model sees answers to several questions as their JSON text, and parts of a message as such. */
function resultText(content: unknown, place: string, onLoss: OnLoss): string {
  const answers = Array.isArray(content) && content.some((item) => isJsonObject(item) && 'query' in item);
  return answers || (isJsonObject(content) && 'query' in content) ? JSON.stringify(content) : partsText(content, place, onLoss);
}

import { isJsonObject, type JsonObject } from '../../../values/json-object.js';
import { callArguments, partsText, placeAsCallId } from '../entries/chat-message.js';
import { idAt, objectAt, textAt } from '../entries/fields.js';
import { twinEvidence } from './evidence.js';
import { keepResult } from './replacements.js';
import {
  addToAnswer,
  answerOf,
  type ClaudeContext,
  type ClaudeRecord,
  closeAnswer,
  closeBoundary,
  commonOf,
} from './sessions.js';

/** A part of a prompt that has one author. */
interface PromptPart {
  readonly origin: 'person' | 'harness';
  readonly text: string;
}

const HARNESS_TAGS = [
  'command-name',
  'command-message',
  'command-args',
  'local-command-stdout',
  'local-command-stderr',
  'local-command-caveat',
  'bash-input',
  'bash-stdout',
  'bash-stderr',
  'system-reminder',
  'task-notification',
  'user-memory-input',
  'user-prompt-submit-hook',
  'ide_opened_file',
  'ide_selection',
];
const HARNESS_TEXT = new RegExp(
  `^\\s*(?:<(?:${HARNESS_TAGS.join('|')})[\\s>]|\\[Request interrupted by user|Caveat: The messages below)`,
);

/** Returns whether the person or the program wrote a text that has the role `user`. */
function originOf(record: JsonObject, text: string): PromptPart['origin'] {
  const kind = textAt(objectAt(record, 'origin'), 'kind');
  if (record.isMeta === true || (kind !== undefined && kind !== 'human')) return 'harness';
  return HARNESS_TEXT.test(text) ? 'harness' : 'person';
}

/** Returns the parts of a prompt. Adjacent texts of one author form a part. */
function promptParts(record: JsonObject, texts: readonly string[]): readonly PromptPart[] {
  const parts: PromptPart[] = [];
  for (const text of texts) {
    const origin = originOf(record, text);
    const last = parts.at(-1);
    if (last?.origin === origin) parts[parts.length - 1] = { origin, text: `${last.text}\n${text}` };
    else parts.push({ origin, text });
  }
  return parts;
}

const SPAWNING_TOOLS = new Set(['Task', 'Agent']);

function textOf({ onLoss, opaque }: ClaudeContext, place: string, content: unknown): string {
  const other = (part: JsonObject): string | undefined => {
    const type = textAt(part, 'type');
    if (type === 'tool_reference') return `[tool_reference ${textAt(part, 'tool_name') ?? ''}]`;
    if (type === 'image' || type === 'document') opaque.note(type, place);
    return undefined;
  };
  return partsText(content, { place, onLoss, other });
}

/**
 * Returns the blocks of a message. A plain text becomes one block. Blocks that are not objects are
 * losses.
 */
function blocksOf({ onLoss }: ClaudeContext, { record, place }: ClaudeRecord): readonly JsonObject[] {
  const message = objectAt(record, 'message');
  const content = message?.content;
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  const given: readonly unknown[] = Array.isArray(content) ? content : [content];
  const blocks = given.filter(isJsonObject);
  if (blocks.length < given.length) {
    const detail =
      message === undefined
        ? 'a record without a message'
        : `${given.length - blocks.length} blocks of a message are not objects: left out`;
    onLoss({ reason: message === undefined ? 'malformed-record' : 'unknown-block', place, detail });
  }
  return blocks;
}

const isResult = (block: JsonObject): boolean => textAt(block, 'type')?.endsWith('tool_result') === true;

/** Reads a record of the user: a prompt, results of calls, or the summary of a compaction. */
export function readUser(context: ClaudeContext, at: ClaudeRecord): void {
  if (at.record.isCompactSummary === true) {
    readSummary(context, at);
    return;
  }
  const blocks = blocksOf(context, at);
  const results = blocks.filter(isResult);
  const twin = results.length === 1 ? at.record.toolUseResult : undefined;
  for (const block of results) readResult(context, at, { block, twin });
  const prompt = blocks.filter((block) => !isResult(block));
  if (prompt.length > 0) readPrompt(context, at, prompt);
}

function readResult(
  context: ClaudeContext,
  at: ClaudeRecord,
  { block, twin }: { readonly block: JsonObject; readonly twin?: unknown },
): void {
  const { session, place } = at;
  const call = idAt(block, 'tool_use_id');
  if (call === undefined) {
    context.onLoss({ reason: 'orphan-result', place, detail: 'a result that names no call: left out' });
    return;
  }
  if (!session.calls.has(call) && !session.resultRecords.has(call) && !session.early.has(call)) {
    session.early.set(call, { answers: 0, read: () => takeResult(context, at, { call, block, twin }) });
  } else takeResult(context, at, { call, block, twin });
}

function takeResult(
  context: ClaudeContext,
  at: ClaudeRecord,
  { call, block, twin }: { readonly call: string; readonly block: JsonObject; readonly twin: unknown },
): void {
  const { session, place } = at;
  const text = textOf(context, place, block.content);
  const evidence = twinEvidence(session.calls.get(call), twin, text);
  session.calls.delete(call);
  const entry = {
    kind: 'result' as const,
    ...commonOf(at),
    call_id: call,
    text,
    is_error: block.is_error === true,
    ...evidence,
  };
  keepResult(session, context.queue.hold<'result'>(entry));
}

function readPrompt(context: ClaudeContext, at: ClaudeRecord, blocks: readonly JsonObject[]): void {
  const { session, record, place } = at;
  closeBoundary(context, session);
  closeAnswer(session);
  const common = commonOf(at);
  const texts = blocks.map((block) => textOf(context, place, [block]));
  const parts = promptParts(record, texts);
  if (parts.some(({ text }) => text.startsWith('[Request interrupted by user')))
    context.queue.push({ kind: 'event', ...common, name: 'aborted' });
  if (!session.subagent && parts.some(({ origin }) => origin === 'person')) noteRewind(context, at);
  for (const { origin, text } of parts) {
    const author = session.subagent && origin === 'person' ? (session.begun ? 'harness' : 'model') : origin;
    context.queue.push({ kind: 'message', ...common, role: 'user', origin: author, text });
  }
  session.begun = true;
}

function noteRewind({ queue }: ClaudeContext, at: ClaudeRecord): void {
  const { session, record, place } = at;
  const parent = idAt(record, 'parentUuid') ?? '';
  // A prompt without `parentUuid` follows the previous one. A second prompt without predecessor is
  // a rewind only if other records name their predecessors.
  if (!('parentUuid' in record)) return;
  const earlier = parent === '' && !session.chained ? undefined : session.prompts.get(parent);
  if (earlier !== undefined)
    queue.push({ kind: 'event', ...commonOf(at), name: 'rewind', text: earlier, undone_from: earlier });
  session.prompts.set(parent, idAt(record, 'uuid') ?? place);
}

function readSummary(context: ClaudeContext, at: ClaudeRecord): void {
  const { session, record, place } = at;
  const summary = textOf(context, place, objectAt(record, 'message')?.content);
  const boundary = session.boundary ?? { kind: 'compaction' as const, ...commonOf(at) };
  session.boundary = undefined;
  closeAnswer(session);
  context.queue.push({ ...boundary, summary });
}

/** Reads an assistant's record. It has one block of an answer, or in older versions several. */
export function readAssistant(context: ClaudeContext, at: ClaudeRecord): void {
  const { session, place } = at;
  const blocks = blocksOf(context, at);
  if (objectAt(at.record, 'message') === undefined) return;
  closeBoundary(context, session);
  session.begun = true;
  answerOf(context, at);
  for (const block of blocks) {
    const type = textAt(block, 'type');
    if (type === 'thinking' || type === 'redacted_thinking') {
      const thinking = textAt(block, 'thinking') ?? '';
      if (thinking === '') context.opaque.note('encrypted thoughts', place);
      else addToAnswer(context, at, { thinking });
    } else if (type?.endsWith('tool_use') === true) readCall(context, at, block);
    else if (isResult(block)) readResult(context, at, { block });
    else addToAnswer(context, at, { text: textOf(context, place, [block]) });
  }
}

/**
 * Returns the arguments of a call. Arguments that the program could not parse are returned as text.
 */
function givenArguments(block: JsonObject): unknown {
  const unparsed = objectAt(block, 'input')?.__unparsedToolInput;
  if (unparsed === undefined) return block.input;
  return isJsonObject(unparsed) ? (unparsed.raw ?? unparsed) : unparsed;
}

function readCall({ queue, onLoss }: ClaudeContext, at: ClaudeRecord, block: JsonObject): void {
  const { session, record, place } = at;
  const id = idAt(block, 'id') ?? placeAsCallId(place);
  const tool = textAt(block, 'name') ?? '';
  const args = callArguments(givenArguments(block), place, onLoss);
  const cwd = textAt(record, 'cwd');
  session.calls.set(id, tool);
  if (session.answer !== undefined) session.answer.calls = true;
  const prompt = SPAWNING_TOOLS.has(tool) ? textAt(args, 'prompt') : undefined;
  if (prompt !== undefined) session.spawns.set(prompt, id);
  queue.push({
    kind: 'call',
    ...commonOf(at),
    call_id: id,
    tool,
    args: { ...args },
    ...(cwd === undefined || cwd === session.cwd ? {} : { cwd }),
  });
  const early = session.early.get(id);
  session.early.delete(id);
  early?.read();
}

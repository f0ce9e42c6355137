import { callArguments } from './call-arguments.js';
import { readAttachment } from './claude-code-attachments.js';
import { blocksOf, isInterruption, promptParts } from './claude-code-prompts.js';
import { twinEvidence } from './claude-code-results.js';
import { addToAnswer, answerOf, type ClaudeSession, closeAnswer, commonOf } from './claude-code-session.js';
import { ClaudeSessions } from './claude-code-sessions.js';
import { EntryQueue } from './entry-queue.js';
import { excerpt } from './excerpt.js';
import { idAt, numberAt, objectAt, textAt } from './fields.js';
import type { OnLoss } from './importer.js';
import type { JsonObject } from './json-text.js';
import { lineFormat } from './line-format.js';
import { partsText } from './message-parts.js';
import type { RecordedEntry } from './neutral-session.js';
import { createOpaqueContent } from './opaque-content.js';
import { QueuedPrompts } from './queued-prompts.js';

type Handler = (session: ClaudeSession, record: JsonObject, place: string) => void;

/** Records that are no part of the conversation: titles, snapshots of files for undoing, marks of the window. */
const BOOKKEEPING = new Set([
  'summary',
  'file-history-snapshot',
  'last-prompt',
  'custom-title',
  'ai-title',
  'agent-name',
  'agent-color',
  'agent-setting',
  'tag',
  'mode',
  'permission-mode',
  'pr-link',
  'worktree-state',
  'content-replacement',
]);
const QUIET_SYSTEM = new Set(['turn_duration', 'stop_hook_summary', 'file_snapshot', 'agents_killed', 'away_summary']);
const SPAWNING_TOOLS = new Set(['Task', 'Agent']);

/** Reads the records of one file of Claude Code, one after the other. */
export class ClaudeCodeReader {
  readonly #queue = new EntryQueue();
  readonly #sessions: ClaudeSessions;
  readonly #queued = new QueuedPrompts();
  readonly #opaque = createOpaqueContent();
  readonly #seen = new Set<string>();
  readonly #onLoss: OnLoss;
  readonly #handlers: Readonly<Record<string, Handler>> = {
    user: (session, record, place) => this.#user(session, record, place),
    assistant: (session, record, place) => this.#assistant(session, record, place),
    system: (session, record, place) => this.#system(session, record, place),
    attachment: (session, record, place) => this.#attachment(session, record, place),
    progress: (session, record, place) => this.#progress(session, record, place),
    'queue-operation': (session, record, place) => this.#queueOperation(session, record, place),
  };

  constructor(fallbackId: string, onLoss: OnLoss) {
    this.#sessions = new ClaudeSessions(this.#queue, fallbackId);
    this.#onLoss = onLoss;
  }

  /** Takes one record. */
  read(record: JsonObject, place: string): void {
    const type = textAt(record, 'type') ?? '';
    const handler = Object.hasOwn(this.#handlers, type) ? this.#handlers[type] : undefined;
    if (handler === undefined) {
      this.#other(type, record, place);
      return;
    }
    const uuid = idAt(record, 'uuid');
    if (uuid !== undefined && this.#seen.has(uuid)) {
      this.#onLoss({ reason: 'duplicate-id', place, detail: `the record ${excerpt(uuid)} was there before: left out` });
      return;
    }
    if (uuid !== undefined) this.#seen.add(uuid);
    handler(this.#sessions.of(record, place), record, place);
  }

  /** The entries that are finished. */
  ready(): readonly RecordedEntry[] {
    return this.#queue.take();
  }

  /** The end of the file: everything that is left. */
  finish(): readonly RecordedEntry[] {
    for (const session of this.#sessions.all()) this.#closeBoundary(session);
    this.#opaque.finish(this.#onLoss);
    return this.#queue.drain();
  }

  #other(type: string, record: JsonObject, place: string): void {
    const found = lineFormat(record);
    if (found !== undefined && found.format !== 'claude-code') {
      this.#onLoss({ reason: 'mixed-formats', place, detail: `a record of ${found.format}: left out` });
    } else if (!BOOKKEEPING.has(type)) {
      this.#onLoss({ reason: 'unknown-record', place, detail: `a record of the kind ${JSON.stringify(excerpt(type))}: left out` });
    }
  }

  #text(content: unknown, place: string): string {
    return partsText(content, place, this.#onLoss, (part) => {
      const type = textAt(part, 'type');
      if (type === 'tool_reference') return `[tool_reference ${textAt(part, 'tool_name') ?? ''}]`;
      if (type === 'image' || type === 'document') this.#opaque.note(type, place);
      return undefined;
    });
  }

  #user(session: ClaudeSession, record: JsonObject, place: string): void {
    const message = objectAt(record, 'message');
    if (message === undefined) {
      this.#onLoss({ reason: 'malformed-record', place, detail: 'a record of the user without a message' });
      return;
    }
    if (record.isCompactSummary === true) {
      this.#summary(session, record, place);
      return;
    }
    const results = blocksOf(message).filter((block) => textAt(block, 'type')?.endsWith('tool_result') === true);
    for (const block of results)
      this.#result(session, record, place, { block, twin: results.length === 1 ? record.toolUseResult : undefined });
    const rest = Array.isArray(message.content)
      ? message.content.filter((block) => !results.some((one) => one === block))
      : message.content;
    if (Array.isArray(rest) && rest.length === 0 && results.length > 0) return;
    this.#prompt(session, record, place, rest);
  }

  #result(
    session: ClaudeSession,
    record: JsonObject,
    place: string,
    { block, twin }: { readonly block: JsonObject; readonly twin: unknown },
  ): void {
    const call = idAt(block, 'tool_use_id');
    if (call === undefined) {
      this.#onLoss({ reason: 'orphan-result', place, detail: 'a result that names no call: left out' });
      return;
    }
    const text = this.#text(block.content, place);
    const tool = session.calls.get(call);
    session.calls.delete(call);
    const { files, listed, truncated } = twinEvidence(tool, twin, text);
    this.#queue.push({
      kind: 'result',
      ...commonOf(session, record, place),
      call_id: call,
      text,
      is_error: block.is_error === true,
      truncated,
      files: files === undefined ? undefined : [...files],
      listed: listed === undefined ? undefined : [...listed],
    });
  }

  #prompt(session: ClaudeSession, record: JsonObject, place: string, content: unknown): void {
    this.#closeBoundary(session);
    closeAnswer(session);
    const common = commonOf(session, record, place);
    const parts = promptParts(record, content, (block) => this.#text([block], place));
    if (parts.some(({ text }) => isInterruption(text))) this.#queue.push({ kind: 'event', ...common, name: 'aborted' });
    if (!session.subagent && parts.some(({ origin }) => origin === 'person')) this.#noteRewind(session, record, place);
    for (const { origin, text } of parts) {
      const author = session.subagent && origin === 'person' ? (session.begun ? 'harness' : 'model') : origin;
      this.#queue.push({ kind: 'message', ...common, role: 'user', origin: author, text });
    }
    session.begun = true;
  }

  #noteRewind(session: ClaudeSession, record: JsonObject, place: string): void {
    const parent = idAt(record, 'parentUuid') ?? '';
    const earlier = session.prompts.get(parent);
    if (earlier !== undefined) this.#queue.push({ kind: 'event', ...commonOf(session, record, place), name: 'rewind', text: earlier });
    session.prompts.set(parent, idAt(record, 'uuid') ?? place);
  }

  #assistant(session: ClaudeSession, record: JsonObject, place: string): void {
    const message = objectAt(record, 'message');
    if (message === undefined) {
      this.#onLoss({ reason: 'malformed-record', place, detail: 'a record of the assistant without a message' });
      return;
    }
    this.#closeBoundary(session);
    session.begun = true;
    const answer = answerOf(session, this.#queue, record, place);
    if (typeof message.content === 'string') addToAnswer(session, this.#queue, answer, { record, place, text: message.content });
    for (const block of blocksOf(message)) {
      const type = textAt(block, 'type');
      if (type === 'thinking' || type === 'redacted_thinking') {
        const thinking = textAt(block, 'thinking') ?? '';
        if (thinking === '') this.#opaque.note('encrypted thoughts', place);
        else addToAnswer(session, this.#queue, answer, { record, place, thinking });
      } else if (type?.endsWith('tool_use') === true) this.#call(session, record, place, block);
      else if (type?.endsWith('tool_result') === true) this.#result(session, record, place, { block, twin: undefined });
      else addToAnswer(session, this.#queue, answer, { record, place, text: this.#text([block], place) });
    }
  }

  #call(session: ClaudeSession, record: JsonObject, place: string, block: JsonObject): void {
    const id = idAt(block, 'id') ?? `call-at-${place.replace(' ', '-')}`;
    const tool = textAt(block, 'name') ?? '';
    const given = objectAt(block, 'input')?.__unparsedToolInput;
    const args = callArguments(given === undefined ? block.input : (objectAt({ given }, 'given')?.raw ?? given), place, this.#onLoss);
    const cwd = textAt(record, 'cwd');
    session.calls.set(id, tool);
    const prompt = SPAWNING_TOOLS.has(tool) ? textAt(args, 'prompt') : undefined;
    if (prompt !== undefined) session.spawns.set(prompt, id);
    this.#queue.push({
      kind: 'call',
      ...commonOf(session, record, place),
      call_id: id,
      tool,
      args: { ...args },
      ...(cwd === undefined || cwd === session.cwd ? {} : { cwd }),
    });
  }

  #system(session: ClaudeSession, record: JsonObject, place: string): void {
    const subtype = textAt(record, 'subtype') ?? '';
    const common = commonOf(session, record, place);
    if (subtype === 'compact_boundary') {
      this.#closeBoundary(session);
      closeAnswer(session);
      const about = objectAt(record, 'compactMetadata');
      session.boundary = {
        kind: 'compaction',
        ...common,
        trigger: textAt(about, 'trigger'),
        tokens_before: numberAt(about, 'preTokens'),
        kept_from: idAt(objectAt(about, 'preservedSegment'), 'headUuid'),
      };
      session.prompts.clear();
      return;
    }
    if (QUIET_SYSTEM.has(subtype)) return;
    const text = textAt(record, 'content') ?? textAt(objectAt(record, 'error'), 'message');
    if (subtype === 'local_command') this.#queue.push({ kind: 'message', ...common, role: 'user', origin: 'harness', text: text ?? '' });
    else this.#queue.push({ kind: 'event', ...common, name: subtype === '' ? 'system' : subtype.replaceAll('_', '-'), text });
  }

  #summary(session: ClaudeSession, record: JsonObject, place: string): void {
    const common = commonOf(session, record, place);
    const summary = this.#text(objectAt(record, 'message')?.content, place);
    const boundary = session.boundary ?? { kind: 'compaction' as const, ...common };
    session.boundary = undefined;
    closeAnswer(session);
    this.#queue.push({ ...boundary, ...(boundary.native_id === undefined ? common : {}), summary });
  }

  /** A compaction goes out without a summary where the conversation goes on before one came. */
  #closeBoundary(session: ClaudeSession): void {
    if (session.boundary !== undefined) this.#queue.push(session.boundary);
    session.boundary = undefined;
  }

  #attachment(session: ClaudeSession, record: JsonObject, place: string): void {
    const fields = objectAt(record, 'attachment');
    if (fields === undefined) {
      this.#onLoss({ reason: 'malformed-record', place, detail: 'an attachment without its fields' });
      return;
    }
    const attachment = readAttachment(fields);
    if (attachment === undefined) return;
    const { kind, origin, name, text, files } = attachment;
    const common = commonOf(session, record, place);
    if (kind === 'event')
      this.#queue.push({ kind, ...common, name, text, ...(files === undefined || files.length === 0 ? {} : { files: [...files] }) });
    else if (name !== 'queued_command') this.#queue.push({ kind, ...common, role: 'user', origin, text: text ?? '', name });
    else if (this.#queued.attach(text ?? '')) this.#queue.push({ kind, ...common, role: 'user', origin, text: text ?? '' });
  }

  /** A prompt that was typed while the model worked: taken out of the queue in the middle of a turn, it went to the model and stands nowhere else. */
  #queueOperation(session: ClaudeSession, record: JsonObject, place: string): void {
    const common = commonOf(session, record, place);
    for (const { text, given } of this.#queued.operate(textAt(record, 'operation') ?? '', textAt(record, 'content'))) {
      if (given) this.#queue.push({ kind: 'message', ...common, role: 'user', origin: 'person', text });
      else this.#queue.push({ kind: 'event', ...common, name: 'prompt-withdrawn', text });
    }
  }

  #progress(session: ClaudeSession, record: JsonObject, place: string): void {
    const data = objectAt(record, 'data');
    const nested = objectAt(data, 'message');
    const type = textAt(nested, 'type');
    if (textAt(data, 'type') !== 'agent_progress' || nested === undefined) return;
    const agent = idAt(data, 'agentId') ?? idAt(record, 'parentToolUseID') ?? 'agent';
    const child = this.#sessions.subagent(session, agent, {
      record: { ...record, timestamp: nested.timestamp ?? record.timestamp },
      place,
    });
    if (type === 'user') this.#user(child, nested, place);
    else if (type === 'assistant') this.#assistant(child, nested, place);
    else
      this.#onLoss({
        reason: 'unknown-record',
        place,
        detail: `progress of a sub-agent of the kind ${JSON.stringify(excerpt(type ?? ''))}: left out`,
      });
  }
}

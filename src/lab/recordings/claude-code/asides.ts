import { takeFirst } from '../entries/chat-message.js';
import { idAt, numberAt, objectAt, textAt } from '../entries/fields.js';
import { readAttachment } from './evidence.js';
import { readMicrocompact } from './replacements.js';
import { type ClaudeContext, type ClaudeRecord, closeAnswer, closeBoundary, commonOf } from './sessions.js';

/** A prompt that left the queue of typed prompts and has no other record. */
interface QueuedPrompt {
  readonly text: string;
  /** True if the model got the prompt during a turn; false if the person withdrew it. */
  readonly given: boolean;
}

/**
 * Follows Claude Code's queue of prompts that a person typed while the model worked. Three
 * operations end a prompt's wait. `dequeue`: the prompt also has a separate record. `remove`: the
 * model got the prompt during a turn. Newer versions also write it as an attachment, and the text
 * is counted once. `popAll`: the prompts went back to the editor.
 */
export class QueuedPrompts {
  #waiting: string[] = [];
  /** Prompts that were seen only as an attachment so far, and those seen only as a removal. */
  #attached: string[] = [];
  #removed: string[] = [];

  /**
   * Takes a prompt from an attachment. Returns false if the prompt was already counted at its
   * removal.
   */
  attach(text: string): boolean {
    if (takeFirst(this.#removed, (one) => one === text) !== undefined) return false;
    this.#attached.push(text);
    return true;
  }

  /** Applies an operation to the queue. Returns the prompts that have no other record. */
  operate(operation: string, content: string | undefined): readonly QueuedPrompt[] {
    if (operation === 'enqueue') {
      this.#waiting.push(content ?? '');
      return [];
    }
    if (operation === 'popAll') {
      const back = content === undefined ? this.#waiting : [content];
      this.#waiting = [];
      return back.filter((text) => text !== '').map((text) => ({ text, given: false }));
    }
    const first = this.#waiting.shift() ?? '';
    const text = content ?? first;
    if (operation !== 'remove' || text === '' || takeFirst(this.#attached, (one) => one === text) !== undefined)
      return [];
    this.#removed.push(text);
    return [{ text, given: true }];
  }
}

/** System records that are not part of the conversation. */
const QUIET = new Set(['turn_duration', 'stop_hook_summary', 'file_snapshot', 'agents_killed', 'away_summary']);

/** Reads a system record: a compaction, the output of a local command, or a provider's error. */
export function readSystem(context: ClaudeContext, at: ClaudeRecord): void {
  const { session, record } = at;
  const subtype = textAt(record, 'subtype') ?? '';
  const common = commonOf(at);
  if (subtype === 'compact_boundary') {
    closeBoundary(context, session);
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
  if (subtype === 'microcompact_boundary') {
    readMicrocompact(context, at);
    return;
  }
  if (QUIET.has(subtype)) return;
  const text = textAt(record, 'content') ?? textAt(objectAt(record, 'error'), 'message');
  if (subtype === 'local_command')
    context.queue.push({ kind: 'message', ...common, role: 'user', origin: 'harness', text: text ?? '' });
  else
    context.queue.push({
      kind: 'event',
      ...common,
      name: subtype === '' ? 'system' : subtype.replaceAll('_', '-'),
      text,
    });
}

/** Reads an attachment. */
export function readAttached({ queue, onLoss }: ClaudeContext, at: ClaudeRecord, queued: QueuedPrompts): void {
  const fields = objectAt(at.record, 'attachment');
  if (fields === undefined) {
    onLoss({ reason: 'malformed-record', place: at.place, detail: 'an attachment without its fields: left out' });
    return;
  }
  const attachment = readAttachment(fields);
  if (attachment === undefined) return;
  const common = commonOf(at);
  if (attachment.kind === 'event')
    queue.push({ ...common, ...attachment, files: attachment.files?.length ? attachment.files : undefined });
  else if (attachment.name !== 'queued_command') queue.push({ ...common, ...attachment, role: 'user' });
  else if (queued.attach(attachment.text)) queue.push({ ...common, ...attachment, role: 'user', name: undefined });
}

/** Reads a queue operation on prompts that were typed while the model worked. */
export function readQueueOperation({ queue }: ClaudeContext, at: ClaudeRecord, queued: QueuedPrompts): void {
  const common = commonOf(at);
  for (const { text, given } of queued.operate(textAt(at.record, 'operation') ?? '', textAt(at.record, 'content'))) {
    if (given) queue.push({ kind: 'message', ...common, role: 'user', origin: 'person', text });
    else queue.push({ kind: 'event', ...common, name: 'prompt-withdrawn', text });
  }
}

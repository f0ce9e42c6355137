import { idAt, numberAt, objectAt, textAt } from '../entries/fields.js';
import { readAttachment } from './attachments.js';
import type { QueuedPrompts } from './queued-prompts.js';
import { type ClaudeContext, type ClaudeRecord, closeAnswer, closeBoundary, commonOf } from './session.js';

/** Records of the system that say nothing of the conversation. */
const QUIET = new Set(['turn_duration', 'stop_hook_summary', 'file_snapshot', 'agents_killed', 'away_summary']);

/** A record of the system: the mark of a compaction, output of a local command, errors of the provider. */
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
  if (QUIET.has(subtype)) return;
  const text = textAt(record, 'content') ?? textAt(objectAt(record, 'error'), 'message');
  if (subtype === 'local_command') context.queue.push({ kind: 'message', ...common, role: 'user', origin: 'harness', text: text ?? '' });
  else context.queue.push({ kind: 'event', ...common, name: subtype === '' ? 'system' : subtype.replaceAll('_', '-'), text });
}

/** An attachment of a prompt. */
export function readAttached({ queue, onLoss }: ClaudeContext, at: ClaudeRecord, queued: QueuedPrompts): void {
  const fields = objectAt(at.record, 'attachment');
  if (fields === undefined) {
    onLoss({ reason: 'malformed-record', place: at.place, detail: 'an attachment without its fields: left out' });
    return;
  }
  const attachment = readAttachment(fields);
  if (attachment === undefined) return;
  const { kind, origin, name, text = '', files = [] } = attachment;
  const common = commonOf(at);
  if (kind === 'event') {
    queue.push({ kind, ...common, name, text: attachment.text, ...(files.length === 0 ? {} : { files: [...files] }) });
  } else if (name !== 'queued_command') queue.push({ kind, ...common, role: 'user', origin, text, name });
  else if (queued.attach(text)) queue.push({ kind, ...common, role: 'user', origin, text });
}

/** A prompt that was typed while the model worked: taken out of the queue in the middle of a turn, it went to the model and stands nowhere else. */
export function readQueueOperation({ queue }: ClaudeContext, at: ClaudeRecord, queued: QueuedPrompts): void {
  const common = commonOf(at);
  for (const { text, given } of queued.operate(textAt(at.record, 'operation') ?? '', textAt(at.record, 'content'))) {
    if (given) queue.push({ kind: 'message', ...common, role: 'user', origin: 'person', text });
    else queue.push({ kind: 'event', ...common, name: 'prompt-withdrawn', text });
  }
}

import { replacedResult } from '../../../history/rebuild/transcript-entries.js';
import { isJsonObject } from '../../../values/json-object.js';
import type { HeldEntry } from '../entries/entry-queue.js';
import { idAt, listAt, numberAt, objectAt, textAt, textsAt } from '../entries/fields.js';
import { namedFile } from '../entries/shown-file.js';
import { excerpt } from '../importer.js';
import { type ClaudeContext, type ClaudeRecord, type ClaudeSession, commonOf } from './sessions.js';

/**
 * Holds a result back until the model's next answer. Until then, Claude Code may record a text that
 * replaces the result for the model.
 */
export function keepResult(session: ClaudeSession, held: HeldEntry<'result'>): void {
  const { call_id, native_id } = held.entry;
  session.unanswered.get(call_id)?.release();
  session.unanswered.set(call_id, held);
  if (native_id !== undefined) session.resultRecords.set(call_id, native_id);
}

/**
 * Replaces a result by the text that the model saw. Returns false if the result has left the queue,
 * or belongs to another session.
 */
function replaceResult({ unanswered, replaced }: ClaudeSession, call: string, text: string): boolean {
  if (replaced.has(call)) return true;
  const held = unanswered.get(call);
  // The replacement shows no text of the file. The result still proves that the file exists.
  const files = held?.entry.files?.map(({ path }) => namedFile(path));
  if (held?.update({ text, truncated: true, ...(files === undefined ? {} : { files }) }) !== true) return false;
  replaced.add(call);
  return true;
}

/**
 * Reads `content-replacement`, which has the texts that the model saw in place of results. Newer
 * versions of Claude Code write the record more than once.
 */
export function readReplacements(
  { onLoss, queue }: ClaudeContext,
  sessions: Iterable<ClaudeSession>,
  at: Omit<ClaudeRecord, 'session'>,
): void {
  const all = [...sessions];
  for (const [index, one] of listAt(at.record, 'replacements').entries()) {
    const fields = isJsonObject(one) ? one : undefined;
    const [call, text] = [idAt(fields, 'toolUseId'), textAt(fields, 'replacement')];
    const done = call !== undefined && text !== undefined && all.some((session) => replaceResult(session, call, text));
    if (done) continue;
    const rested = call === undefined ? undefined : all.find((session) => session.unanswered.has(call));
    if (rested !== undefined && call !== undefined && text !== undefined) {
      rested.replaced.add(call);
      queue.push({
        kind: 'event',
        ...commonOf({ ...at, session: rested }),
        name: 'result-replaced',
        text: replacedResult(call, text),
      });
    }
    const what =
      call === undefined
        ? 'in place of something other than a result'
        : `in place of the result of the call ${excerpt(call)}`;
    const detail = `the model saw ${text?.length ?? 'unknown'} characters ${what}; the recorded result stays unchanged`;
    onLoss({ reason: 'not-as-shown', place: `${at.place}.replacements[${index}]`, detail });
  }
}

/** Reads `microcompact_boundary`. It names results and attachments that left the context. */
export function readMicrocompact({ queue, onLoss }: ClaudeContext, at: ClaudeRecord): void {
  const about = objectAt(at.record, 'microcompactMetadata');
  const calls = textsAt(about, 'compactedToolIds');
  const records = calls.flatMap((call) => at.session.resultRecords.get(call) ?? []);
  const dropped = [...new Set([...records, ...textsAt(about, 'clearedAttachmentUUIDs')])];
  const unknown = calls.length - records.length;
  if (unknown > 0 || dropped.length === 0) {
    const detail =
      dropped.length === 0 && unknown === 0
        ? 'it does not name the results that left the context'
        : `${unknown} results are not in the recording`;
    onLoss({
      reason: 'not-as-shown',
      place: at.place,
      detail: `a micro-compaction: ${detail}; they stay in the context`,
    });
  }
  const tokens_before = numberAt(about, 'preTokens');
  queue.push({ kind: 'compaction', ...commonOf(at), trigger: 'microcompact', tokens_before, dropped });
}

import type { ReadingWithText, SourceReading } from '../../filesystem/access/read-source.js';
import { hashText } from '../../objects/hashes.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import { abridge, chunkText, isLargeText } from '../../objects/large-text.js';
import type { HistoryEvent } from '../../objects/step.js';
import type { FoundSecrets } from '../../redaction/stored-marks.js';
import { defined } from '../../values/defined.js';
import type { FileObservation } from '../decide-file.js';
import { NO_MASK, type RecordMask } from '../record-mask.js';
import { type CallObject, type CallReport, type ReportedReading, storedCall } from './call-report.js';
import type { MadeStep } from './given-step.js';

/** Returns the reading of a text, as a whole text or as a large one. */
function readingOf(text: string, { mtimeMs }: ReadingWithText): ReadingWithText {
  const readable = { fileHash: hashText(text), size: Buffer.byteLength(text), mtimeMs };
  if (!isLargeText(text)) return { kind: 'text', content: text, ...readable };
  return {
    kind: 'large-text',
    content: abridge(text).content,
    length: text.length,
    chunks: () => chunkText(text),
    ...readable,
  };
}

/**
 * Returns a file's reading with its secrets masked. Its hash covers the masked text (reading 0026).
 * The hash of the bytes on disk would confirm a guess of a short secret.
 */
function maskedReading(mask: RecordMask, reading: SourceReading, found: FoundSecrets): SourceReading {
  if (reading.kind === 'text') {
    const text = mask.text(reading.content, found);
    return text === reading.content ? reading : readingOf(text, reading);
  }
  if (reading.kind !== 'large-text') return reading;
  const { chunks } = reading;
  if (chunks === undefined) {
    const content = mask.text(reading.content, found);
    return content === reading.content ? reading : { ...reading, content, fileHash: hashText(content) };
  }
  const whole = [...chunks()].join('');
  const text = mask.text(whole, found);
  return text === whole ? reading : readingOf(text, reading);
}

/** Returns readings of files with their secrets masked. */
export const maskedFiles = (
  mask: RecordMask,
  files: readonly FileObservation[],
  found: FoundSecrets = new Map(),
): readonly FileObservation[] =>
  files.map((file) => (file.kind === 'read' ? { ...file, reading: maskedReading(mask, file.reading, found) } : file));

/** Returns a change of a harness's history with its secrets masked. */
export const maskedEvent = (mask: RecordMask, { detail, ...event }: HistoryEvent): HistoryEvent => ({
  ...event,
  ...defined({ detail: detail === undefined ? undefined : mask.text(detail) }),
});

/** Returns the fields of a call's object with its secrets masked. */
function maskedCall<Call extends CallObject>(mask: RecordMask, call: Call, found: FoundSecrets): Call {
  const { args, argsDisplay, content } = call;
  const shown = (text: string): string => mask.withoutRepeated(mask.text(text, found), found);
  // Mask the output first: an argument may contain only a part of a secret in the output.
  const stored = content === null ? null : shown(content);
  return {
    ...call,
    args: mask.value(args, found) as CallReport['args'],
    ...defined({ argsDisplay: argsDisplay === undefined ? undefined : shown(argsDisplay) }),
    content: stored,
  };
}

/**
 * Returns the report of a call with its secrets masked, as it is stored. The stored answer is the
 * agent's answer with marks.
 */
export function maskedReport(mask: RecordMask, report: CallReport): CallReport {
  if (mask === NO_MASK) return report;
  const found: FoundSecrets = new Map();
  const masked = (readings: readonly ReportedReading[]): readonly ReportedReading[] =>
    readings.map((one) => ({ ...one, reading: maskedReading(mask, one.reading, found) }));
  const { readings, plan, notes } = report;
  const files = defined({
    readings: readings === undefined ? undefined : masked(readings),
    plan:
      plan === undefined
        ? undefined
        : {
            ...plan,
            readings: masked(plan.readings),
            entries: plan.entries.map((entry) =>
              entry.ok && entry.text !== undefined ? { ...entry, text: mask.text(entry.text, found) } : entry,
            ),
          },
  });
  const call = maskedCall(mask, report, found);
  const shown = (text: string): string => mask.withoutRepeated(mask.text(text, found), found);
  /** An answer that contains the output is masked around it, so that both have the same marks. */
  const answer: CallReport['answer'] = (id) => {
    const { content } = report;
    const parts = content === '' ? [report.answer(id)] : report.answer(id).split(content);
    return parts.map(shown).join(call.content);
  };
  return { ...call, ...files, ...defined({ notes: notes?.map(shown) }), answer };
}

/** Returns a step that was planned elsewhere, and its call, with their secrets masked. */
export function storedStep(
  mask: RecordMask,
  made: MadeStep,
  { id, session }: { readonly id: ObjectId | undefined; readonly session: SessionId },
) {
  const { step, files, call } = mask === NO_MASK ? made : maskedStep(mask, made);
  const stored =
    call === undefined || id === undefined ? undefined : storedCall(call, { id, session, refs: call.files });
  return { step, files: files ?? [], call: stored };
}

function maskedStep(mask: RecordMask, made: MadeStep): MadeStep {
  const found: FoundSecrets = new Map();
  const { step, files, call } = made;
  const stored = call === undefined ? undefined : maskedCall(mask, call, found);
  const { message, event } = step;
  const masked = defined({
    message: message === undefined ? undefined : { ...message, text: mask.text(message.text, found) },
    event: event === undefined ? undefined : maskedEvent(mask, event),
  });
  // The proof of the answer covers the unmasked text, so drop it if the output was masked.
  const { call: proven, ...others } = step;
  const isSame = proven === undefined || stored?.content === call?.content;
  const kept = isSame ? step : { ...others, call: { id: proven.id, ...defined({ by: proven.by }) } };
  return {
    step: { ...kept, ...masked },
    ...defined({ files: files && maskedFiles(mask, files, found), call: stored }),
  };
}

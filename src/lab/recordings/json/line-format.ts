import type { JsonObject } from '../../../values/json-object.js';
import { idAt, objectAt, textAt } from '../entries/fields.js';
import type { Importer, OnItem, OnLoss, RecordingSource } from '../importer.js';
import type { RecordedEntry } from '../neutral-session.js';
import { readGrowingLines } from './json-lines.js';
import { headRecords, recordingId } from './recording-head.js';

/** The formats of JSON lines in which every record shows its format. */
type LineFormat = 'claude-code' | 'codex' | 'pi';

const CERTAIN = 1;
const LIKELY = 0.8;
const POSSIBLE = 0.5;

const CHAINED = new Set(['user', 'assistant', 'system', 'progress', 'attachment']);
const UNCHAINED = new Set([
  'queue-operation',
  'last-prompt',
  'custom-title',
  'mode',
  'pr-link',
  'agent-name',
  'ai-title',
  'permission-mode',
  'bridge-session',
  'content-replacement',
]);

function claudeCode(record: JsonObject): number {
  const type = textAt(record, 'type') ?? '';
  if (idAt(record, 'sessionId') !== undefined) {
    if (CHAINED.has(type) && ('uuid' in record || 'parentUuid' in record)) return CERTAIN;
    if (UNCHAINED.has(type)) return LIKELY;
  }
  if (type === 'file-history-snapshot' || type === 'file-history-delta') return LIKELY;
  return type === 'summary' && 'leafUuid' in record ? LIKELY : 0;
}

const ENVELOPED = new Set(['session_meta', 'response_item', 'event_msg', 'turn_context', 'compacted', 'world_state']);
const BARE = new Set([
  'message',
  'reasoning',
  'function_call',
  'function_call_output',
  'local_shell_call',
  'custom_tool_call',
]);

function codex(record: JsonObject): number {
  const type = textAt(record, 'type') ?? '';
  if (ENVELOPED.has(type) && objectAt(record, 'payload') !== undefined) return CERTAIN;
  if (textAt(record, 'record_type') === 'state') return POSSIBLE;
  if (
    BARE.has(type) &&
    record.message === undefined &&
    ('content' in record || 'call_id' in record || 'summary' in record)
  )
    return POSSIBLE;
  return type === '' && idAt(record, 'id') !== undefined && 'timestamp' in record && 'instructions' in record
    ? LIKELY
    : 0;
}

const PI_ENTRIES = new Set([
  'model_change',
  'thinking_level_change',
  'compaction',
  'branch_summary',
  'custom',
  'custom_message',
  'label',
  'session_info',
]);

function pi(record: JsonObject): number {
  const type = textAt(record, 'type') ?? '';
  if (!('timestamp' in record) || 'payload' in record || 'sessionId' in record) return 0;
  if (type === 'session') return idAt(record, 'id') !== undefined && 'cwd' in record ? CERTAIN : 0;
  if (type === 'message') return textAt(objectAt(record, 'message'), 'role') === undefined ? 0 : LIKELY;
  return PI_ENTRIES.has(type) ? POSSIBLE : 0;
}

const SHAPES: Readonly<Record<LineFormat, (record: JsonObject) => number>> = { 'claude-code': claudeCode, codex, pi };
const FORMATS: readonly LineFormat[] = ['claude-code', 'codex', 'pi'];

/** Returns a record's format and how certain it is. Undefined if no format matches. */
function lineFormat(record: JsonObject): { readonly format: LineFormat; readonly certainty: number } | undefined {
  let best: { readonly format: LineFormat; readonly certainty: number } | undefined;
  for (const format of FORMATS) {
    const certainty = SHAPES[format](record);
    if (certainty > (best?.certainty ?? 0)) best = { format, certainty };
  }
  return best;
}

function isRecord(record: JsonObject): boolean {
  return lineFormat(record) !== undefined;
}

function recogniseLines(source: RecordingSource, format: LineFormat): number {
  for (const record of headRecords(source)) {
    const found = lineFormat(record);
    if (found !== undefined) return found.format === format ? found.certainty : 0;
  }
  return 0;
}

/** Converts the records of one file to entries. */
export interface LineReader {
  /**
   * Returns the entries that are final after this record, in order. Empty while an earlier entry
   * may still change.
   */
  read(record: JsonObject, place: string): readonly RecordedEntry[];
  /**
   * Called when the end of a growing file was reached. Returns the entries that were held back
   * because they may change. A later change becomes another entry or is lost. Absent if the reader
   * holds no entries back.
   */
  rest?(): readonly RecordedEntry[];
  /** Returns the remaining entries at the end of the file. */
  finish(): readonly RecordedEntry[];
}

/**
 * Returns the importer of one format of JSON lines. The first recognised record of a file decides
 * the format. Records of other formats are left out and reported as `mixed-formats`.
 *
 * @param open creates the reader of one file; `id` is the id for a session that has none
 */
export function lineImporter(
  format: LineFormat,
  open: (id: string, onLoss: OnLoss, onItem: OnItem) => LineReader,
): Importer {
  return {
    format,
    recognise: (source) => recogniseLines(source, format),
    async *read(source, onLoss, onItem) {
      const reader = open(recordingId(source), onLoss, onItem);
      for await (const line of readGrowingLines(source.open(), onLoss, { isRecord })) {
        if ('rests' in line) {
          yield* reader.rest?.() ?? [];
          continue;
        }
        const { record, place } = line;
        const found = lineFormat(record);
        if (found === undefined || found.format === format) yield* reader.read(record, place);
        else onLoss({ reason: 'mixed-formats', place, detail: `a record of ${found.format}: left out` });
      }
      yield* reader.finish();
    },
  };
}

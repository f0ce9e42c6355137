import { isJsonObject, type JsonObject } from '../../../values/json-object.js';
import { idAt, momentOf, objectsAt, textAt } from '../entries/fields.js';
import { type Importer, type OnLoss, type RecordingSource, unknownRole } from '../importer.js';
import { readJsonLines } from '../json/json-lines.js';
import { headObject, recordingId } from '../json/recording-head.js';
import type { RecordedEntry } from '../neutral-session.js';

const recognise = (source: RecordingSource): number => {
  const head = headObject(source);
  const isSession = typeof head?.session_id === 'string' && typeof head.project === 'string' && 'messages' in head;
  return isSession && ('stats' in head || 'start_time' in head || 'git_branch' in head) ? 0.9 : 0;
};

/** Returns a tool's output as text. Undefined in older exports, which have no output. */
function outputOf(use: JsonObject): string | undefined {
  const { output } = use;
  if (typeof output === 'string') return output;
  if (!isJsonObject(output)) return undefined;
  return textAt(output, 'text') ?? textAt(output, 'output') ?? JSON.stringify(output);
}

const argsOf = ({ input }: JsonObject): JsonObject =>
  isJsonObject(input) ? input : { input: typeof input === 'string' ? input : JSON.stringify(input ?? null) };

function* messageEntries(
  message: JsonObject,
  { session, place, onLoss }: { readonly session: string; readonly place: string; readonly onLoss: OnLoss },
): Iterable<RecordedEntry> {
  const common = { session, place, at: momentOf(message.timestamp) };
  const role = message.role === 'assistant' ? 'assistant' : message.role === 'user' ? 'user' : undefined;
  if (role === undefined) onLoss(unknownRole(message.role, place));
  const text = textAt(message, 'content') ?? '';
  const thinking = textAt(message, 'thinking');
  if (role === 'assistant') yield { ...common, kind: 'message', role, origin: 'model', text, thinking };
  else yield { ...common, kind: 'message', role: 'user', origin: role === 'user' ? 'person' : 'harness', text };
  for (const [i, use] of objectsAt(message, 'tool_uses').entries()) {
    const at = `${place}.tool_uses[${i}]`;
    const call_id = idAt(use, 'id') ?? at;
    yield {
      ...common,
      kind: 'call',
      place: at,
      call_id,
      tool: textAt(use, 'tool') ?? 'unknown',
      args: argsOf(use),
    } as RecordedEntry;
    const output = outputOf(use);
    if (output === undefined) continue;
    const is_error = /^(?:error|fail)/i.test(textAt(use, 'status') ?? '');
    yield { ...common, kind: 'result', place: at, call_id, text: output, is_error };
  }
}

async function* read(source: RecordingSource, onLoss: OnLoss): AsyncIterable<RecordedEntry> {
  for await (const { record, place } of readJsonLines(source.open(), onLoss)) {
    const session = idAt(record, 'session_id') ?? `${recordingId(source)}-${place}`;
    yield {
      kind: 'session',
      format: 'dataclaw',
      native_id: session,
      place,
      agent: textAt(record, 'source'),
      model: textAt(record, 'model'),
      cwd: textAt(record, 'project'),
      started_at: momentOf(record.start_time),
    };
    for (const [i, message] of objectsAt(record, 'messages').entries())
      yield* messageEntries(message, { session, place: `${place}.messages[${i}]`, onLoss });
  }
}

/**
 * Reads exports of DataClaw. Each line is one session of some agent, with anonymised paths and
 * names. Older exports have no results.
 */
export const dataclaw: Importer = { format: 'dataclaw', recognise, read };

import { isJsonObject, type JsonObject } from '../../../values/json-object.js';
import { idAt, momentOf, objectAt, objectsAt, textAt } from '../entries/fields.js';
import { type Importer, notAnObject, type OnItem, type OnLoss, type RecordingSource } from '../importer.js';
import { documentItems } from '../json/json-document.js';
import { headObject, headObjects, recordingHead, recordingId } from '../json/recording-head.js';
import type { EntryOf, RecordedEntry } from '../neutral-session.js';
import { ClineMessages, modelOf } from './messages.js';

/** Returns whether an object is a session's manifest, which has no messages. */
const isManifest = (head: JsonObject): boolean =>
  typeof head.session_id === 'string' && ('messages_path' in head || 'workspace_root' in head);

/** Matches the tags that Cline adds to the first prompt of a task. */
const PROMPTED = /^\s*<(?:task|user_message|feedback)>|<environment_details>/;

/**
 * Returns whether messages come from Cline. They have a time and the model's name, or the first one
 * has Cline's tags.
 */
function isHistory(messages: readonly JsonObject[]): boolean {
  if (messages.some((message) => 'modelInfo' in message && 'ts' in message)) return true;
  const [first] = messages;
  return (
    first?.role === 'user' && objectsAt(first, 'content').some((block) => PROMPTED.test(textAt(block, 'text') ?? ''))
  );
}

function recognise(source: RecordingSource): number {
  const { value, several } = recordingHead(source);
  if (several) return 0;
  if (Array.isArray(value)) return isHistory(headObjects(value)) ? 0.8 : 0;
  const head = headObject(source);
  if (head === undefined) return 0;
  if (isManifest(head)) return 0.95;
  const hasMessages =
    Array.isArray(head.messages) &&
    headObjects(head.messages).every(
      (message) => 'role' in message || Object.values(message).filter((value) => value !== undefined).length < 2,
    );
  if (
    hasMessages &&
    typeof head.sessionId === 'string' &&
    ('agent' in head || 'system_prompt' in head || 'updated_at' in head)
  )
    return 0.95;
  return hasMessages && isHistory(headObjects(head.messages)) ? 0.8 : 0;
}

function manifestSession(source: RecordingSource, head: JsonObject): EntryOf<'session'> {
  const origin = idAt(objectAt(objectAt(head, 'metadata'), 'fork'), 'forkedFromSessionId');
  return {
    kind: 'session',
    format: 'cline',
    native_id: idAt(head, 'session_id') ?? recordingId(source),
    place: 'manifest',
    agent: 'Cline',
    model: textAt(head, 'model'),
    cwd: textAt(head, 'cwd') ?? textAt(head, 'workspace_root'),
    started_at: momentOf(head.started_at),
    parent: origin === undefined ? undefined : { native_id: origin, relation: 'fork' as const },
  };
}

function sessionOf(source: RecordingSource, head: JsonObject | undefined): EntryOf<'session'> {
  const { value } = recordingHead(source);
  const messages = headObjects(Array.isArray(value) ? value : head?.messages);
  const model = messages.map(modelOf).find((id) => id !== undefined);
  const started_at = messages.map((message) => momentOf(message.ts)).find((ts) => ts !== undefined);
  const native_id = idAt(head, 'sessionId') ?? recordingId(source);
  const rest = { model, started_at, system_prompt: textAt(head, 'system_prompt') };
  return { kind: 'session', format: 'cline', native_id, place: 'header', agent: 'Cline', ...rest };
}

async function* read(source: RecordingSource, onLoss: OnLoss, onItem: OnItem): AsyncIterable<RecordedEntry> {
  const head = headObject(source);
  if (head !== undefined && isManifest(head)) {
    yield manifestSession(source, head);
    onLoss({
      reason: 'opaque-content',
      place: 'manifest',
      detail: 'it describes a session and holds none of its messages: import the file beside it',
    });
    return;
  }
  const session = sessionOf(source, head);
  yield session;
  const messages = new ClineMessages(session.native_id, onLoss);
  let prompt = session.system_prompt;
  for await (const { path, place, value } of documentItems(
    source.open(),
    { items: ['messages.*', '*', 'system_prompt'] },
    onLoss,
  )) {
    if (path[0] === 'system_prompt') {
      // The session entry has been yielded without this prompt, so the prompt becomes a message.
      if (prompt === undefined && typeof value === 'string') {
        prompt = value;
        yield {
          kind: 'message',
          session: session.native_id,
          place: 'system_prompt',
          role: 'system',
          origin: 'harness',
          text: value,
        };
      }
      continue;
    }
    const at = path.length === 1 ? `messages${place}` : place;
    if (isJsonObject(value)) {
      onItem(session.native_id);
      yield* messages.entries(value, at);
    } else onLoss(notAnObject(value, 'a message', at));
  }
  messages.finish();
}

/**
 * Reads Cline sessions (`session.messages.json`), also compacted ones. It reads tasks of Cline's
 * editor extension, too (`api_conversation_history.json`, a list). A manifest (`session.json`)
 * gives only a session entry. A file inside a prompt becomes the event `file-attached`.
 */
export const cline: Importer = { format: 'cline', recognise, read };

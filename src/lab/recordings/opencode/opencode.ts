import { isJsonObject, type JsonObject } from '../../../values/json-object.js';
import { idAt, momentOf, objectAt, textAt } from '../entries/fields.js';
import { type Importer, notAnObject, type OnItem, type OnLoss, type RecordingSource } from '../importer.js';
import { documentItems } from '../json/json-document.js';
import { headObject, recordingId } from '../json/recording-head.js';
import type { EntryOf, RecordedEntry } from '../neutral-session.js';
import { OpencodeMessages } from './messages.js';

function recognise(source: RecordingSource): number {
  const head = headObject(source);
  const info = objectAt(head, 'info');
  if (info === undefined || !(textAt(info, 'id') ?? '').startsWith('ses_')) return 0;
  return 'directory' in info || Array.isArray(head?.messages) ? 0.95 : 0;
}

function sessionOf(source: RecordingSource, info: JsonObject | undefined): EntryOf<'session'> {
  const parent = idAt(info, 'parentID');
  return {
    kind: 'session',
    format: 'opencode',
    native_id: idAt(info, 'id') ?? recordingId(source),
    place: 'info',
    agent: 'OpenCode',
    agent_version: textAt(info, 'version'),
    model: textAt(objectAt(info, 'model'), 'id'),
    cwd: textAt(info, 'directory'),
    started_at: momentOf(objectAt(info, 'time')?.created),
    parent: parent === undefined ? undefined : { native_id: parent, relation: 'subagent' as const },
  };
}

async function* read(source: RecordingSource, onLoss: OnLoss, onItem: OnItem): AsyncIterable<RecordedEntry> {
  const info = objectAt(headObject(source), 'info');
  const session = sessionOf(source, info);
  yield session;
  const title = textAt(info, 'title');
  // OpenCode's default title has only the session's start time.
  if (title !== undefined && !/^(?:New|Child) session - /.test(title))
    yield { kind: 'event', session: session.native_id, place: 'info', name: 'titled', text: title };
  const messages = new OpencodeMessages(session, onLoss);
  for await (const { place, value } of documentItems(source.open(), { items: ['messages.*'] }, onLoss)) {
    if (!isJsonObject(value)) {
      onLoss(notAnObject(value, 'a message', place));
      continue;
    }
    onItem(session.native_id);
    yield* messages.entries(value, place);
  }
  messages.finish();
}

/**
 * Reads sessions of OpenCode 1 in the form of `opencode export`. Sessions in OpenCode's database
 * are read in the same form.
 */
export const opencode: Importer = { format: 'opencode', recognise, read };

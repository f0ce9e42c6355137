import { isDeeperThan, isJsonObject, type JsonObject } from '../../../values/json-object.js';
import type { LossReason, OnLoss, RecordingSource } from '../importer.js';
import { MAX_LINE_BYTES } from './json-lines.js';
import { MAX_DEPTH, parseJson } from './json-text.js';

/** A record with its place in the recording. */
export interface PlacedRecord {
  readonly record: JsonObject;
  readonly place: string;
}

/** Describes the files of a recording that is a folder with one file per event. */
export interface EventFiles {
  /** Matches the name of an event file; the first group is the event's number. */
  readonly name: RegExp;
  /** Base names of other files that the folder may have. */
  readonly known: ReadonlySet<string>;
}

/**
 * Returns the object in a file of a folder. If the file has no object, returns undefined and
 * reports a loss.
 */
export async function memberRecord(
  source: RecordingSource,
  member: string,
  onLoss: OnLoss,
): Promise<JsonObject | undefined> {
  const lose = (reason: LossReason, detail: string): undefined => {
    onLoss({ reason, place: member, detail });
  };
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of source.open(member)) {
    size += chunk.length;
    if (size > MAX_LINE_BYTES) return lose('malformed-record', `over ${MAX_LINE_BYTES} bytes: left out`);
    chunks.push(chunk);
  }
  const text = Buffer.concat(chunks)
    .toString('utf8')
    .replace(/^\uFEFF/, '');
  const record = parseJson(text, Number.POSITIVE_INFINITY);
  if (isDeeperThan(record, MAX_DEPTH)) return lose('malformed-record', `nested over ${MAX_DEPTH} deep: left out`);
  if (isJsonObject(record)) return record;
  if (record === undefined && /^\s*\{/.test(text)) return lose('truncated-file', 'the file ends inside a record');
  return lose('malformed-record', text.trim() === '' ? 'the file is empty' : 'not a JSON object');
}

/** Returns the names of the event files in numerical order. */
function numberedMembers(source: RecordingSource, name: RegExp): readonly string[] {
  const found = (source.members ?? []).filter((member) => name.test(member));
  const numbered = found.map((member) => ({ member, number: Number(name.exec(member)?.[1] ?? 0) }));
  return numbered.sort((a, b) => a.number - b.number || (a.member < b.member ? -1 : 1)).map(({ member }) => member);
}

/**
 * Returns whether the event files below a folder are one conversation. They are if all are in the
 * folder itself, or all in its subfolder `events`.
 */
export function holdsOneConversation(source: RecordingSource, { name }: EventFiles): boolean {
  const folders = new Set(
    (source.members ?? []).filter((member) => name.test(member)).map((member) => member.replace(/[^\\/]*$/, '')),
  );
  const [only = '?'] = folders;
  return folders.size === 1 && /^(?:events[\\/])?$/.test(only);
}

/** Streams the events of a folder in order. Every unknown file is reported as a loss. */
export async function* folderEvents(
  source: RecordingSource,
  { name, known }: EventFiles,
  onLoss: OnLoss,
): AsyncIterable<PlacedRecord> {
  const events = numberedMembers(source, name);
  const taken = new Set(events);
  for (const member of source.members ?? []) {
    const base = member.replace(/^.*[\\/]/, '');
    if (!taken.has(member) && !known.has(base))
      onLoss({ reason: 'unknown-record', place: member, detail: 'no file of an event: left out' });
  }
  for (const member of events) {
    const record = await memberRecord(source, member, onLoss);
    if (record !== undefined) yield { record, place: member };
  }
}

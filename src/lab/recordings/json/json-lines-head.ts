import { StringDecoder } from 'node:string_decoder';
import type { RecordingSource } from '../importer.js';
import { isJsonObject, type JsonObject, parseJson, readTornObject } from './json-text.js';

const read = new WeakMap<Buffer, readonly JsonObject[]>();

/** The records that a file of JSON lines begins with, as far as its head goes; of the last, which may be torn, the fields that are complete. */
export function headRecords({ head }: RecordingSource): readonly JsonObject[] {
  const known = read.get(head);
  if (known !== undefined) return known;
  // The decoder leaves out a last character that is cut.
  const text = new StringDecoder('utf8').write(head).replace('\uFEFF', '');
  const records: JsonObject[] = [];
  for (const line of text.split('\n')) {
    const record = parseJson(line) ?? readTornObject(line);
    if (isJsonObject(record)) records.push(record);
  }
  read.set(head, records);
  return records;
}

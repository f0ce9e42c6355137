import { fileURLToPath } from 'node:url';
import { ImportCounter, LossList } from '../../src/lab/recordings/import-counts.js';
import { importRecording, recogniseRecording } from '../../src/lab/recordings/import-recording.js';
import type { Loss, RecordingSource } from '../../src/lab/recordings/importer.js';
import type { EntryKind, EntryOf, RecordedEntry } from '../../src/lab/recordings/neutral-session.js';
import { HEAD_BYTES, openRecording } from '../../src/lab/recordings/open-recording.js';

/** The result of an import. */
export interface Imported {
  readonly entries: readonly RecordedEntry[];
  readonly losses: readonly Loss[];
}

/** Returns the path of a small recording of the repository, such as `claude-code/coding.jsonl`. */
export function recordingPath(name: string): string {
  return fileURLToPath(new URL(`../recordings/${name}`, import.meta.url));
}

/** Returns a recording from bytes in memory, read in chunks of the given size. */
export function bytesSource(content: Buffer | string, chunk = 65_536): RecordingSource {
  const bytes = Buffer.from(content);
  return {
    name: 'in memory',
    size: bytes.length,
    head: bytes.subarray(0, HEAD_BYTES),
    members: undefined,
    async *open() {
      for (let from = 0; from < bytes.length; from += chunk) yield bytes.subarray(from, from + chunk);
    },
  };
}

/** Returns records as JSON lines. */
export function linesOf(...records: readonly object[]): string {
  return records.map((record) => `${JSON.stringify(record)}\n`).join('');
}

/** Imports a whole recording: a small one of the repository by name, or a source. */
export async function importAll(recording: string | RecordingSource): Promise<Imported> {
  const source = typeof recording === 'string' ? await openRecording(recordingPath(recording)) : recording;
  const losses: Loss[] = [];
  const entries: RecordedEntry[] = [];
  for await (const entry of importRecording(source, { onLoss: (loss) => losses.push(loss) })) entries.push(entry);
  return { entries, losses };
}

/** Describes a recording: counts by session and in total, and its losses. */
export async function describeSource(source: RecordingSource) {
  const { format } = recogniseRecording(source);
  const counter = new ImportCounter();
  const losses = new LossList();
  const heads: EntryOf<'session'>[] = [];
  const options = { onLoss: (loss: Loss) => losses.add(loss), onItem: (session: string) => counter.addItem(session) };
  for await (const entry of importRecording(source, options)) {
    counter.add(entry);
    if (entry.kind === 'session') heads.push(entry);
  }
  const sessions = heads.map((head) => ({ ...head, counts: counter.session(head.native_id) }));
  return {
    format,
    sessions,
    counts: { ...counter.total, sessions: heads.length, losses: losses.by_reason },
    losses: losses.each,
  };
}

/** Describes the recording at a path. */
export async function describeRecording(path: string) {
  return describeSource(await openRecording(path));
}

/** Returns the entries of one kind, optionally of one session. */
export function entriesOf<K extends EntryKind>(
  { entries }: Imported,
  kind: K,
  session?: string,
): readonly EntryOf<K>[] {
  return entries.filter(
    (entry): entry is EntryOf<K> =>
      entry.kind === kind &&
      (session === undefined || (entry.kind === 'session' ? entry.native_id : entry.session) === session),
  );
}

/** Returns losses as short texts such as `orphan-result line 55`. */
export function lossesOf({ losses }: Imported): readonly string[] {
  return losses.map(({ reason, place }) => `${reason} ${place}`);
}

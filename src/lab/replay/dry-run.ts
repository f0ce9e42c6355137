import { basename } from 'node:path';
import { defined } from '../../values/defined.js';
import { LossList } from '../recordings/import-counts.js';
import { type ImportOptions, importRecording } from '../recordings/import-recording.js';
import { openRecording } from '../recordings/open-recording.js';
import { recordingHash } from './replay-identity.js';
import { ReplayTally } from './replay-tally.js';

/** What a recording holds, without replaying it. */
interface RecordingSummary {
  readonly report: 'recording';
  readonly recording: { readonly name: string; readonly sha256: string; readonly bytes: number; readonly formats: readonly string[] };
  readonly sessions: number;
  /** Items of the transcripts as the format counts them. */
  readonly items: number;
  readonly messages: Readonly<Record<string, number>>;
  readonly calls: number;
  readonly results: number;
  readonly compactions: number;
  readonly events: Readonly<Record<string, number>>;
  readonly tools: Readonly<Record<string, number>>;
  /** Whether all of it was read. */
  readonly complete: boolean;
  readonly losses: { readonly total: number; readonly by_reason: LossList['byReason']; readonly each: LossList['each'] };
}

/** How a recording is looked through. */
interface SummaryOptions {
  readonly signal?: AbortSignal;
  /** Told how far the reading is, bytes. */
  readonly onProgress?: (bytesDone: number, total: number) => void;
}

/**
 * Imports a recording and counts what is in it; nothing is written anywhere.
 *
 * @throws {RecordingError} – for what is no recording
 */
export async function summariseRecording(path: string, { signal, onProgress }: SummaryOptions = {}): Promise<RecordingSummary> {
  const source = await openRecording(path);
  const losses = new LossList();
  const tally = new ReplayTally();
  let sessions = 0;
  const options: ImportOptions = {
    onLoss: (loss) => losses.add(loss),
    onItem: (session) => tally.item(session),
    ...defined({ onProgress, signal }),
  };
  for await (const entry of importRecording(source, options)) {
    tally.take(entry);
    if (entry.kind === 'session') sessions += 1;
  }
  return {
    report: 'recording',
    recording: { name: basename(path), sha256: await recordingHash(source, signal), bytes: source.size, formats: [...tally.formats] },
    sessions,
    items: tally.counted.items,
    messages: tally.messages,
    calls: tally.calls,
    results: tally.results,
    compactions: tally.compactions,
    events: tally.events,
    tools: tally.tools,
    complete: (losses.byReason['truncated-file'] ?? 0) === 0,
    losses: { total: losses.total, by_reason: losses.byReason, each: losses.each },
  };
}

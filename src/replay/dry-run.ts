import { basename } from 'node:path';
import { importRecording } from '../recordings/import-recording.js';
import { openRecording } from '../recordings/open-recording.js';
import { LossList } from './make-report.js';
import { recordingHash } from './replay-identity.js';
import { ReplayTally } from './replay-tally.js';

/** What a recording holds, without replaying it. */
export interface RecordingSummary {
  readonly report: 'recording';
  readonly recording: { readonly name: string; readonly sha256: string; readonly bytes: number; readonly formats: readonly string[] };
  readonly sessions: number;
  readonly messages: Readonly<Record<string, number>>;
  readonly calls: number;
  readonly results: number;
  readonly compactions: number;
  readonly events: Readonly<Record<string, number>>;
  readonly tools: Readonly<Record<string, number>>;
  readonly losses: { readonly total: number; readonly by_reason: LossList['byReason']; readonly each: LossList['each'] };
}

/** Imports a recording and counts what is in it; nothing is written anywhere. Throws RecordingError. */
export async function summariseRecording(path: string, signal?: AbortSignal): Promise<RecordingSummary> {
  const source = await openRecording(path);
  const losses = new LossList();
  const tally = new ReplayTally();
  let sessions = 0;
  const options = { onLoss: (loss: Parameters<LossList['add']>[0]) => losses.add(loss), ...(signal === undefined ? {} : { signal }) };
  for await (const entry of importRecording(source, options)) {
    tally.take(entry);
    if (entry.kind === 'session') sessions += 1;
  }
  return {
    report: 'recording',
    recording: { name: basename(path), sha256: await recordingHash(source, signal), bytes: source.size, formats: [...tally.formats] },
    sessions,
    messages: tally.messages,
    calls: tally.calls,
    results: tally.results,
    compactions: tally.compactions,
    events: tally.events,
    tools: tally.tools,
    losses: { total: losses.total, by_reason: losses.byReason, each: losses.each },
  };
}

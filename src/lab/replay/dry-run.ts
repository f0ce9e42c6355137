import { basename } from 'node:path';
import { defined } from '../../values/defined.js';
import { ImportCounter, LossList, type SessionCounts } from '../recordings/import-counts.js';
import { type ImportOptions, importRecording } from '../recordings/import-recording.js';
import { openRecording } from '../recordings/open-recording.js';
import { recordingHash } from './replay-identity.js';

/** The contents of a recording, counted without a replay. */
interface RecordingSummary
  extends Pick<SessionCounts, 'items' | 'messages' | 'calls' | 'results' | 'compactions' | 'events' | 'tools'> {
  readonly report: 'recording';
  readonly recording: {
    readonly name: string;
    readonly sha256: string;
    readonly bytes: number;
    readonly formats: readonly string[];
  };
  readonly sessions: number;
  /** Whether the whole recording was read. */
  readonly complete: boolean;
  readonly losses: LossList['report'];
}

/**
 * Imports a recording and counts its contents. Writes nothing.
 *
 * @throws {RecordingError} – the file is not a recording
 */
export async function summariseRecording(
  path: string,
  onProgress: NonNullable<ImportOptions['onProgress']>,
): Promise<RecordingSummary> {
  const source = await openRecording(path);
  const losses = new LossList();
  const counter = new ImportCounter();
  const options: ImportOptions = {
    onLoss: (loss) => losses.add(loss),
    onItem: (session) => counter.addItem(session),
    onProgress,
  };
  for await (const entry of importRecording(source, options)) counter.add(entry);
  const { messages, calls, results, compactions, events, tools } = counter.total;
  return {
    report: 'recording',
    recording: {
      name: basename(path),
      sha256: await recordingHash(source),
      bytes: source.size,
      formats: counter.formats,
    },
    sessions: counter.counted.length,
    items: counter.counted.reduce((sum, { items }) => sum + items, 0),
    messages,
    calls,
    results,
    compactions,
    events,
    tools,
    complete: losses.complete,
    losses: losses.report,
  };
}

/** Returns the agent and the folder of a recording's first session, as far as it names them. */
export async function recordedPlace(path: string): Promise<{ readonly agent?: string; readonly folder?: string }> {
  for await (const entry of importRecording(await openRecording(path), { onLoss: () => undefined }))
    if (entry.kind === 'session') return defined({ agent: entry.agent, folder: entry.cwd });
  return {};
}

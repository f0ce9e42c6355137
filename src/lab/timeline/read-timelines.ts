import { defined } from '../../values/defined.js';
import { LossList } from '../recordings/import-counts.js';
import { importRecording } from '../recordings/import-recording.js';
import { openRecording } from '../recordings/open-recording.js';
import { FileTree, UndoTexts } from '../replay/files/file-tree.js';
import { recordingHash } from '../replay/replay-identity.js';
import type { Timeline } from './timeline.js';
import { TimelineBuilder } from './timeline-builder.js';

/** The sessions of one recording as timelines. */
export interface RecordedTimelines {
  /** SHA-256 of the recording's bytes. */
  readonly sha256: string;
  readonly timelines: readonly Timeline[];
  readonly losses: Pick<LossList, 'total' | 'by_reason'>;
  /** Whether the whole recording was read. */
  readonly complete: boolean;
}

/**
 * Reads a recording into memory as one timeline for each session, in order. Sub-agents are sessions
 * too.
 * @throws {RecordingError} – the recording cannot be read
 * @throws the reason of an aborted `signal`
 */
export async function readTimelines(path: string, signal?: AbortSignal): Promise<RecordedTimelines> {
  const source = await openRecording(path);
  const sha256 = await recordingHash(source, signal);
  const losses = new LossList();
  const builders = new Map<string, TimelineBuilder>();
  const files = { tree: new FileTree(), undo: new UndoTexts() };
  for await (const entry of importRecording(source, { onLoss: (loss) => losses.add(loss), ...defined({ signal }) })) {
    if (entry.kind === 'session') builders.set(entry.native_id, new TimelineBuilder(entry, files));
    else builders.get(entry.session)?.take(entry);
  }
  const timelines = [...builders.values()].map((builder) => builder.finish(sha256));
  return { sha256, timelines, losses: { total: losses.total, by_reason: losses.by_reason }, complete: losses.complete };
}

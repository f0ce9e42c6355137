import { readTimelines } from '../../src/lab/timeline/read-timelines.js';
import type { Timeline } from '../../src/lab/timeline/timeline.js';
import { type RecordingLines, recordingFolder } from './replays.js';

/** Returns the timelines of the sessions in a recording that a test wrote. */
export async function timelinesOf(text: string): Promise<readonly Timeline[]> {
  const recordings = await recordingFolder();
  try {
    return (await readTimelines(await recordings.write('recording.jsonl', text))).timelines;
  } finally {
    await recordings.remove();
  }
}

/** Returns the timeline of a recording of one session. */
export async function timelineOf(lines: RecordingLines): Promise<Timeline> {
  const [timeline] = await timelinesOf(lines.text);
  if (timeline === undefined) throw new Error('the recording holds no session');
  return timeline;
}

/** A database for policies that write nothing and never open one. */
export async function noDatabase(): Promise<never> {
  throw new Error('unexpected request for a database');
}

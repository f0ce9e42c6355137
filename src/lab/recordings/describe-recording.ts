import { ImportCounter, type ImportCounts, type SessionCounts } from './import-counts.js';
import { type ImportOptions, importRecording, recogniseRecording } from './import-recording.js';
import type { Loss, RecordingSource } from './importer.js';
import type { EntryOf, RecordingFormat } from './neutral-session.js';
import { openRecording } from './open-recording.js';

/** How many losses of each reason are told one by one. */
const SHOWN_LOSSES = 20;

/** What a recording holds, without its content. */
export interface RecordingDescription {
  readonly format: RecordingFormat;
  readonly bytes: number;
  readonly sessions: readonly (Omit<EntryOf<'session'>, 'system_prompt'> & { readonly counts: SessionCounts })[];
  readonly counts: ImportCounts;
  /** The first of each reason; how many there are is in `counts.losses`. */
  readonly losses: readonly Loss[];
}

/** Keeps the first losses of each reason. */
export function createLossList(shown = SHOWN_LOSSES): { readonly add: (loss: Loss) => void; readonly losses: readonly Loss[] } {
  const losses: Loss[] = [];
  const counts = new Map<Loss['reason'], number>();
  return {
    losses,
    add(loss) {
      const count = (counts.get(loss.reason) ?? 0) + 1;
      counts.set(loss.reason, count);
      if (count <= shown) losses.push(loss);
    },
  };
}

/** Reads a whole recording and says what it holds. Throws `RecordingError`, and the reason of an aborted `signal`. */
export async function describeSource(source: RecordingSource, options: Partial<ImportOptions> = {}): Promise<RecordingDescription> {
  const { format } = recogniseRecording(source);
  const counter = new ImportCounter();
  const list = createLossList();
  const sessions: Omit<EntryOf<'session'>, 'system_prompt'>[] = [];
  const entries = importRecording(source, {
    ...options,
    onItem(session) {
      counter.addItem(session);
      options.onItem?.(session);
    },
    onLoss(loss) {
      counter.addLoss(loss);
      list.add(loss);
      options.onLoss?.(loss);
    },
  });
  for await (const entry of entries) {
    counter.add(entry);
    if (entry.kind !== 'session') continue;
    const { system_prompt: _, ...about } = entry;
    sessions.push(about);
  }
  const counts = counter.total();
  return {
    format,
    bytes: source.size,
    sessions: sessions.map((session) => ({ ...session, counts: counter.session(session.native_id) ?? counts })),
    counts,
    losses: list.losses,
  };
}

/** The same of the recording at a path: a file, or a folder with one file for each event. */
export async function describeRecording(path: string, options: Partial<ImportOptions> = {}): Promise<RecordingDescription> {
  return describeSource(await openRecording(path), options);
}

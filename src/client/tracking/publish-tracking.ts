import { TrackerReportFile, type TrackerState } from '../../process/process-reports.js';
import { defined } from '../../values/defined.js';
import { TIME_LIMITS } from '../time-limits.js';
import type { IndexEnvironment } from './index-sources.js';
import { SourceTracking, type TrackingOptions, type TrackingStatus } from './tracking.js';

/** How many unreadable sources are named. */
const NAMED = 20;

const stateOf = ({ unreadable, ...counts }: TrackingStatus): TrackerState => ({
  ...counts,
  unreadable: unreadable.slice(0, NAMED).map(({ source, reason }) => ({ path: source.path, reason })),
});

/**
 * Publishes what this process tracks for others (`palimpsest doctor`), a moment after it changed; nothing is written before something is tracked.
 * Keeps no process alive, and fails silently: a report that cannot be written must not hinder the work.
 */
export class TrackingPublisher {
  readonly #file: TrackerReportFile;
  readonly #status: () => TrackingStatus;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #published: string | undefined;
  #closed = false;

  constructor(file: TrackerReportFile, status: () => TrackingStatus) {
    this.#file = file;
    this.#status = status;
  }

  /** Says that the status may have changed. */
  touch(): void {
    if (this.#closed || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#writing = this.#writing.then(() => this.#write()).catch(() => undefined);
    }, TIME_LIMITS.publishTracking);
    this.#timer.unref();
  }

  /** Takes the report away. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#writing;
    if (this.#published !== undefined) await this.#file.remove().catch(() => undefined);
  }

  async #write(): Promise<void> {
    if (this.#closed) return;
    const state = stateOf(this.#status());
    const text = JSON.stringify(state);
    if (text === this.#published) return;
    this.#published = text;
    await this.#file.write(state);
  }
}

/** Whether and how a client tracks files, and where it publishes that. */
export interface ClientTracking {
  /** Where absent, files are tracked if there is a data folder. */
  readonly track?: boolean | Omit<TrackingOptions, 'onNotice'> | undefined;
  readonly dataDir?: string | undefined;
  /** What this process is called in the report. */
  readonly what: string;
  readonly onNotice?: ((line: string) => void) | undefined;
}

/** Makes the tracking of a client, which publishes its status where there is a data folder; empty for a client that tracks nothing. */
export function openTracking(
  environment: IndexEnvironment,
  { dataDir, track = dataDir !== undefined, what, onNotice }: ClientTracking,
): { readonly sources?: SourceTracking; readonly publisher?: TrackingPublisher } {
  if (track === false) return {};
  const options = { ...(track === true ? {} : track), ...defined({ onNotice }) };
  if (dataDir === undefined) return { sources: new SourceTracking(environment, options) };
  const publisher = new TrackingPublisher(new TrackerReportFile(dataDir, what), () => sources.status);
  const sources = new SourceTracking(environment, { ...options, onStatus: () => publisher.touch() });
  return { sources, publisher };
}

import { TrackerReportFile, type TrackerState } from '../../process/process-reports.js';
import { defined } from '../../values/defined.js';
import { TIME_LIMITS } from '../time-limits.js';
import type { IndexEnvironment } from './index-sources.js';
import { SourceTracking, type TrackingOptions, type TrackingStatus } from './tracking.js';

/** Maximum number of unreadable sources that are named. */
const NAMED = 20;

const stateOf = ({ unreadable, ...counts }: TrackingStatus): TrackerState => ({
  ...counts,
  unreadable: unreadable.slice(0, NAMED).map(({ source, reason }) => ({ path: source.path, reason })),
});

/**
 * Publishes this process's tracking status for `palimpsest doctor`, shortly after each change.
 * Writes nothing before the first tracked source. Keeps no process alive, and ignores write
 * failures, which must not block the work.
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

  /** Reports that the status may have changed. */
  touch(): void {
    if (this.#closed || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#writing = this.#writing.then(() => this.#write()).catch(() => undefined);
    }, TIME_LIMITS.publishTracking);
    this.#timer.unref();
  }

  /** Removes the report. Idempotent. */
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

/** Whether and how a client tracks files, and where it publishes its status. */
export interface ClientTracking {
  /** Default: track files if there is a data folder. */
  readonly track?: boolean | Omit<TrackingOptions, 'onNotice'> | undefined;
  readonly dataDir?: string | undefined;
  /** This process's name in the report. */
  readonly what: string;
  readonly onNotice?: ((line: string) => void) | undefined;
}

/**
 * Creates the tracking of a client. With a data folder, its status is published. Returns nothing
 * for a client without tracking.
 */
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

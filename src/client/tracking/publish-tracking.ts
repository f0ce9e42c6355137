import type { TrackerReportFile, TrackerState } from '../../process/process-reports.js';
import { TIME_LIMITS } from '../time-limits.js';
import type { TrackingStatus } from './tracking.js';

/** How many unreadable sources are named. */
const NAMED = 20;

const stateOf = ({ unreadable, ...counts }: TrackingStatus): TrackerState => ({
  ...counts,
  unreadable: unreadable.slice(0, NAMED).map(({ source, reason }) => ({ path: source.path, reason })),
});

/**
 * Tells other processes what this one tracks (`palimpsest doctor`), a moment after it changed; nothing is written before there is something to tell.
 * Keeps no process alive, and fails silently: a report that cannot be written must not hinder the work.
 */
export class TrackingPublisher {
  readonly #file: TrackerReportFile;
  readonly #status: () => TrackingStatus;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #told: string | undefined;
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
    if (this.#told !== undefined) await this.#file.remove().catch(() => undefined);
  }

  async #write(): Promise<void> {
    if (this.#closed) return;
    const state = stateOf(this.#status());
    const text = JSON.stringify(state);
    if (text === this.#told) return;
    this.#told = text;
    await this.#file.write(state);
  }
}

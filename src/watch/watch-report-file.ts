import { type WatchReport, watchReportFile } from '../host/watch-report.js';
import { replaceFile } from '../process/owned-file.js';

/** How often the report is written at most, milliseconds. */
const WRITE_MS = 500;

type Facts = Omit<WatchReport, 'version' | 'pid'>;

/** Writes the report of this process soon after each change, so that other processes can show it. */
export class WatchReportFile {
  readonly #dataDir: string;
  readonly #facts: () => Facts;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(dataDir: string, facts: () => Facts) {
    this.#dataDir = dataDir;
    this.#facts = facts;
  }

  /** Writes the report soon. */
  touch(): void {
    this.#timer ??= setTimeout(() => void this.write(), WRITE_MS).unref();
  }

  /** Writes the report now. A report that cannot be written is left out. */
  write(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const text = JSON.stringify({ version: 1, pid: process.pid, ...this.#facts() });
    this.#writing = this.#writing
      .then(() => replaceFile(watchReportFile(this.#dataDir), `${text}\n`))
      .catch(() => undefined);
    return this.#writing;
  }
}

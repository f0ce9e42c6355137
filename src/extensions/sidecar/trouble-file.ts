import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '../../process/owned-file.js';
import { identifySelf } from '../../process/process-identity.js';
import type { LoopTroubleFile } from '../../process/process-reports.js';

const KEPT_MS = 7 * 24 * 3_600_000;

/**
 * The file in which a harness's process reports trouble to `palimpsest doctor`. It outlives the
 * process, and doctor shows it for an hour. After a week, the first report of any other process
 * removes it.
 */
export class TroubleFile {
  readonly #folder: string;
  readonly #what: string;
  #writing: Promise<void> = Promise.resolve();
  #begun = false;

  constructor(dataDir: string, what: string) {
    this.#folder = join(dataDir, 'loops');
    this.#what = what;
  }

  /** Replaces the report. Never rejects, because reporting trouble must not cause more. */
  write(trouble: Omit<LoopTroubleFile, 'what' | 'pid' | 'started'>): Promise<void> {
    this.#writing = this.#writing
      .then(async () => this.#replace({ what: this.#what, ...(await identifySelf()), ...trouble }))
      .catch(() => undefined);
    return this.#writing;
  }

  async #replace(trouble: LoopTroubleFile): Promise<void> {
    const path = join(this.#folder, `${this.#what}-${process.pid}.json`);
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    if (!this.#begun) await this.#forgetOld();
    this.#begun = true;
    await replaceFile(path, JSON.stringify(trouble));
  }

  async #forgetOld(): Promise<void> {
    for (const name of await readdir(this.#folder)) {
      const path = join(this.#folder, name);
      if (Date.now() - (await stat(path)).mtimeMs > KEPT_MS) await rm(path, { force: true });
    }
  }
}

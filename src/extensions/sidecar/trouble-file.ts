import { mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { LoopTrouble } from '../../process/process-reports.js';

const KEPT_MS = 7 * 24 * 3_600_000;

/** What is told in one file for `palimpsest doctor`; it stays after the process has ended, and goes with the first of another one a week later. */
export class TroubleFile {
  readonly #folder: string;
  readonly #what: string;
  #writing: Promise<void> = Promise.resolve();
  #begun = false;

  constructor(dataDir: string, what: string) {
    this.#folder = join(dataDir, 'loops');
    this.#what = what;
  }

  /** Replaces what was told before. Never rejects: telling of trouble must not make more of it. */
  write(trouble: Omit<LoopTrouble, 'what' | 'pid'>): Promise<void> {
    const whole: LoopTrouble = { what: this.#what, pid: process.pid, ...trouble };
    this.#writing = this.#writing.then(() => this.#replace(whole)).catch(() => undefined);
    return this.#writing;
  }

  async #replace(trouble: LoopTrouble): Promise<void> {
    const path = join(this.#folder, `${this.#what}-${process.pid}.json`);
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    if (!this.#begun) await this.#forgetOld();
    this.#begun = true;
    await writeFile(`${path}.new`, JSON.stringify(trouble), { mode: 0o600 });
    await rename(`${path}.new`, path);
  }

  async #forgetOld(): Promise<void> {
    for (const name of await readdir(this.#folder)) {
      const path = join(this.#folder, name);
      if (Date.now() - (await stat(path)).mtimeMs > KEPT_MS) await rm(path, { force: true });
    }
  }
}

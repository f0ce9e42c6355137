import { execFile } from 'node:child_process';
import { readFile, stat } from 'node:fs/promises';
import { release } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { BareHome } from './bare-home.js';
import { OWN, tarball } from './packages.js';

/** Collects the times of a suite. `print` writes them with the versions they belong to. */
export class Times {
  readonly #lines: string[] = [];

  /** Measures work by the wall clock. */
  async of<T>(what: string, work: () => Promise<T>): Promise<T> {
    const from = performance.now();
    const result = await work();
    this.add(what, performance.now() - from);
    return result;
  }

  /** Adds a wall time in milliseconds. */
  add(what: string, ms: number): void {
    this.#lines.push(`  ${what}: ${(ms / 1_000).toFixed(1)} s`);
  }

  async print(user: BareHome): Promise<void> {
    const { version } = JSON.parse(
      await readFile(join(user.prefix, 'lib/node_modules/palimpsest/package.json'), 'utf8'),
    );
    const npm = (await promisify(execFile)(process.execPath, [user.npmCli, '--version'])).stdout.trim();
    const sizes = await Promise.all([tarball(), tarball(OWN)].map(async (path) => (await stat(path)).size));
    const [program, node] = sizes.map((bytes) => `${(bytes / 1e6).toFixed(1)} MB`);
    const head =
      `palimpsest ${version} (${program}) with its node for ${OWN} (${node}), Node ${process.version}, ` +
      `npm ${npm}, kernel ${release()}`;
    console.log([head, ...this.#lines].join('\n'));
  }
}

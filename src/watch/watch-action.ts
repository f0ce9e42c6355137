import { printText, reportFailure, writeJson } from '../cli/output.js';
import { readSettings } from '../host/settings.js';
import type { Companion } from './followed.js';
import { stopWatch, watchOwner } from './watch-lock.js';

/** Flags of `palimpsest watch`. */
export interface WatchFlags {
  readonly data?: string;
  readonly background?: boolean;
  readonly status?: boolean;
  readonly stop?: boolean;
  readonly json?: boolean;
}

/** Runs `palimpsest watch`. */
export async function watchAction(flags: WatchFlags, _companions: readonly Companion[]): Promise<void> {
  await reportFailure(flags, async () => {
    const { dataDir } = readSettings(process.env, flags).node;
    if (flags.stop === true) {
      const stopped = await stopWatch(dataDir);
      if (flags.json === true) return writeJson({ stopped });
      return printText(stopped ? 'palimpsest watch has ended.' : 'palimpsest watch does not run.');
    }
    const owner = await watchOwner(dataDir);
    if (flags.json === true) return writeJson({ running: owner !== undefined });
    return printText(owner === undefined ? 'palimpsest watch does not run.' : `Process ${owner.pid} runs.`);
  });
}

import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';

const youngBytes = (): number =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_size ?? 0;

/**
 * Keeps V8's young generation at about the given size. During start-up all objects survive, so V8
 * would grow it to the maximum of 32 MiB. `--max-semi-space-size` has no effect on a running
 * process, but V8 reads the growth factor at each collection. So the size is checked after each
 * collection. This does not keep the process alive.
 */
export function limitYoungGeneration(bytes: number): void {
  let factor = 2;
  const collections = new PerformanceObserver(() => {
    // V8 shrinks the young generation when the program is idle.
    const wanted = youngBytes() < bytes ? 2 : 1;
    if (wanted !== factor) setFlagsFromString(`--semi-space-growth-factor=${wanted}`);
    factor = wanted;
  });
  collections.observe({ entryTypes: ['gc'] });
}

/**
 * How much the old generation may grow before a collection, in percent of the bytes in use. V8's
 * default is up to 300.
 */
const OLD_GROWTH_PERCENT = 25;

/**
 * Keeps the old generation from growing to several times the bytes in use. Promoted garbage, such
 * as objects that waited for the database, would otherwise stay for long.
 */
export function collectOldGarbageSoon(): void {
  setFlagsFromString(`--heap-growing-percent=${OLD_GROWTH_PERCENT}`);
}

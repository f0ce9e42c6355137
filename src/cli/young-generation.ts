import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';

const youngBytes = (): number =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_size ?? 0;

/**
 * Stops the young generation of the heap from growing beyond a size. During start-up every object
 * survives, so V8 grows it to its bound of 32 MiB. A running process cannot set
 * `--max-semi-space-size`, but V8 reads the growth factor at each collection. This function
 * therefore checks the size after each collection. Does not keep the process alive.
 */
export function limitYoungGeneration(bytes: number): void {
  let factor = 2;
  const collections = new PerformanceObserver(() => {
    // V8 shrinks it again when the program is idle.
    const wanted = youngBytes() < bytes ? 2 : 1;
    if (wanted !== factor) setFlagsFromString(`--semi-space-growth-factor=${wanted}`);
    factor = wanted;
  });
  collections.observe({ entryTypes: ['gc'] });
}

/**
 * How much the old generation grows before it is collected, percent of the bytes in use. V8's own
 * value is up to 300.
 */
const OLD_GROWTH_PERCENT = 25;

/**
 * Keeps promoted garbage, such as objects that wait for the database, from growing to several times
 * the bytes in use.
 */
export function collectOldGarbageSoon(): void {
  setFlagsFromString(`--heap-growing-percent=${OLD_GROWTH_PERCENT}`);
}

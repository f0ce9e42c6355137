import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';

const youngBytes = (): number => getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_size ?? 0;

/**
 * Keeps the part of the heap where objects are new from growing further while it has so many bytes. While a program loads everything survives, from
 * which V8 concludes that it needs the 32 MiB that are its bound. A running process cannot be given `--max-semi-space-size`, but how far to grow the
 * space V8 asks anew at each collection; so its size is checked after each. Keeps no process alive.
 */
export function limitYoungGeneration(bytes: number): void {
  let factor = 2;
  const collections = new PerformanceObserver(() => {
    // V8 shrinks it again when little is done.
    const wanted = youngBytes() < bytes ? 2 : 1;
    if (wanted !== factor) setFlagsFromString(`--semi-space-growth-factor=${wanted}`);
    factor = wanted;
  });
  collections.observe({ entryTypes: ['gc'] });
}

/** How much the old part of the heap grows before it is collected again, percent of what is in use. V8's own measure is up to 300. */
const OLD_GROWTH_PERCENT = 25;

/** Keeps garbage that outlives the young part of the heap, as what waits for a database does, from being several times what is in use. */
export function collectOldGarbageSoon(): void {
  setFlagsFromString(`--heap-growing-percent=${OLD_GROWTH_PERCENT}`);
}

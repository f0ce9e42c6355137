/**
 * The options of an `LRUCache` that holds at most this many entries. The library's own `max` allocates room for all of them when the cache is made: tens of
 * milliseconds of every start for a cache of 100,000, which mostly stays small.
 */
export function counted(most: number): { readonly maxSize: number; readonly sizeCalculation: () => number } {
  return { maxSize: most, sizeCalculation: () => 1 };
}

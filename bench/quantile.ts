/**
 * Returns the value below which a share of a sample lies, by the nearest rank; NaN for an empty
 * sample.
 */
export function quantile(sample: readonly number[], share: number): number {
  const sorted = [...sample].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

/** Returns the median by the nearest rank. */
export const median = (sample: readonly number[]): number => quantile(sample, 0.5);

/**
 * Returns names with one common hash in Java, and so in the maps of the database: sixteen pairs of
 * `Aa` or `BB`.
 */
export function namesOfOneHash(count: number): readonly string[] {
  return Array.from({ length: count }, (_, i) =>
    Array.from({ length: 16 }, (_, bit) => ((i >> bit) & 1 ? 'Aa' : 'BB')).join(''),
  );
}

/** Returns a nested list of `levels` levels. */
export function nested(levels: number): readonly unknown[] {
  let value: readonly unknown[] = [];
  for (let i = 1; i < levels; i++) value = [value];
  return value;
}

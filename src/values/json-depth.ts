/**
 * Returns whether a JSON value nests more than `levels` deep; a list in a list counts as two.
 * Handles any depth.
 */
export function isDeeperThan(value: unknown, levels: number): boolean {
  const waiting: { readonly value: unknown; readonly depth: number }[] = [{ value, depth: 1 }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (next.value === null || typeof next.value !== 'object') continue;
    if (next.depth > levels) return true;
    for (const member of Object.values(next.value)) {
      if (member !== null && typeof member === 'object') waiting.push({ value: member, depth: next.depth + 1 });
    }
  }
  return false;
}

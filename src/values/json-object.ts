/** A JSON object whose fields are not validated yet. */
export type JsonObject = { readonly [key: string]: unknown };

/** Returns whether a value is a JSON object, not a list and not null. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

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

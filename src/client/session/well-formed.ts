import type { Json } from '../../objects/canonical-json.js';

/** Data from outside with every text made well-formed, so that it can be stored exactly (decision G8): half a surrogate pair becomes U+FFFD. */
export function wellFormed(value: Json): Json {
  if (typeof value === 'string') return value.toWellFormed();
  if (Array.isArray(value)) return value.map(wellFormed);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key.toWellFormed(), wellFormed(member as Json)]));
}

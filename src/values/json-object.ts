/** A JSON object whose fields are not validated yet. */
export type JsonObject = { readonly [key: string]: unknown };

/** Returns whether a value is a JSON object, not a list and not null. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

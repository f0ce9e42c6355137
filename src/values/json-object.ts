/** A JSON object whose fields are not checked yet. */
export type JsonObject = { readonly [key: string]: unknown };

/** Whether a value is a JSON object: neither a list nor null. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A JSON object whose members are not validated. */
export type Json = Readonly<Record<string, unknown>>;

/** Returns a JSON object, or an empty object for any other value. */
export const asObject = (value: unknown): Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {};

/** Returns the elements of a JSON list as objects, or an empty list for any other value. */
export const asList = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.map(asObject) : []);

/** Parses a JSON object. Returns an empty object for any other text. */
export function parsedObject(text: string | undefined): Json {
  try {
    return asObject(JSON.parse(text ?? ''));
  } catch {
    return {};
  }
}

/** Parses a request's body. Returns an empty object if it is not a JSON object. */
export const parsedBody = (body: Buffer): Json => parsedObject(body.toString('utf8'));

/** An object of JSON whose members nothing has checked. */
export type Json = Readonly<Record<string, unknown>>;

/** Returns an object of JSON, or an empty one for any other value. */
export const asObject = (value: unknown): Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {};

/** Returns the objects of a list of JSON; none for any other value. */
export const asList = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.map(asObject) : []);

/** Parses an object of JSON. Returns an empty one for any other text. */
export function parsedObject(text: string | undefined): Json {
  try {
    return asObject(JSON.parse(text ?? ''));
  } catch {
    return {};
  }
}

/** Parses a request's body. Returns an empty object if it is not an object of JSON. */
export const parsedBody = (body: Buffer): Json => parsedObject(body.toString('utf8'));

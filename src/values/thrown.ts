/** The message of whatever was thrown, by its `message` where it has one. Not by `instanceof`: an error may come from another realm than this module. */
export function messageOf(thrown: unknown): string {
  return typeof thrown === 'object' && thrown !== null && 'message' in thrown ? String(thrown.message) : String(thrown);
}

/** The code of whatever was thrown, of a {@link CodedError} or of the system (`ENOENT`); undefined where it has none. */
export function codeOf(thrown: unknown): string | undefined {
  return typeof thrown === 'object' && thrown !== null && 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : undefined;
}

/** Whatever was thrown as an error. */
export function errorOf(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

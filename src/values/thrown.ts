/**
 * Returns the message of a thrown value, from its `message` if it has one. Does not use
 * `instanceof`, because the error may come from another realm.
 */
export function messageOf(thrown: unknown): string {
  return typeof thrown === 'object' && thrown !== null && 'message' in thrown ? String(thrown.message) : String(thrown);
}

/**
 * Returns the code of a thrown {@link CodedError} or system error (`ENOENT`); undefined if it has
 * none.
 */
export function codeOf(thrown: unknown): string | undefined {
  return typeof thrown === 'object' && thrown !== null && 'code' in thrown && typeof thrown.code === 'string'
    ? thrown.code
    : undefined;
}

/** Returns a thrown value as an error. */
export function errorOf(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/** The mark of a secret in a stored text: its kind and a keyed digest. */
export const STORED_MARK = /⟦masked:[a-z-]{1,24}:[0-9a-f]{12}⟧/g;

/** Returns the marks in a text. */
export const marksIn = (text: string): readonly string[] => text.match(STORED_MARK) ?? [];

/** Secrets by mark. */
export type FoundSecrets = Map<string, string>;

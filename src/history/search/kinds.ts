/** The kinds of searched texts. */
export const SEARCHED_KINDS = ['message', 'toolcall', 'file', 'system_prompt'] as const;
/** A kind of searched text. */
export type SearchedKind = (typeof SEARCHED_KINDS)[number];

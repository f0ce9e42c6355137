/** What tokens are counted with; recorded beside every count, since another vocabulary counts differently. */
export const TOKENIZER = 'gpt-tokenizer/o200k_base';

/** Counts the tokens of each of some texts. Where that is done is the caller's affair: in this thread (`countHere`), or in one of its own. */
export type CountTexts = (texts: readonly string[]) => Promise<readonly number[]>;

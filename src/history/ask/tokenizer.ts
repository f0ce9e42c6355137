/** What tokens are counted with; recorded beside every count, since another vocabulary counts differently. */
export const TOKENIZER = 'gpt-tokenizer/o200k_base';

/** Counts the tokens of each of some texts. Where that is done is the caller's affair: in this thread (`countHere`), or in one of its own. */
export type CountTexts = (texts: readonly string[]) => Promise<readonly number[]>;

/**
 * Counts no text a second time, for as long as the result is held: the contexts of a session share most of what they are made of. Asked to count nothing, whoever counts may
 * get ready.
 */
export function countingOnce(count: CountTexts): CountTexts {
  const known = new Map<string, number>();
  return async (texts) => {
    const fresh = [...new Set(texts)].filter((text) => !known.has(text));
    const counts = fresh.length === 0 && texts.length > 0 ? [] : await count(fresh);
    for (const [i, text] of fresh.entries()) known.set(text, counts[i] ?? 0);
    return texts.map((text) => known.get(text) ?? 0);
  };
}

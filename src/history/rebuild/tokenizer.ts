/** Name of the vocabulary. Each count records it, because another vocabulary counts differently. */
export const TOKENIZER = 'gpt-tokenizer/o200k_base';

/**
 * Counts the tokens of some texts. The caller chooses where: in this thread (`countHere`) or in
 * another one.
 */
export type CountTexts = (texts: readonly string[]) => Promise<readonly number[]>;

/**
 * Wraps a counter so that it counts each text only once. Contexts of a session share most of their
 * texts. A call without texts lets the counter load its vocabulary.
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

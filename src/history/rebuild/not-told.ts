/** Names the facts of a request that no transcript has. */
export const NOT_TOLD = "the harness's own notes, its tools, and a system prompt that is not recorded";

/**
 * Says that the requests of a transcript lack reasoning, and how many texts of it the transcript
 * has.
 */
export function reasoningNote(texts: number): string {
  if (texts === 0) return 'Reasoning is not imported.';
  const had = texts === 1 ? '1 text' : `${texts} texts`;
  return `Reasoning is not imported: the transcript has ${had} of it.`;
}

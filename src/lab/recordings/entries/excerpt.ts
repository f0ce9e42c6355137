const EXCERPT_CHARS = 120;

/** A text cut to a length that a message can carry, control characters made visible. */
export function excerpt(text: string): string {
  const start = text.slice(0, EXCERPT_CHARS).toWellFormed();
  const clear = start.replace(/\p{Cc}/gu, (char) => JSON.stringify(char).slice(1, -1));
  return text.length > EXCERPT_CHARS ? `${clear}… (${text.length} characters)` : clear;
}

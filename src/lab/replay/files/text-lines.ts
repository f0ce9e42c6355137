/** The lines of a text, each with its line end; a last one without is a line too, an empty text has none. */
export function linesWithEnds(text: string): readonly string[] {
  return text === '' ? [] : text.split(/(?<=\n)/);
}

/** The lines of a text without their ends, as a program numbers them: what follows the last newline is a line only if there is anything. */
export function bareLines(text: string): readonly string[] {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

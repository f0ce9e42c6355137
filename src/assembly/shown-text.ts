/** Prefix of tools' output lines: a line number and a mark. */
const NUMBER = /^\s*\d+(?:[\t|:→]|\.)? ?/u;

/** The same without a trailing space: a space after the mark belongs to the line. */
const TIGHT_NUMBER = /^\s*\d+(?:[\t|:→]|\.)?/u;

const showsBehind = (output: string, wanted: string, number: RegExp): boolean =>
  output
    .split('\n')
    .map((line) => line.replace(number, ''))
    .join('\n')
    .includes(wanted);

function showsWith(output: string, text: string, numbers: readonly RegExp[]): boolean {
  const wanted = text.trimEnd();
  if (wanted === '' || output.length < wanted.length) return false;
  return output.includes(wanted) || numbers.some((number) => showsBehind(output, wanted, number));
}

/**
 * Returns whether an output shows a whole text, plain or with numbered lines, with or without
 * surroundings. The text then need not appear a second time (decision E2).
 */
export const showsText = (output: string, text: string): boolean => showsWith(output, text, [NUMBER, TIGHT_NUMBER]);

/**
 * As `showsText`, by the rule of the first version, which contexts rendered for each call keep. It
 * does not recognise numbers of indented lines without a space after them.
 */
export const showsNumbered = (output: string, text: string): boolean => showsWith(output, text, [NUMBER]);

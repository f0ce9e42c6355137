/** What tools put before a line that they show: a number, and a mark behind it. */
const NUMBER = /^\s*\d+(?:[\t|:→]|\.)? ?/u;

/** The same where no space belongs to it: one behind the mark is the line's own. */
const TIGHT_NUMBER = /^\s*\d+(?:[\t|:→]|\.)?/u;

/** A line without the number that a tool may have put before it; what begins with a number of its own loses that. */
export const withoutNumber = (line: string): string => line.replace(NUMBER, '');

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
 * Whether an output shows a text from its first to its last character, as it is or with numbered lines, with or without something around it. Then the
 * text need not stand a second time beside it (decision E2).
 */
export const showsText = (output: string, text: string): boolean => showsWith(output, text, [NUMBER, TIGHT_NUMBER]);

/** As contexts rendered for each call have had it from the first: the numbers of indented lines are not known where a tool puts no space behind them. */
export const showsNumbered = (output: string, text: string): boolean => showsWith(output, text, [NUMBER]);

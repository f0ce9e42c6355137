/** What tools put before a line that they show: a number, and a mark behind it. */
const NUMBERED = /^\s*\d+(?:[\t|:→]|\.)? ?/u;

/**
 * Whether an output shows a text from its first to its last character, as it is or with numbered lines, with or without something around it. Then the
 * text need not stand a second time beside it (decision E2).
 */
export function showsText(output: string, text: string): boolean {
  const wanted = text.trimEnd();
  if (wanted === '' || output.length < wanted.length) return false;
  if (output.includes(wanted)) return true;
  const bare = output
    .split('\n')
    .map((line) => line.replace(NUMBERED, ''))
    .join('\n');
  return bare.includes(wanted);
}

/** Text as it stands in a file, with the number of its first line where the output told it. */
export interface Ungutted {
  readonly text: string;
  readonly startLine: number | undefined;
}

/** How agents number the lines of what they show. */
const GUTTERS: readonly RegExp[] = [/^ *(\d+)→/, /^ *(\d+)\t/, /^ *(\d+) \| ?/, /^(\d+):/, /^(\d+)\. /];

/** The lines without a gutter if every one of them has it, counting up by one; undefined otherwise. */
function without(gutter: RegExp, lines: readonly string[]): Ungutted | undefined {
  const bare: string[] = [];
  let first: number | undefined;
  for (const [i, line] of lines.entries()) {
    const match = gutter.exec(line);
    if (match === null) return undefined;
    const number = Number(match[1]);
    first ??= number;
    if (number !== first + i) return undefined;
    bare.push(line.slice(match[0].length));
  }
  return { text: bare.join('\n'), startLine: first };
}

/**
 * Takes the line numbers off what a tool showed of a file. They are numbers only if every line has one, each one more than the last: a text that happens to
 * begin with a number stays as it is. Without numbers the text is given back with no first line.
 */
export function withoutGutter(shown: string): Ungutted {
  const ended = shown.endsWith('\n');
  const lines = (ended ? shown.slice(0, -1) : shown).split('\n');
  for (const gutter of GUTTERS) {
    const bare = without(gutter, lines);
    if (bare !== undefined) return ended ? { ...bare, text: `${bare.text}\n` } : bare;
  }
  return { text: shown, startLine: undefined };
}

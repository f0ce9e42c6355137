/** The formats in which tools number the lines of a file. Each matches a number and its line. */
const LINE_GUTTERS = {
  /** `12:text` */
  colon: /^(\d+):(.*)$/s,
  /** `12: text` */
  spacedColon: /^(\d+): (.*)$/s,
  /** `12|text` */
  bar: /^(\d+)\|(.*)$/s,
  /** `12 | text` */
  spacedBar: /^ *(\d+) \| ?(.*)$/s,
  /** `  12→text` */
  arrow: /^ *(\d+)→(.*)$/s,
  /** The output of `cat -n`. */
  tab: /^ *(\d+)\t(.*)$/s,
  /** `12. text` */
  dot: /^(\d+)\. (.*)$/s,
} as const;
export type LineGutter = keyof typeof LINE_GUTTERS;

/** Lines of a file, without their numbers. */
export interface NumberedLines {
  readonly lines: readonly string[];
  /** Number of the first line. */
  readonly first: number;
}

/**
 * Returns the consecutively numbered lines that begin at index `from`. Undefined if the line at
 * `from` has no number.
 */
export function numberedLines(lines: readonly string[], from: number, gutter: LineGutter): NumberedLines | undefined {
  const bare: string[] = [];
  let first = 0;
  for (let at = from; at < lines.length; at += 1) {
    const match = LINE_GUTTERS[gutter].exec(lines[at] ?? '');
    if (match === null) break;
    const number = Number(match[1]);
    if (bare.length === 0) first = number;
    else if (number !== first + bare.length) break;
    bare.push(match[2] ?? '');
  }
  return bare.length === 0 || first < 1 ? undefined : { lines: bare, first };
}

/** A file's text, and the number of its first line if the output had numbers. */
interface Ungutted {
  readonly text: string;
  readonly startLine: number | undefined;
}

/** `12|text` is left out, because lines of tables often look like it. */
const OF_WHOLE_TEXTS: readonly LineGutter[] = ['arrow', 'tab', 'spacedBar', 'colon', 'dot'];

/**
 * Removes line numbers from the output of a tool that reads files. They are removed only if each
 * line's number is one higher than the previous line's number. A text that merely begins with a
 * number stays unchanged. Without numbers, the result has no `startLine`.
 */
export function withoutGutter(shown: string): Ungutted {
  const end = shown.endsWith('\n') ? '\n' : '';
  const lines = shown.slice(0, shown.length - end.length).split('\n');
  for (const gutter of OF_WHOLE_TEXTS) {
    const numbered = numberedLines(lines, 0, gutter);
    if (numbered?.lines.length === lines.length)
      return { text: `${numbered.lines.join('\n')}${end}`, startLine: numbered.first };
  }
  return { text: shown, startLine: undefined };
}

/** Returns the lines of an output. A terminal's `\r\n` also ends a line. */
export function outputLines(output: string): readonly string[] {
  const lines = output.split('\n');
  const returns = lines.slice(0, -1).filter((line) => line.endsWith('\r')).length;
  return returns > 0 && returns * 2 > lines.length - 1 ? lines.map((line) => line.replace(/\r$/, '')) : lines;
}

/** Everything that a terminal may act on or that hides what is there: C0 and C1 controls, marks of writing direction, separators that are no line ends. */
const CONTROL = /(?![\n\t])[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}\ufeff]/gu;

function escaped(char: string): string {
  if (char === '\r') return '\\r';
  const code = char.charCodeAt(0);
  return code <= 0xff ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
}

/** Text of several lines for a terminal: control characters stand as escapes; line ends and tabs stay. */
export function escapedText(text: string): string {
  return text.toWellFormed().replace(CONTROL, escaped);
}

/** A value within one line: line ends and tabs stand as escapes too. */
export function escapedLine(text: string): string {
  return escapedText(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t');
}

/** The first line of a text, cut to a length, with a mark where there is more. */
export function firstLine(text: string, most: number): string {
  const [line = ''] = text.trimStart().split('\n', 1);
  const cut = line.length > most ? line.slice(0, most).replace(/[\ud800-\udbff]$/, '') : line;
  return `${escapedLine(cut)}${cut.length < text.trim().length ? ' …' : ''}`;
}

/** JSON of a value in one line in which nothing stands that a terminal acts on; it reads back as the same value. */
export function escapedJson(value: object): string {
  return JSON.stringify(value).replace(CONTROL, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

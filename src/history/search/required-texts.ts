/** Characters with a special meaning in an expression. */
const SPECIAL = '.^$*+?()[]{}|\\';
/** The character of an escape that stands for itself, such as that of `\.`. */
const ESCAPED = /[^A-Za-z0-9\s]/;
/** The first character of an escape that has more characters. */
const CODE = /[xupP\d]/;

/** Returns the position after a class, group or repeat that begins at `from`. */
function closedAfter(source: string, from: number, [open, close]: readonly [string, string]): number {
  let depth = 0;
  for (let at = from; at < source.length; at++) {
    const char = source[at];
    if (char === '\\') at += 1;
    else if (char === '[' && open !== '[') at = closedAfter(source, at, ['[', ']']) - 1;
    // A `]` directly after the beginning of a class is a member of the class.
    else if (char === close && !(open === '[' && /^\[\^?$/.test(source.slice(from, at)))) {
      depth -= 1;
      if (depth <= 0) return at + 1;
    } else if (char === open && (open !== '[' || at === from)) depth += 1;
  }
  return source.length;
}

/** Returns whether an expression has alternatives outside its groups. */
function hasAlternatives(source: string): boolean {
  for (let at = 0; at < source.length; at++) {
    const char = source[at];
    if (char === '\\') at += 1;
    else if (char === '[') at = closedAfter(source, at, ['[', ']']) - 1;
    else if (char === '(') at = closedAfter(source, at, ['(', ')']) - 1;
    else if (char === '|') return true;
  }
  return false;
}

/**
 * Returns texts that each match of an expression contains. Ignores groups, classes and repeats, so
 * it may miss some texts. Empty if no text is certain.
 */
export function requiredTexts(source: string): readonly string[] {
  // Quoting, inline flags and named classes change the meaning of later characters.
  if (/\\Q|\(\?[a-zA-Z-]+\)|\[:/.test(source) || hasAlternatives(source)) return [];
  const found: string[] = [];
  let run = '';
  const end = (): void => {
    if (run !== '') found.push(run);
    run = '';
  };
  for (let at = 0; at < source.length; ) {
    const char = source[at] as string;
    let [unit, next] = [char, at + 1];
    if (char === '\\') [unit, next] = [ESCAPED.test(source[at + 1] ?? 'a') ? (source[at + 1] as string) : '', at + 2];
    else if (char === '[') [unit, next] = ['', closedAfter(source, at, ['[', ']'])];
    else if (char === '(') [unit, next] = ['', closedAfter(source, at, ['(', ')'])];
    else if (SPECIAL.includes(char)) unit = '';
    const repeat = source[next];
    const isRepeated = repeat === '*' || repeat === '?' || repeat === '+' || repeat === '{';
    // A repeat may match the character zero times, so the run ends before the character.
    if (unit === '' || isRepeated) end();
    else run += unit;
    if (isRepeated) next = repeat === '{' ? closedAfter(source, next, ['{', '}']) : next + 1;
    // An escape such as \x41 or \pL has more characters, which are not literal text.
    if (char === '\\' && CODE.test(source[at + 1] ?? '')) next += source.slice(next).search(/[^A-Za-z0-9{}]|$/);
    at = next;
  }
  end();
  return found;
}

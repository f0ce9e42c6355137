/** How the places of a text are looked for. */
interface OccurrenceOptions {
  /** Whether places that overlap count each. */
  readonly overlapping: boolean;
}

/** Up to this length the built-in search is linear for all purposes: it compares at most so many characters at each position. */
const SHORT = 32;

/** For each beginning of a text the length of its longest end, shorter than itself, that the text begins with as well. */
function borders(wanted: string): Uint32Array {
  const found = new Uint32Array(wanted.length);
  let length = 0;
  for (let at = 1; at < wanted.length; at++) {
    while (length > 0 && wanted.charCodeAt(at) !== wanted.charCodeAt(length)) length = found[length - 1] ?? 0;
    if (wanted.charCodeAt(at) === wanted.charCodeAt(length)) length += 1;
    found[at] = length;
  }
  return found;
}

/** The algorithm of Knuth, Morris and Pratt: time linear in both texts, places that overlap included. */
function* longOccurrences(text: string, wanted: string, overlapping: boolean): Generator<number, void, undefined> {
  if (wanted.length > text.length) return;
  const shorter = borders(wanted);
  let same = 0;
  for (let at = 0; at < text.length; at++) {
    while (same > 0 && text.charCodeAt(at) !== wanted.charCodeAt(same)) same = shorter[same - 1] ?? 0;
    if (text.charCodeAt(at) === wanted.charCodeAt(same)) same += 1;
    if (same < wanted.length) continue;
    yield at + 1 - same;
    same = overlapping ? (shorter[same - 1] ?? 0) : 0;
  }
}

function* shortOccurrences(text: string, wanted: string, overlapping: boolean): Generator<number, void, undefined> {
  const step = overlapping ? 1 : wanted.length;
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + step)) yield at;
}

/**
 * The rising positions at which a text, not empty, stands in another one. Takes time linear in both, whatever they hold, and four bytes for each
 * code unit of the wanted one.
 */
export function occurrences(text: string, wanted: string, { overlapping }: OccurrenceOptions): Generator<number, void, undefined> {
  return wanted.length <= SHORT ? shortOccurrences(text, wanted, overlapping) : longOccurrences(text, wanted, overlapping);
}

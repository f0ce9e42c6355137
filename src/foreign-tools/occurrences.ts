/** How the places of a text are looked for. */
interface OccurrenceOptions {
  /** Whether places that overlap count each. */
  readonly overlapping: boolean;
}

/** Up to this length the built-in search is linear for all purposes: it compares at most so many characters at each position. */
const SHORT = 32;

/** The maximal suffix of a text under one order of characters: the last position before it, and its period. */
function maximalSuffix(wanted: string, reversed: boolean): { readonly before: number; readonly period: number } {
  let before = -1;
  let candidate = 0;
  let offset = 1;
  let period = 1;
  while (candidate + offset < wanted.length) {
    const a = wanted.charCodeAt(candidate + offset);
    const b = wanted.charCodeAt(before + offset);
    if (a === b) {
      if (offset === period) {
        candidate += period;
        offset = 1;
      } else offset += 1;
    } else if (a < b !== reversed) {
      candidate += offset;
      offset = 1;
      period = candidate - before;
    } else {
      before = candidate;
      candidate = before + 1;
      offset = 1;
      period = 1;
    }
  }
  return { before, period };
}

function repeats(wanted: string, period: number, length: number): boolean {
  for (let at = 0; at < length; at++) if (wanted.charCodeAt(at) !== wanted.charCodeAt(at + period)) return false;
  return true;
}

/** The Two-Way algorithm of Crochemore and Perrin: time linear in both texts, constant memory, places that overlap included. */
function* longOccurrences(text: string, wanted: string, overlapping: boolean): Generator<number, void, undefined> {
  const length = wanted.length;
  const forward = maximalSuffix(wanted, false);
  const backward = maximalSuffix(wanted, true);
  const { before, period } = forward.before > backward.before ? forward : backward;
  const periodic = repeats(wanted, period, before + 1);
  const shift = periodic ? period : Math.max(before + 1, length - before - 1) + 1;
  // Up to here the text is known to agree from the previous alignment, whose period it shares.
  let known = -1;
  let at = 0;
  while (at <= text.length - length) {
    let right = Math.max(before, known) + 1;
    while (right < length && wanted.charCodeAt(right) === text.charCodeAt(at + right)) right++;
    if (right < length) {
      at += right - before;
      known = -1;
      continue;
    }
    let left = before;
    while (left > known && wanted.charCodeAt(left) === text.charCodeAt(at + left)) left--;
    const found = left <= known;
    if (found) yield at;
    const apart = found && !overlapping;
    at += apart ? length : shift;
    known = periodic && !apart ? length - period - 1 : -1;
  }
}

function* shortOccurrences(text: string, wanted: string, overlapping: boolean): Generator<number, void, undefined> {
  const step = overlapping ? 1 : wanted.length;
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + step)) yield at;
}

/** The rising positions at which a text, not empty, stands in another one. Takes time linear in both, whatever they hold, and constant memory. */
export function occurrences(text: string, wanted: string, { overlapping }: OccurrenceOptions): Generator<number, void, undefined> {
  return wanted.length <= SHORT ? shortOccurrences(text, wanted, overlapping) : longOccurrences(text, wanted, overlapping);
}

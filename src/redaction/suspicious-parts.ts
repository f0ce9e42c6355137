/** Words, in lower case, near secrets that no form identifies. */
const WORDS = [
  'passw|passphrase|passcode|_pass|-pass|pass:|pwd|secret|token|credential|bearer|basic |cookie|authoriz|key_data',
  'key-data|x-oauth|shared_access|sharedaccess|signature=|sig=|hooks.|webhook|identified |login |redis-cli|mysql',
  ` -u |--user|-user|auth"|auth\\|auth'|putty-user`,
].flatMap((line) => line.split('|'));
/** Words that count only after certain text, or before it. */
const NEAR: readonly { readonly word: string; readonly before?: RegExp; readonly after?: RegExp }[] = [
  {
    word: 'key',
    before: /(?:private|api|access|account|encryption|master|signing|storage|role)[ _-]?$/i,
  },
  { word: '://', after: /^[^\s/@]{0,256}:[^\s]{1,200}?@/ },
];
/** The characters of a run that may be a token, and the minimum length of such a run. */
const RUN_CHAR = /[\w.~+/=$%-]/;
const LEAST_RUN = 16;
/**
 * Patterns of the line that opens a YAML block, and of the lines in it: indented lines, list items
 * and blank lines.
 */
const OPENS_BLOCK = /[:|>][+-]?\d?\s*(?:#.*)?$/;
const BLOCK = /^(?:\s+\S|-\s|\s*$)/;
/**
 * Number of further lines over which the value after a suspicious place may extend. The second
 * limit is for a YAML block.
 */
const LINES_AFTER = 2;
const MOST_BLOCK_LINES = 100;

/** Returns the position after the line at `at` and its line end. */
function lineEnd(text: string, at: number): number {
  const end = text.indexOf('\n', at);
  return end < 0 ? text.length : end + 1;
}

/** Returns the end of the part that may contain the value of a suspicious place. */
function endOfPart(text: string, at: number): number {
  const start = text.lastIndexOf('\n', at) + 1;
  let end = lineEnd(text, at);
  const line = text.slice(start, end).trimEnd();
  if (/kind:\s*secret$/i.test(line)) return text.length;
  const isBlock = OPENS_BLOCK.test(line);
  for (let lines = 0; end < text.length && lines < (isBlock ? MOST_BLOCK_LINES : LINES_AFTER); lines += 1) {
    const next = lineEnd(text, end);
    if (isBlock && lines >= LINES_AFTER && !BLOCK.test(text.slice(end, next))) break;
    end = next;
  }
  return end;
}

/** The words, grouped by their first two characters. */
const GROUPS: readonly (readonly string[])[] = [
  ...[...WORDS, ...NEAR.map(({ word }) => word)]
    .reduce(
      (groups, word) => groups.set(word.slice(0, 2), [...(groups.get(word.slice(0, 2)) ?? []), word]),
      new Map<string, readonly string[]>(),
    )
    .values(),
];
/** For each pair of ASCII characters in either case: 1 + the index of its group, or 0. */
const PAIRS = new Uint8Array(128 * 128);
for (const [i, [word = '']] of GROUPS.entries())
  for (const first of [word.charCodeAt(0), word.toUpperCase().charCodeAt(0)])
    for (const second of [word.charCodeAt(1), word.toUpperCase().charCodeAt(1)]) PAIRS[first * 128 + second] = i + 1;

/** Returns whether a word stands at a place, in ASCII letters of either case. */
function isWordAt(text: string, at: number, word: string): boolean {
  for (let i = 2; i < word.length; i += 1) {
    const code = text.charCodeAt(at + i);
    if ((code >= 65 && code <= 90 ? code + 32 : code) !== word.charCodeAt(i)) return false;
  }
  return true;
}

/** Returns whether a word counts at a place. Words of `NEAR` need certain text beside them. */
function isNear(text: string, at: number, word: string): boolean {
  const near = NEAR.find((one) => one.word === word);
  if (near === undefined) return true;
  const end = at + word.length;
  if (near.before !== undefined && !near.before.test(text.slice(Math.max(0, at - 16), at))) return false;
  return near.after === undefined || near.after.test(text.slice(end, end + 460));
}

/**
 * Finds the places of all words in one pass, which takes a quarter of the time of a search for each
 * word.
 */
function wordPlaces(text: string): number[] {
  const places: number[] = [];
  let before = 0;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    const group = code < 128 && before < 128 ? (PAIRS[before * 128 + code] as number) : 0;
    before = code;
    if (group === 0) continue;
    for (const word of GROUPS[group - 1] as readonly string[])
      if (isWordAt(text, i - 1, word) && isNear(text, i - 1, word)) places.push(i - 1);
  }
  return places;
}

/** For each ASCII character: 0 if no run contains it, 2 if it is a digit, otherwise 1. */
const IN_RUN = new Uint8Array(128);
for (let code = 0; code < 128; code += 1) {
  const char = String.fromCharCode(code);
  IN_RUN[code] = /\d/.test(char) ? 2 : RUN_CHAR.test(char) ? 1 : 0;
}

const runKind = (text: string, at: number): number => {
  const code = text.charCodeAt(at);
  return code < 128 ? (IN_RUN[code] as number) : 0;
};

/**
 * Returns the starts of the runs that contain a digit. Probes every sixteenth character, because
 * shorter runs do not count.
 */
function runPlaces(text: string): readonly number[] {
  const places: number[] = [];
  for (let probe = LEAST_RUN - 1, least = 0; probe < text.length; probe += LEAST_RUN) {
    if (runKind(text, probe) === 0) continue;
    let [from, end, hasDigit] = [probe, probe, false];
    while (from > least && runKind(text, from - 1) > 0) from -= 1;
    while (end < text.length && runKind(text, end) > 0) end += 1;
    for (let at = from; at < end && !hasDigit; at += 1) hasDigit = runKind(text, at) === 2;
    if (end - from >= LEAST_RUN && hasDigit) places.push(from);
    least = end;
    probe = Math.max(probe, end - 1);
  }
  return places;
}

/**
 * Returns the positions near which a text may contain a secret, in order. They depend only on their
 * own line. Whole lines copied from a text therefore have the same suspicious places.
 */
export function suspiciousPlaces(text: string): readonly number[] {
  return [...wordPlaces(text), ...runPlaces(text)].sort((a, b) => a - b);
}

/** A part of a text. */
interface TextPart {
  readonly text: string;
  readonly isSuspicious: boolean;
}

/**
 * Splits a text at line ends into parts that may contain a secret and parts that cannot. In an
 * ordinary text, the rules then read only a tenth of it.
 */
export function suspiciousParts(text: string, places = suspiciousPlaces(text)): readonly TextPart[] {
  const parts: TextPart[] = [];
  let [from, to] = [0, 0];
  const end = (next: number): void => {
    if (to > from) parts.push({ text: text.slice(from, to), isSuspicious: true });
    if (next > to) parts.push({ text: text.slice(to, next), isSuspicious: false });
  };
  for (const place of places) {
    if (place < to && endOfPart(text, place) <= to) continue;
    const start = text.lastIndexOf('\n', Math.max(0, text.lastIndexOf('\n', place) - 1)) + 1;
    if (start > to) {
      end(start);
      from = start;
    }
    to = Math.max(to, endOfPart(text, place));
  }
  end(text.length);
  return parts;
}

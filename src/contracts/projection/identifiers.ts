import type { Entry } from './entry.js';

/** Maximum number of identifiers that a summary must name. */
export const MOST_IDENTIFIERS = 50;
const LONGEST = 200;

/**
 * Names that a reader cannot guess: quoted names, addresses, digests, upper-case names, paths,
 * dotted names, and identifying numbers.
 */
const PATTERNS: readonly RegExp[] = [
  /`([^`\n]{1,200})`/g,
  /(https?:\/\/[^\s<>"'`)\]]+)/g,
  /\b([0-9a-f]{7,64})\b/g,
  /\b([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\b/g,
  /((?:~|\.{1,2})?(?:\/[\w.@+-]+)+|\b[\w@+-]+(?:\/[\w.@+-]+)+)/g,
  /\b([A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)+)\b/g,
  /(#\d+|\b[A-Z]{2,}-\d+\b|\b\d{4,}\b)/g,
];

const TRAILING = /[.,;:]+$/;

/** Rejects words such as `defaced`: a digest contains a digit. */
const isTelling = (name: string): boolean => name.length > 1 && name.length <= LONGEST && !/^[a-f]+$/.test(name);

/**
 * Returns the identifiers of a text, each once, by first position. Leaves out an identifier inside
 * another one, such as a file's name in its path.
 */
export function identifiersIn(text: string): readonly string[] {
  const places = PATTERNS.flatMap((pattern) =>
    [...text.matchAll(pattern)].map((found) => ({
      at: found.index,
      end: found.index + found[0].length,
      name: found[1] ?? '',
    })),
  );
  places.sort((a, b) => a.at - b.at || b.end - a.end);
  const names = new Set<string>();
  let covered = 0;
  for (const { end, name } of places) {
    const bare = name.replace(TRAILING, '');
    if (end <= covered || !isTelling(bare)) continue;
    names.add(bare);
    covered = end;
  }
  return [...names];
}

/**
 * Returns the text and call arguments of an entry. Returns no text for results: messages and calls
 * repeat their important parts, and the rest can be looked up.
 */
function spokenText(entry: Entry): string {
  if (entry.kind === 'result') return '';
  return entry.kind === 'assistant'
    ? [entry.text, ...entry.calls.map(({ argsText }) => argsText)].join('\n')
    : entry.text;
}

/**
 * Returns the identifiers that a summary of some entries must hold: paths, addresses, digests,
 * names and numbers in messages and calls. Returns the last `MOST_IDENTIFIERS`, in order of
 * appearance.
 */
export function criticalIdentifiers(entries: readonly Entry[]): readonly string[] {
  const found: string[] = [];
  const seen = new Set<string>();
  for (const entry of entries.toReversed()) {
    for (const name of identifiersIn(spokenText(entry)).toReversed()) {
      if (seen.has(name)) continue;
      seen.add(name);
      found.push(name);
      if (found.length === MOST_IDENTIFIERS) return found.toReversed();
    }
  }
  return found.toReversed();
}

/** Returns the given identifiers that a summary does not name. */
export function lostIdentifiers(summary: string, identifiers: readonly string[]): readonly string[] {
  return identifiers.filter((name) => !summary.includes(name));
}

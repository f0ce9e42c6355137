import type { Entry } from './entry.js';

/** How many identifiers a summary answers for. */
export const MOST_IDENTIFIERS = 50;
const LONGEST = 200;

/** What a reader cannot guess again once it is lost: quoted names, addresses, digests, names in capitals, paths, dotted names, numbers that name something. */
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

/** A digest has a digit; a word such as `defaced` is none. */
const isTelling = (name: string): boolean => name.length > 1 && name.length <= LONGEST && !/^[a-f]+$/.test(name);

/** The identifiers of a text, each once, in the order of their first places; what lies inside another one, such as a file's name in its path, is none by itself. */
export function identifiersIn(text: string): readonly string[] {
  const places = PATTERNS.flatMap((pattern) =>
    [...text.matchAll(pattern)].map((found) => ({ at: found.index, end: found.index + found[0].length, name: found[1] ?? '' })),
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

/** What an entry says by itself: results are left out, since what matters of them is said again, and the rest can be looked up. */
function spokenText(entry: Entry): string {
  if (entry.kind === 'result') return '';
  return entry.kind === 'assistant' ? [entry.text, ...entry.calls.map(({ argsText }) => argsText)].join('\n') : entry.text;
}

/**
 * The identifiers that a summary of some entries must hold: paths, addresses, digests, names, numbers of what people, the model and its calls said; at most
 * `MOST_IDENTIFIERS`, those that came last, in the order in which they came.
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

/** Those of some identifiers that a summary does not name. */
export function lostIdentifiers(summary: string, identifiers: readonly string[]): readonly string[] {
  return identifiers.filter((name) => !summary.includes(name));
}

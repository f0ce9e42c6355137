/** Minimum characters of a line. A shorter line occurs in many texts by chance. */
const LEAST_CHARS = 24;

/**
 * The prefix of a displayed line: a speaker, a line number, a file with a number, or a patch sign.
 */
const DECORATION = /^(?:user: )?(?:\d+(?:→|\t)\s*)?(?:[\w./@-]+:\d+[:-]\s*)?(?:[+-]\s*)?/;

/** Returns a line without indentation and decoration, or undefined if it is too short. */
function usableLine(line: string): string | undefined {
  const trimmed = line.trim();
  if (trimmed.length < LEAST_CHARS) return undefined;
  const bare = trimmed.replace(DECORATION, '').trim();
  return bare.length < LEAST_CHARS ? undefined : bare;
}

/**
 * Returns the distinct lines of a text by which its use is recognised. A model used a text if its
 * own words or arguments contain one of the text's lines. A line has at least 24 characters,
 * without indentation and the decoration of tools. Retention by use and the laboratory share this
 * rule.
 */
export function usableLines(text: string): ReadonlySet<string> {
  return new Set(text.split('\n').flatMap((line) => usableLine(line) ?? []));
}

/** Returns every text of a JSON value, such as the arguments of a call. */
export function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

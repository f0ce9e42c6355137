import { shownName } from './framing.js';

/** Alternatives of a glob that are written side by side, in braces as they should be. */
const inBraces = (glob: string): string =>
  `{${glob
    .split(/[\s,|]+/)
    .filter(Boolean)
    .join(',')}}`;

/** What globs of other programs mean that ours take by the letter, and how ours say it. */
function globAdvice(glob: string): string | undefined {
  const outside = glob.replace(/\\.|\{[^{}]*\}/g, '');
  const [set] = /\[[^\]]*\]/.exec(outside) ?? [];
  if (glob.startsWith('!'))
    return ' A glob cannot leave files out: "!" is an ordinary character at its beginning. Leave out the glob, or choose what to search.';
  if (/[\s,|]/.test(outside)) return ` A glob is one pattern: write alternatives as ${shownName(inBraces(glob))}.`;
  if (set !== undefined)
    return ` ${shownName(set)} stands for one of its characters: write ${shownName(set.replace(/[[\]]/g, '\\$&'))} for the brackets themselves.`;
  return undefined;
}

/** Says that no file is chosen by a glob, and what is probably meant by it. */
export function noFilesText(glob: string, path: string): string {
  return `No files below ${shownName(path)} match ${shownName(glob)}.${globAdvice(glob) ?? ''}`;
}

/** Says that nothing was found by a regular expression, and that `\\|` is no alternative in it, as it is for POSIX's `grep`. */
export function noMatchesText(pattern: string, isLiteral: boolean): string {
  if (isLiteral || !pattern.replaceAll('\\\\', '').includes('\\|')) return 'No matches found.';
  return 'No matches found. "\\|" stands for the character "|" itself here: write a|b for alternatives.';
}

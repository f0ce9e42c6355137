import { shownName } from './framing.js';

/** Writes the alternatives in a glob as one pattern with braces. */
const inBraces = (glob: string): string =>
  `{${glob
    .split(/[\s,|]+/)
    .filter(Boolean)
    .join(',')}}`;

/**
 * Explains glob syntax of other programs that means something else here, and how to write it.
 * Undefined for a glob without such syntax.
 */
function globAdvice(glob: string): string | undefined {
  const outside = glob.replace(/\\.|\{[^{}]*\}/g, '');
  const [set] = /\[[^\]]*\]/.exec(outside) ?? [];
  if (glob.startsWith('!'))
    return (
      ' A glob cannot exclude files: a leading "!" is an ordinary character. Omit the glob, or search a ' +
      'narrower path.'
    );
  if (/[\s,|]/.test(outside)) return ` A glob is one pattern: write alternatives as ${shownName(inBraces(glob))}.`;
  if (set !== undefined)
    return (
      ` ${shownName(set)} stands for one of its characters: write ` +
      `${shownName(set.replace(/[[\]]/g, '\\$&'))} for the brackets themselves.`
    );
  return undefined;
}

/** States that a glob matched no file, and suggests the glob that was probably meant. */
export function noFilesText(glob: string, path: string): string {
  return `No files below ${shownName(path)} match ${shownName(glob)}.${globAdvice(glob) ?? ''}`;
}

/**
 * States that a regular expression matched nothing. If it has `\\|`, also says that `|` separates
 * alternatives here, unlike in POSIX `grep`.
 */
export function noMatchesText(pattern: string, isLiteral: boolean): string {
  if (isLiteral || !pattern.replaceAll('\\\\', '').includes('\\|')) return 'No matches found.';
  return 'No matches found. "\\|" stands for the character "|" itself here: write a|b for alternatives.';
}

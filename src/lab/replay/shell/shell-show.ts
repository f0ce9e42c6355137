import { isOption, operands } from '../../../foreign-tools/shell-syntax.js';
import { type CommandActs, type CommandReader, changes, type LineRange, reads, some, type Words } from './shell-act.js';

function shows(words: Words, range: LineRange | undefined, exact: boolean): CommandActs {
  const [path] = words;
  // Several files are printed one after another: nothing says where one ends.
  if (words.length !== 1 || path === undefined || path === '-') return reads(words.filter((word) => word !== '-'));
  return { acts: [{ kind: 'show', path, range, exact }], prints: true };
}

/** All of a file, numbered with an option. */
export const cat: CommandReader = (words) =>
  shows(operands(words), undefined, !words.some((word) => isOption(word) && word !== '-u'));
/** All of a file with the numbers of its lines. */
export const nl: CommandReader = (words) =>
  shows(
    operands(words, /^-[bdfhilnpsvw]$/),
    undefined,
    words.some((word) => word === '-ba') || words.join(' ').includes('-b a'),
  );

/** How many lines `head` or `tail` is asked for; undefined where it is asked otherwise. */
export function countOf(words: Words): number | undefined {
  for (const [i, word] of words.entries()) {
    const joined = /^-(?:n|-lines=)?(\d+)$/.exec(word ?? '')?.[1];
    if (joined !== undefined) return Number(joined);
    if (word === '-n' || word === '--lines') return /^\d+$/.test(words[i + 1] ?? '') ? Number(words[i + 1]) : undefined;
    if (isOption(word) && word !== '-q') return undefined;
  }
  return 10;
}

/** The first lines of a file. */
export const head: CommandReader = (words) => {
  const to = countOf(words);
  const files = operands(words, /^-[nc]$|^--(?:lines|bytes)$/);
  return to === undefined ? reads(files) : shows(files, { from: 1, to }, true);
};

/** The last lines of a file; from a line on where one is named. */
export const tail: CommandReader = (words) => {
  const from = words.flatMap(
    (word, i) =>
      /^(?:-n)?\+(\d+)$/.exec(word ?? '')?.[1] ??
      (word === '-n' ? (/^\+(\d+)$/.exec(words[i + 1] ?? '')?.[1] ?? []) : []),
  )[0];
  const files = operands(words, /^-[nc]$|^--(?:lines|bytes)$/).filter((word) => !/^\+\d+$/.test(word ?? ''));
  return from === undefined ? reads(files) : shows(files, { from: Number(from) }, true);
};

/** The lines that `sed -n 'A,Bp'` prints; undefined for any other script. */
function printedLines(script: string): LineRange | undefined {
  const match = /^\s*(\d+)(?:\s*,\s*(\d+|\$))?\s*p\s*;?\s*(?:\d+q\s*)?$/.exec(script);
  if (match === null) return undefined;
  const from = Number(match[1]);
  return { from, to: match[2] === undefined ? from : match[2] === '$' ? undefined : Number(match[2]) };
}

/** Lines of a file, or a change of it in its place. */
export const sed: CommandReader = (words) => {
  const inPlace = some(words, /^(?:-[nErsz]*i|--in-place)/);
  const scripted = some(words, /^-[ef]$|^--expression$/);
  // BSD's `-i ''` names a suffix, an empty one.
  const given = operands(words, /^-[ef]$|^--(?:expression|file)$/);
  const [script, ...rest] = inPlace && given[0] === '' ? given.slice(1) : given;
  const files = scripted ? [script, ...rest] : rest;
  if (inPlace)
    return changes(
      files.filter((file) => file !== ''),
      false,
    );
  const quiet = some(words, /^-[a-zA-Z]*n|^--quiet$/);
  const range = quiet && !scripted && script !== undefined ? printedLines(script) : undefined;
  return range === undefined ? reads(files) : shows(files, range, true);
};

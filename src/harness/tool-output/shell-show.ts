import type { LineSubstitution } from '../../foreign-tools/text-edits.js';
import {
  type CommandActs,
  type CommandReader,
  changes,
  type LineRange,
  reads,
  some,
  toEach,
  type Words,
} from './shell-act.js';
import { isOption, operands } from './shell-syntax.js';

function shows(words: Words, range: LineRange | undefined, exact: boolean): CommandActs {
  const [path] = words;
  // With several files, the output does not show where each begins.
  if (words.length !== 1 || path === undefined || path === '-') return reads(words.filter((word) => word !== '-'));
  return { acts: [{ kind: 'show', path, range, exact }], prints: true };
}

/** Prints a whole file; an option adds line numbers. */
export const cat: CommandReader = (words) =>
  shows(operands(words), undefined, !words.some((word) => isOption(word) && word !== '-u'));
/** Prints a whole file with line numbers. */
export const nl: CommandReader = (words) =>
  shows(
    operands(words, /^-[bdfhilnpsvw]$/),
    undefined,
    words.some((word) => word === '-ba') || words.join(' ').includes('-b a'),
  );

/**
 * Returns the number of lines that the options of `head` or `tail` request. Undefined for other
 * options.
 */
export function countOf(words: Words): number | undefined {
  for (const [i, word] of words.entries()) {
    const joined = /^-(?:n|-lines=)?(\d+)$/.exec(word ?? '')?.[1];
    if (joined !== undefined) return Number(joined);
    if (word === '-n' || word === '--lines') return /^\d+$/.test(words[i + 1] ?? '') ? Number(words[i + 1]) : undefined;
    if (isOption(word) && word !== '-q') return undefined;
  }
  return 10;
}

/** Prints the first lines of a file. */
export const head: CommandReader = (words) => {
  const to = countOf(words);
  const files = operands(words, /^-[nc]$|^--(?:lines|bytes)$/);
  return to === undefined ? reads(files) : shows(files, { from: 1, to }, true);
};

/** Prints the last lines of a file, or all lines after a number. */
export const tail: CommandReader = (words) => {
  const from = words.flatMap(
    (word, i) =>
      /^(?:-n)?\+(\d+)$/.exec(word ?? '')?.[1] ??
      (word === '-n' ? (/^\+(\d+)$/.exec(words[i + 1] ?? '')?.[1] ?? []) : []),
  )[0];
  const files = operands(words, /^-[nc]$|^--(?:lines|bytes)$/).filter((word) => !/^\+\d+$/.test(word ?? ''));
  return from === undefined ? reads(files) : shows(files, { from: Number(from) }, true);
};

/** Returns the lines that `sed -n 'A,Bp'` prints. Undefined for other scripts. */
function printedLines(script: string): LineRange | undefined {
  const match = /^\s*(\d+)(?:\s*,\s*(\d+|\$))?\s*p\s*;?\s*(?:\d+q\s*)?$/.exec(script);
  if (match === null) return undefined;
  const from = Number(match[1]);
  return { from, to: match[2] === undefined ? from : match[2] === '$' ? undefined : Number(match[2]) };
}

const SUBSTITUTION = /^s([/|#,@!:])((?:\\.|(?!\1)[^\\])*)\1((?:\\.|(?!\1)[^\\])*)\1(g?)$/;

/**
 * Removes the backslash before characters that may be escaped. Undefined if the text has other
 * special characters.
 */
function literal(text: string, { escapable, special }: Readonly<Record<'escapable' | 'special', RegExp>>) {
  const parts = text.match(/\\?./gsu) ?? [];
  const sound = parts.every((part) => (part.length > 1 && part[0] === '\\' ? escapable : /./).test(part.slice(-1)));
  if (!sound || parts.some((part) => special.test(part))) return undefined;
  return parts.map((part) => (part[0] === '\\' ? part.slice(1) : part)).join('');
}

/**
 * Returns the substitution that a `sed` script makes. Undefined if it makes no substitution,
 * several, or one that does not replace a plain text.
 */
function substitution(script: string, extended: boolean): LineSubstitution | undefined {
  const [, delimiter = '', pattern = '', replacement = '', all] = SUBSTITUTION.exec(script) ?? [];
  const special = extended ? /^[.*[\]^$+?(){}|\n]$/ : /^[.*[\]^$\n]$/;
  const from = literal(pattern, { escapable: /[.*[\]^$/]/, special });
  const to = literal(replacement, { escapable: /[&/]/, special: /^[&\n]$/ });
  if (from === undefined || to === undefined || from === '' || delimiter === '') return undefined;
  return { from, to, all: all === 'g' };
}

/** Prints lines of a file, or changes it in place. */
export const sed: CommandReader = (words) => {
  const inPlace = some(words, /^(?:-[nErsz]*i|--in-place)/);
  const scripted = some(words, /^-[ef]$|^--expression$/);
  // In BSD's `-i ''`, the empty word is a suffix and not a file.
  const given = operands(words, /^-[ef]$|^--(?:expression|file)$/);
  const [script, ...rest] = inPlace && given[0] === '' ? given.slice(1) : given;
  const files = scripted ? [script, ...rest] : rest;
  const named = files.filter((file) => file !== '');
  const options = words.filter((word) => isOption(word) && word !== '--');
  const plain = options.every((word) => /^-(?:i(?:\.\w+)?|[Er]|[Er]i)$/.test(word ?? ''));
  const literally = inPlace && plain && script !== undefined ? substitution(script, some(options, /[Er]/)) : undefined;
  if (literally !== undefined) return toEach(named, false, (path) => ({ kind: 'substitute', path, ...literally }));
  if (inPlace) return changes(named, false);
  const quiet = some(words, /^-[a-zA-Z]*n|^--quiet$/);
  const range = quiet && !scripted && script !== undefined ? printedLines(script) : undefined;
  return range === undefined ? reads(files) : shows(files, range, true);
};

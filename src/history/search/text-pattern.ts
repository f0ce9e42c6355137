import { RE2JS, RE2JSException } from 're2js';
import { compileGlob } from '../../filesystem/search/glob.js';
import { quoted } from '../../objects/errors.js';
import { HistoryError } from '../rebuild/history-error.js';
import { rangesOf, type TextRange } from './found-lines.js';
import { requiredTexts } from './required-texts.js';

/** A wanted text or regular expression. */
export interface TextPattern {
  /** Yields the matches in a text, in order. */
  ranges(text: string): Iterable<TextRange>;
  /** Texts that each match contains, in any letter case. Empty if no such text is known. */
  readonly required: readonly string[];
}

/** Maximum UTF-16 units of a wanted text or expression. */
const LONGEST = 1_000;
/** The notation of an expression, with its flags. */
const EXPRESSION = /^\/(.+)\/([ims]*)$/s;

const FLAGS: ReadonlyMap<string, number> = new Map([
  ['i', RE2JS.CASE_INSENSITIVE],
  ['m', RE2JS.MULTILINE],
  ['s', RE2JS.DOTALL],
]);

function refused(pattern: string, why: string): HistoryError {
  return new HistoryError('malformed-pattern', `the pattern ${quoted(pattern)} is refused: ${why}`);
}

/** Yields the matches of an expression, in time linear in the text for every expression. */
function* expressionRanges(expression: RE2JS, text: string): Generator<TextRange> {
  const matcher = expression.matcher(text);
  while (matcher.find()) yield { at: matcher.start(), end: matcher.end() };
}

/**
 * Matches expressions whose matches never contain the end of a line. Each part of such an
 * expression is an escape, a class, a group or a character that is known to match no line end.
 */
const WITHIN_LINES =
  /^(?:\\[wdSbB]|\\[^A-Za-z0-9\s]|\[(?!\^)\]?(?:[^\\\][\p{Cc}]|\\[wdS]|\\[^A-Za-z0-9\s])*\]|\((?:\?:|(?!\?))|[^\\[(\p{Cc}])+$/u;

/**
 * Yields the matches of an expression that stay within lines. Only lines with all the literals are
 * matched, because finding a literal is much faster than the engine.
 */
function* rangesInLines(expression: RE2JS, literals: readonly string[], text: string): Generator<TextRange> {
  const [first = ''] = literals;
  for (let at = text.indexOf(first); at >= 0; ) {
    const start = text.lastIndexOf('\n', at) + 1;
    const found = text.indexOf('\n', at);
    const end = found < 0 ? text.length : found;
    const line = text.slice(start, end);
    if (literals.every((one) => line.includes(one)))
      for (const range of expressionRanges(expression, line)) yield { at: start + range.at, end: start + range.end };
    at = text.indexOf(first, end);
  }
}

function expressionPattern(pattern: string, source: string, flags: string): TextPattern {
  let expression: RE2JS;
  try {
    // `^` and `$` match at the ends of lines.
    const bits = [...flags].reduce((sum, flag) => sum | (FLAGS.get(flag) ?? 0), RE2JS.MULTILINE);
    expression = RE2JS.compile(source, bits);
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error;
    const why = error.message.replace(/^error parsing regexp: /, '');
    throw refused(
      pattern,
      `${why}. Expressions run in linear time, so they have no look-around, no back-references, and at most ` +
        '1,000 repeats',
    );
  }
  if (expression.matcher('').find()) throw refused(pattern, 'it matches an empty text, so it would match everything');
  const required = requiredTexts(source);
  // Looking for them is much faster than the engine. Half a letter of two units may be repeated.
  const whole = required.filter((one) => one.isWellFormed()).sort((a, b) => b.length - a.length);
  const certain = flags.includes('i') ? [] : whole;
  if (certain.length > 0 && !flags.includes('s') && WITHIN_LINES.test(source))
    return { ranges: (text) => rangesInLines(expression, certain, text), required };
  const mayMatch = (text: string): boolean => certain.every((one) => text.includes(one));
  return { ranges: (text) => (mayMatch(text) ? expressionRanges(expression, text) : []), required };
}

/**
 * Parses a wanted text, or an expression as `/…/` with the flags i, m and s. The case of letters is
 * ignored unless the text contains a capital.
 *
 * @throws {HistoryError} `malformed-pattern`
 */
export function textPattern(pattern: string): TextPattern {
  if (pattern.trim() === '') throw refused(pattern, 'it is empty, so it would match everything');
  if (pattern.length > LONGEST) throw refused(pattern, `it is longer than ${LONGEST} characters`);
  const [, source, flags = ''] = EXPRESSION.exec(pattern) ?? [];
  if (source !== undefined) return expressionPattern(pattern, source, flags);
  return { ranges: (text) => rangesOf(text, pattern), required: [pattern] };
}

/** Characters that make a path a glob. */
const WILDCARD = /[*?[{]/;

/**
 * Returns a function that checks whether a display path matches the path that a person wrote. The
 * person may write the whole path, its last parts, a folder above it, or a glob of its last parts.
 *
 * @throws {PatternError} `invalid-glob`
 */
export function pathFilter(wanted: string): (path: string) => boolean {
  const [isAbsolute, plain] = [wanted.startsWith('/'), wanted.replace(/^(?:\.\/)+/, '').replace(/(?<=.)\/$/, '')];
  if (!WILDCARD.test(wanted)) {
    const parts = isAbsolute ? plain : `/${plain}`;
    return (path) => {
      const shown = `${path.startsWith('/') ? '' : '/'}${path}/`;
      return isAbsolute ? shown.startsWith(`${parts}/`) : shown.includes(`${parts}/`);
    };
  }
  const relative = plain.replace(/^\/+/, '');
  const isName = !relative.includes('/');
  const matches = compileGlob(isAbsolute || isName || relative.startsWith('**/') ? relative : `**/${relative}`);
  return (path) => matches(path.replace(/^\/+/, ''));
}

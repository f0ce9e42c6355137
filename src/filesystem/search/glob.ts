import { RE2JS } from 're2js';
import { named, PatternError } from '../access/errors.js';

/** A compiled glob. Returns whether a path, relative to the searched folder, matches. */
export type Glob = (relativePath: string) => boolean;

const LONGEST = 1000;
/** Maximum number of wildcards. Patterns with more take long to compile. */
const MOST_WILDCARDS = 64;

/**
 * Compiles a glob. A pattern without a slash matches a file's name in any folder; one with a slash
 * matches the whole relative path. `*` and `?` match within a name, `**` any number of folders,
 * `[a-z]` and `[!a-z]` one character, `{a,b}` alternatives. `\` escapes the next character. Names
 * that begin with a dot are like all others, and parentheses are ordinary characters. A trailing
 * slash means everything below. Matching takes time linear in the path. Throws {@link PatternError}
 * `invalid-glob`.
 */
export function compileGlob(pattern: string): Glob {
  const trimmed = pattern.replace(/^(?:\.\/)+/, '').replace(/\/$/, '/**');
  if (trimmed === '') throw invalid(pattern, 'it is empty; "**" matches all files');
  if (pattern.length > LONGEST) throw invalid(pattern, `it is longer than ${LONGEST} characters`);
  if ((pattern.match(/\*+|[?[]/g)?.length ?? 0) > MOST_WILDCARDS)
    throw invalid(pattern, `it holds more than ${MOST_WILDCARDS} wildcards`);
  if (pattern.includes('\0') || !pattern.isWellFormed())
    throw invalid(pattern, 'it holds a character that no file name has');
  if (trimmed.startsWith('/'))
    throw invalid(pattern, 'it is absolute; write it relative to the folder that is searched, and name that as path');
  const expression = new GlobReader(pattern, trimmed).read();
  const whole = trimmed.includes('/');
  const compiled = RE2JS.compile(expression, RE2JS.DOTALL);
  return (path) => compiled.matches(whole ? path : path.slice(path.lastIndexOf('/') + 1));
}

function invalid(pattern: string, why: string): PatternError {
  return new PatternError('invalid-glob', `the glob ${named(pattern)} is invalid: ${why}`);
}

/** Converts a glob to a regular expression, from left to right. */
class GlobReader {
  readonly #pattern: string;
  readonly #text: string;
  #at = 0;
  #depth = 0;

  constructor(pattern: string, text: string) {
    this.#pattern = pattern;
    this.#text = text;
  }

  read(): string {
    let expression = '';
    while (this.#at < this.#text.length) expression += this.#next();
    if (this.#depth > 0) throw invalid(this.#pattern, 'a "{" is never closed; close it or write "\\{"');
    return expression;
  }

  #next(): string {
    const character = this.#text[this.#at] ?? '';
    switch (character) {
      case '*':
        return this.#stars();
      case '?':
        return this.#take(1, '[^/]');
      case '[':
        return this.#set();
      case '{':
        return this.#open();
      case ',':
        return this.#take(1, this.#depth > 0 ? '|' : ',');
      case '}':
        if (this.#depth === 0) throw invalid(this.#pattern, 'a "}" was never opened; write "\\}" for the character');
        this.#depth -= 1;
        return this.#take(1, ')');
      case '\\':
        return this.#escape();
      default:
        return this.#literal();
    }
  }

  #take(length: number, expression: string): string {
    this.#at += length;
    return expression;
  }

  #literal(): string {
    const character = String.fromCodePoint(this.#text.codePointAt(this.#at) ?? 0);
    return this.#take(character.length, RE2JS.quote(character));
  }

  #escape(): string {
    this.#at += 1;
    if (this.#at >= this.#text.length)
      throw invalid(this.#pattern, 'it ends in a single "\\"; write "\\\\" for the character');
    return this.#literal();
  }

  /** `**` only matches folders if it replaces whole names. */
  #stars(): string {
    const run = /^\*+/.exec(this.#text.slice(this.#at))?.[0] ?? '*';
    const before = this.#text[this.#at - 1];
    const after = this.#text[this.#at + run.length];
    const opens = before === undefined || before === '/' || (this.#depth > 0 && (before === '{' || before === ','));
    const closes = after === undefined || after === '/' || (this.#depth > 0 && (after === '}' || after === ','));
    if (run.length < 2 || !opens || !closes) return this.#take(run.length, opens && closes ? '[^/]+' : '[^/]*');
    return after === '/' ? this.#take(run.length + 1, '(?:[^/]+/)*') : this.#take(run.length, '.+');
  }

  #open(): string {
    const inner = /^\{([^{},]*)\}/.exec(this.#text.slice(this.#at))?.[1];
    if (inner?.includes('..'))
      throw invalid(this.#pattern, 'ranges are not known; list the alternatives, as in "{1,2,3}"');
    this.#depth += 1;
    return this.#take(1, '(?:');
  }

  #set(): string {
    const found = /^\[([!^]?)(\]?(?:\\.|[^\]\\])*)\]/s.exec(this.#text.slice(this.#at));
    const members = found?.[2];
    if (found === null || members === undefined || members === '') {
      throw invalid(this.#pattern, 'a "[" is never closed; close it or write "\\["');
    }
    const escaped = members.replace(/\\(.)|[[\]^&~\\]/gs, (whole, taken: string | undefined) => `\\${taken ?? whole}`);
    const expression = found[1] === '' ? `[${escaped}]` : `[^/${escaped}]`;
    try {
      RE2JS.compile(expression);
    } catch (error) {
      throw new PatternError(
        'invalid-glob',
        `the glob ${named(this.#pattern)} is invalid: the set ${named(found[0])} is`,
        {
          cause: error,
        },
      );
    }
    return this.#take(found[0].length, expression);
  }
}

import { ownMember } from '../../values/own-member.js';

/**
 * A part of a pattern: one byte of a path, or a number of bytes. Patterns and paths are byte
 * strings, as git compares them.
 */
type Part =
  | { readonly kind: 'byte'; readonly code: number }
  | { readonly kind: 'set'; readonly holds: Uint8Array }
  /** Any number of bytes within a name. */
  | { readonly kind: 'star' }
  /** Any number of bytes, slashes included. */
  | { readonly kind: 'deep' }
  /**
   * Nothing, or any number of folders with their slashes. The next part is optional and matches
   * these folders.
   */
  | { readonly kind: 'folders' }
  | { readonly kind: 'through-slash' };

const SLASH = 47;
const BYTES = Array.from({ length: 256 }, (_, code) => code);
const ANY_IN_NAME = Uint8Array.from(BYTES, (code) => Number(code !== SLASH));
const GLOB_SPECIAL = /[*?[\\]/;

/** The POSIX classes as git reads them: ASCII only. */
const CLASSES: Readonly<Record<string, RegExp>> = {
  alnum: /[0-9A-Za-z]/,
  alpha: /[A-Za-z]/,
  blank: /[ \t]/,
  cntrl: /[^ -~\x80-\xff]/,
  digit: /[0-9]/,
  graph: /[!-~]/,
  lower: /[a-z]/,
  print: /[ -~]/,
  punct: /[!-/:-@[-`{-~]/,
  space: /[ \t\n\r]/,
  upper: /[A-Z]/,
  xdigit: /[0-9A-Fa-f]/,
};

/** The remaining effort for matching; negative means exhausted. */
export interface MatchEffort {
  /** Remaining comparisons of a pattern's part with a byte. */
  left: number;
}

/** The effort of a pattern without wildcards. */
const COMPARISON = 4;

/** Returns text as one character per byte of its UTF-8. */
export function bytesOf(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

/**
 * Reads the parts of a pattern as git's wildmatch does. Returns undefined if git abandons the
 * pattern, so that it matches nothing.
 */
class PatternReader {
  readonly #text: string;
  readonly #start: number;
  #at: number;
  readonly #parts: Part[] = [];

  /**
   * `start` is the position of the first wildcard. Git compares the text before that wildcard
   * separately, and then ignores that text.
   */
  constructor(text: string, start: number) {
    this.#text = text;
    this.#start = start;
    this.#at = start;
  }

  read(): readonly Part[] | undefined {
    while (this.#at < this.#text.length) {
      const character = this.#text[this.#at] ?? '';
      if (character === '*') this.#stars();
      else if (character === '[') {
        const holds = this.#set();
        if (holds === undefined) return undefined;
        this.#parts.push({ kind: 'set', holds });
      } else if (character === '?') {
        this.#parts.push({ kind: 'set', holds: ANY_IN_NAME });
        this.#at += 1;
      } else {
        if (character === '\\') this.#at += 1;
        if (this.#at >= this.#text.length) return undefined;
        this.#parts.push({ kind: 'byte', code: this.#text.charCodeAt(this.#at) });
        this.#at += 1;
      }
    }
    return this.#parts;
  }

  #stars(): void {
    const from = this.#at;
    while (this.#text[this.#at] === '*') this.#at += 1;
    const rest = this.#text.slice(this.#at, this.#at + 2);
    const opens = from === this.#start || this.#text[from - 1] === '/';
    const closes = rest === '' || rest[0] === '/' || rest === '\\/';
    if (this.#at - from < 2 || !opens || !closes) this.#parts.push({ kind: 'star' });
    else if (rest[0] !== '/') this.#parts.push({ kind: 'deep' });
    else {
      this.#at += 1;
      // Two parts that match any number of folders equal one.
      if (this.#parts.at(-1)?.kind !== 'through-slash')
        this.#parts.push({ kind: 'folders' }, { kind: 'through-slash' });
    }
  }

  /** Reads a bracket expression; undefined if it never closes or names an unknown class. */
  #set(): Uint8Array | undefined {
    const text = this.#text;
    const holds = new Uint8Array(256);
    let at = this.#at + 1;
    const negated = text[at] === '!' || text[at] === '^';
    if (negated) at += 1;
    let previous: number | undefined;
    do {
      if (at >= text.length) return undefined;
      const named = text[at] === '[' && text[at + 1] === ':' ? text.indexOf(']', at + 2) : 0;
      if (named < 0) return undefined;
      if (named > at + 2 && text[named - 1] === ':') {
        const members = ownMember(CLASSES, text.slice(at + 2, named - 1));
        if (members === undefined) return undefined;
        for (const code of BYTES) if (members.test(String.fromCharCode(code))) holds[code] = 1;
        previous = undefined;
        at = named + 1;
      } else if (text[at] === '-' && previous !== undefined && at + 1 < text.length && text[at + 1] !== ']') {
        at += text[at + 1] === '\\' ? 2 : 1;
        if (at >= text.length) return undefined;
        for (let code = previous; code <= text.charCodeAt(at); code++) holds[code] = 1;
        previous = undefined;
        at += 1;
      } else {
        if (text[at] === '\\') at += 1;
        if (at >= text.length) return undefined;
        previous = text.charCodeAt(at);
        holds[previous] = 1;
        at += 1;
      }
    } while (text[at] !== ']');
    this.#at = at + 1;
    return holds.map((held, code) => Number(code !== SLASH && (held === 1) !== negated));
  }
}

/**
 * Returns whether the parts match a text. All alternatives advance together, one byte at a time, so
 * the steps are at most parts times bytes. Returns false if the effort is exhausted.
 */
function partsMatch(parts: readonly Part[], text: string, effort: MatchEffort): boolean {
  let now = new Uint8Array(parts.length + 2);
  let next = new Uint8Array(parts.length + 2);
  now[0] = 1;
  for (let at = 0; at <= text.length; at++) {
    effort.left -= parts.length;
    if (effort.left < 0) return false;
    const code = text.charCodeAt(at);
    let alive = false;
    for (const [index, part] of parts.entries()) {
      if (now[index] === 0) continue;
      if (part.kind === 'folders') {
        now[index + 1] = 1;
        now[index + 2] = 1;
      } else if (part.kind === 'star' || part.kind === 'deep') now[index + 1] = 1;
      if (at === text.length) continue;
      const stays = part.kind === 'deep' || part.kind === 'through-slash' || (part.kind === 'star' && code !== SLASH);
      const passes =
        part.kind === 'byte'
          ? part.code === code
          : part.kind === 'set'
            ? part.holds[code] === 1
            : part.kind === 'through-slash' && code === SLASH;
      if (stays) next[index] = 1;
      if (passes) next[index + 1] = 1;
      alive ||= stays || passes;
    }
    if (at === text.length) return now[parts.length] === 1;
    if (!alive) return false;
    [now, next] = [next, now];
    next.fill(0);
  }
  return false;
}

/** One rule of a `.gitignore`. */
export interface IgnorePattern {
  /** Whether it reverses earlier ignore rules. */
  readonly negated: boolean;
  /**
   * Number of its characters that are compared with every byte of a path. 0 if it is compared only
   * once.
   */
  readonly cost: number;
  /**
   * Returns whether it matches a path, relative to the folder of its file, in bytes and without a
   * trailing slash. False once the effort is exhausted.
   */
  matches(path: string, isFolder: boolean, effort: MatchEffort): boolean;
}

type Matcher = (text: string, effort: MatchEffort) => boolean;

function textMatcher(pattern: string): Matcher {
  const start = pattern.search(GLOB_SPECIAL);
  if (start < 0) return (text) => text === pattern;
  const prefix = pattern.slice(0, start);
  const parts = new PatternReader(pattern, start).read();
  return (text, effort) =>
    parts !== undefined && text.startsWith(prefix) && partsMatch(parts, text.slice(start), effort);
}

/** Removes unquoted spaces from the end of a line. */
function withoutTrailingSpaces(line: string): string {
  let end = line.length;
  while (line[end - 1] === ' ') end -= 1;
  let quotes = 0;
  while (line[end - 1 - quotes] === '\\') quotes += 1;
  return line.slice(0, quotes % 2 === 1 ? end + 1 : end);
}

/**
 * Parses one line of a `.gitignore`, in bytes and without its line end; undefined for an empty line
 * or a comment.
 */
export function readIgnorePattern(line: string): IgnorePattern | undefined {
  if (line.startsWith('#')) return undefined;
  const trimmed = withoutTrailingSpaces(line);
  const negated = trimmed.startsWith('!');
  const foldersOnly = trimmed.endsWith('/');
  const pattern = trimmed.slice(negated ? 1 : 0, foldersOnly ? -1 : undefined);
  const ofNames = !pattern.includes('/');
  const sought = pattern.startsWith('/') ? pattern.slice(1) : pattern;
  const suffix = sought.slice(1);
  const bySuffix = ofNames && sought.startsWith('*') && !GLOB_SPECIAL.test(suffix);
  if (sought === '') return undefined;
  // Compiled on first use: rules beyond a limit are never compiled.
  let made: Matcher | undefined;
  return {
    negated,
    cost: bySuffix || !GLOB_SPECIAL.test(sought) ? 0 : sought.length,
    matches: (path, isFolder, effort) => {
      effort.left -= COMPARISON;
      if (effort.left < 0 || (foldersOnly && !isFolder)) return false;
      made ??= bySuffix ? (name) => name.endsWith(suffix) : textMatcher(sought);
      return made(ofNames ? path.slice(path.lastIndexOf('/') + 1) : path, effort);
    },
  };
}

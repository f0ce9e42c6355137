import { commonEnd, commonLength } from '../../values/common-length.js';
import { firstFrom } from '../../values/first-from.js';

/** A text with its tokens, and those in front of each of its lines that begins a count of its own. */
interface CountedText {
  readonly text: string;
  readonly tokens: number;
  /** Where these lines begin, in UTF-16 units, in order; the first one is not among them. */
  readonly starts: readonly number[];
  readonly before: readonly number[];
}

/** How a text is taken apart, and what one of its lines counts. */
interface LineCounting {
  /** Whether a line that begins at a place, behind a line end, is counted by itself. */
  readonly isApart: (text: string, at: number) => boolean;
  readonly count: (line: string) => number;
}

/** How many texts are kept, and of how many UTF-16 units each: some contexts in all their sections. */
const KEPT = 16;
const [LEAST_UNITS, MOST_UNITS] = [8_192, 262_144];

/** What two texts have in common at their beginnings and, behind that, at their ends, in UTF-16 units. */
interface Common {
  readonly begin: number;
  readonly end: number;
}

const NOTHING: Common = { begin: 0, end: 0 };

/** Fewer units than these in common count for nothing: that is told at once. */
const LEAST = 16;

function commonOf(a: string, b: string): Common {
  const begin = a.slice(0, LEAST) === b.slice(0, LEAST) ? commonLength(a, b) : 0;
  const end = a.slice(-LEAST) === b.slice(-LEAST) ? commonEnd(a, b, Math.min(a.length, b.length) - begin) : 0;
  return { begin, end };
}

const itself = (place: number): number => place;

/**
 * Counts texts line by line, and of a text that begins and ends as one of the last ones did, only the lines between: the sections of a session's contexts, and
 * parts of them.
 */
export class LineCounts {
  readonly #lines: LineCounting;
  /** The newest last. */
  #kept: readonly CountedText[] = [];

  constructor(lines: LineCounting) {
    this.#lines = lines;
  }

  /** What the lines of a text count, added up. */
  count(text: string): number {
    return this.#keep(this.#between(text, undefined, NOTHING));
  }

  /** The same of a text that has most in common with one of the last ones; undefined where it has not. */
  countAlike(text: string): number | undefined {
    if (text.length < LEAST_UNITS) return undefined;
    let [like, common]: [CountedText | undefined, Common] = [undefined, NOTHING];
    for (const one of this.#kept) {
      const found = commonOf(text, one.text);
      if (found.begin + found.end > common.begin + common.end) [like, common] = [one, found];
    }
    return common.begin + common.end > text.length / 2 ? this.#keep(this.#between(text, like, common)) : undefined;
  }

  #keep(counted: CountedText): number {
    const { text, tokens } = counted;
    if (text.length < LEAST_UNITS || text.length > MOST_UNITS) return tokens;
    // A section of a context would keep all of it in memory: its bytes are copied.
    const copy = { ...counted, text: Buffer.from(text).toString() };
    this.#kept = [...this.#kept.filter((one) => one.text !== text), copy].slice(-KEPT);
    return tokens;
  }

  /** The lines between what a text has in common with one that was counted are counted, all of them where there is none. */
  #between(text: string, like: CountedText | undefined, { begin, end }: Common): CountedText {
    // A line of the common beginning ends where the next one begins, with its first character.
    const first = like === undefined ? 0 : firstFrom(like.starts, begin, itself);
    const starts = like?.starts.slice(0, first) ?? [];
    const before = like?.before.slice(0, first) ?? [];
    const moved = text.length - (like?.text.length ?? 0);
    // Of the common end, with the line end in front of it.
    const last = like === undefined ? 0 : firstFrom(like.starts, like.text.length - end + 1, itself);
    const upto = like?.starts[last];
    let from = starts.at(-1) ?? 0;
    let tokens = before.at(-1) ?? 0;
    const stop = upto === undefined ? text.length : upto + moved;
    for (let at = text.indexOf('\n', from) + 1; at > 0 && at < stop; at = text.indexOf('\n', at) + 1) {
      if (!this.#lines.isApart(text, at)) continue;
      tokens += this.#lines.count(text.slice(from, at));
      starts.push(at);
      before.push(tokens);
      from = at;
    }
    tokens += this.#lines.count(text.slice(from, stop));
    if (like === undefined || upto === undefined) return { text, tokens, starts, before };
    const more = tokens - (like.before[last] as number);
    for (let i = last; i < like.starts.length; i++) {
      starts.push((like.starts[i] as number) + moved);
      before.push((like.before[i] as number) + more);
    }
    return { text, tokens: like.tokens + more, starts, before };
  }
}

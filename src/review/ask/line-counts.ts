import { commonEnd, commonLength } from '../../values/common-length.js';
import { firstFrom } from '../../values/first-from.js';

/** A counted text: its tokens, and the tokens before each line that is counted separately. */
interface CountedText {
  readonly text: string;
  readonly tokens: number;
  /** Offsets of these lines in UTF-16 units, ascending, without the first line. */
  readonly starts: readonly number[];
  readonly before: readonly number[];
}

/** How to split a text into lines and count one line. */
interface LineCounting {
  /** Whether the line that begins at an offset, after a line end, is counted separately. */
  readonly isApart: (text: string, at: number) => boolean;
  readonly count: (line: string) => number;
}

/** Maximum number of cached texts. Enough for a few contexts with all their sections. */
const KEPT = 16;
const [LEAST_UNITS, MOST_UNITS] = [8_192, 262_144];

/** The lengths of the common beginning and the common end of two texts, in UTF-16 units. */
interface Common {
  readonly begin: number;
  readonly end: number;
}

const NOTHING: Common = { begin: 0, end: 0 };

/** Minimum length of a common part in UTF-16 units. Counting a shorter one is fast. */
const LEAST = 16;

function commonOf(a: string, b: string): Common {
  const begin = a.slice(0, LEAST) === b.slice(0, LEAST) ? commonLength(a, b) : 0;
  const end = a.slice(-LEAST) === b.slice(-LEAST) ? commonEnd(a, b, Math.min(a.length, b.length) - begin) : 0;
  return { begin, end };
}

const itself = (place: number): number => place;

/**
 * Counts texts line by line. If a text begins and ends like a recent one, it counts only the lines
 * that differ. The sections of consecutive contexts are usually alike in this way.
 */
export class LineCounts {
  readonly #lines: LineCounting;
  /** The newest comes last. */
  #kept: readonly CountedText[] = [];

  constructor(lines: LineCounting) {
    this.#lines = lines;
  }

  /** Returns the sum of the tokens of a text's lines. */
  count(text: string): number {
    return this.#keep(this.#between(text, undefined, NOTHING));
  }

  /**
   * Returns the count of a text, based on the recent text that shares most with it. Undefined if no
   * recent text shares more than half.
   */
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
    // Copies the bytes, because a section would keep its whole context in memory.
    const copy = { ...counted, text: Buffer.from(text).toString() };
    this.#kept = [...this.#kept.filter((one) => one.text !== text), copy].slice(-KEPT);
    return tokens;
  }

  /** Counts the lines between the common parts; all lines if there are none. */
  #between(text: string, like: CountedText | undefined, { begin, end }: Common): CountedText {
    // A line of the common beginning counts only if the first character of the next line is common,
    // too.
    const first = like === undefined ? 0 : firstFrom(like.starts, begin, itself);
    const starts = like?.starts.slice(0, first) ?? [];
    const before = like?.before.slice(0, first) ?? [];
    const moved = text.length - (like?.text.length ?? 0);
    // The common end must include the line end before the line.
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

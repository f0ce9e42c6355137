import type { TokenCounter } from '../projection/entry.js';
import { CortexfsError } from './errors.js';
import type { MessageLine } from './message-lines.js';

/** The sources of a pack: the files of the context area, and the lines of `messages.jsonl`. */
export interface PackSources {
  readonly session: string;
  readonly files: ReadonlyMap<string, string>;
  readonly lines: readonly MessageLine[];
}

/** An item of a pack with its source and its tokens in `pack.md`. */
export interface PackItem {
  readonly kind: string;
  readonly source: string;
  /** Lines of `messages.jsonl`: `tail:N` for the last N, or `7-7`. */
  readonly range?: string;
  readonly tokens: number;
}

/** A pack as its two files. */
export interface Pack {
  readonly items: readonly PackItem[];
  /** Items that did not fit. */
  readonly leftOut: readonly PackItem[];
  /** The tokens of the whole `pack.md`. */
  readonly tokens: number;
  readonly json: string;
  readonly markdown: string;
}

/** Number of last lines in a pack without a budget. */
const UNLIMITED_TAIL = 40;

interface Piece {
  readonly item: PackItem;
  readonly text: string;
}

const KINDS: readonly (readonly [RegExp, string])[] = [
  [/^context\/pinned\/[^/]+$/, 'system'],
  [/^context\/summary\.md$/, 'summary'],
  [/^context\/facts\.jsonl$/, 'facts'],
  [/^context\/decisions\.jsonl$/, 'decisions'],
  [/^context\/todo\.md$/, 'todo'],
  [/^context\/refs\.jsonl$/, 'refs'],
];
const CHILD_KINDS: readonly (readonly [RegExp, string])[] = [
  [/^context\/child\/[^/]+\/result\.md$/, 'child_result'],
  [/^context\/child\/[^/]+\/refs\.jsonl$/, 'child_refs'],
];

/** Returns a code fence that no run of backquotes in the text closes. */
function fenceFor(text: string): string {
  const longest = [...text.matchAll(/`{3,}/g)].reduce((most, [run]) => Math.max(most, run.length), 2);
  return '`'.repeat(longest + 1);
}

function section({ item: { kind, source, range, tokens }, text }: Piece): string {
  const fence = fenceFor(text);
  const place = range === undefined ? '' : `range: ${range}\n`;
  const ended = text.endsWith('\n') ? text : `${text}\n`;
  return `\n## ${kind}\n\nsource: ${source}\n${place}tokens: ${tokens}\n\n${fence}\n${ended}${fence}\n`;
}

class PackBuilder {
  readonly #sources: PackSources;
  readonly #counter: TokenCounter;
  readonly #budget: number | undefined;
  readonly #heading: string;

  constructor(sources: PackSources, counter: TokenCounter, budget: number | undefined) {
    this.#sources = sources;
    this.#counter = counter;
    this.#budget = budget;
    const limit = budget === undefined ? '' : `budget_tokens: ${budget}\n`;
    this.#heading = `# Context pack\n\nsession: ${sources.session}\n${limit}`;
  }

  build(): Pack {
    const { lines } = this.#sources;
    const ask = lines.findLastIndex(({ isAsk }) => isAsk);
    const asked = ask < 0 ? undefined : this.#messages(`${ask + 1}-${ask + 1}`, ask, ask + 1);
    const least = this.#count(asked === undefined ? [] : [asked]);
    if (this.#budget !== undefined && least > this.#budget) {
      // The pack states its budget, so naming the larger minimum can itself take more tokens.
      const enough = least + this.#counter.count(`${least}`);
      throw new CortexfsError(
        'budget-too-small',
        `the pack's heading and the user's newest message take ${least} tokens: ` +
          `the budget is ${this.#budget}, give at least ${enough}`,
      );
    }
    let room = (this.#budget ?? Number.POSITIVE_INFINITY) - least;
    const leftOut: PackItem[] = [];
    const fitting = (kinds: typeof KINDS): Piece[] => {
      const taken: Piece[] = [];
      for (const piece of this.#derived(kinds)) {
        const { tokens } = piece.item;
        if (tokens > room) leftOut.push(piece.item);
        else {
          room -= tokens;
          taken.push(piece);
        }
      }
      return taken;
    };
    const before = fitting(KINDS);
    const behind = fitting(CHILD_KINDS);
    let start = this.#tailStart(ask, room + (asked?.item.tokens ?? 0), room);
    for (;;) {
      const recent = this.#recent(start, ask, asked);
      const pieces = [...before, ...recent, ...behind];
      if (this.#budget === undefined || this.#count(pieces) <= this.#budget) return this.#pack(pieces, leftOut);
      // Joined texts can take a few tokens more than the sum of their parts.
      const last = start < lines.length ? undefined : (behind.pop() ?? before.pop());
      if (last === undefined) start = this.#nextStart(start);
      else leftOut.push(last.item);
    }
  }

  #derived(kinds: typeof KINDS): readonly Piece[] {
    const { files } = this.#sources;
    const paths = [...files.keys()].sort();
    return kinds.flatMap(([pattern, kind]) =>
      paths.flatMap((source) => {
        const text = files.get(source) ?? '';
        return pattern.test(source) && text !== '' ? [this.#piece({ kind, source }, text)] : [];
      }),
    );
  }

  #piece(item: Omit<PackItem, 'tokens'>, text: string): Piece {
    const tokens = this.#counter.count(section({ item: { ...item, tokens: 0 }, text }));
    return { item: { ...item, tokens }, text };
  }

  #messages(range: string, from: number, to: number): Piece {
    const text = this.#sources.lines.slice(from, to).map((line) => `${line.text}\n`);
    return this.#piece({ kind: 'recent_messages', source: 'messages.jsonl', range }, text.join(''));
  }

  /** Returns the last lines, preceded by the user's newest message if it is not among them. */
  #recent(start: number, ask: number, asked: Piece | undefined): readonly Piece[] {
    const { lines } = this.#sources;
    const tail = start >= lines.length ? [] : [this.#messages(`tail:${lines.length - start}`, start, lines.length)];
    return asked === undefined || start <= ask ? tail : [asked, ...tail];
  }

  /**
   * Returns the first line of the longest tail that fits and does not begin with a result.
   * `withAsk` is the room if the tail contains the user's newest message, `without` the room if it
   * does not.
   */
  #tailStart(ask: number, withAsk: number, without: number): number {
    const { lines } = this.#sources;
    let start = lines.length;
    let tokens = this.#counter.count(
      section({ item: { kind: 'recent_messages', source: 'messages.jsonl', range: 'tail:1000', tokens: 0 }, text: '' }),
    );
    for (let at = lines.length - 1; at >= 0; at--) {
      if (this.#budget === undefined && lines.length - at > UNLIMITED_TAIL) break;
      tokens += this.#counter.count(`${lines[at]?.text}\n`);
      if (tokens > withAsk) break;
      const fits = at <= ask ? tokens <= withAsk : tokens <= without;
      if (fits && lines[at]?.role !== 'tool') start = at;
    }
    return start;
  }

  #nextStart(start: number): number {
    const { lines } = this.#sources;
    const next = lines.findIndex(({ role }, at) => at > start && role !== 'tool');
    return next < 0 ? lines.length : next;
  }

  #markdown(pieces: readonly Piece[]): string {
    return `${this.#heading}${pieces.map(section).join('')}`;
  }

  #count(pieces: readonly Piece[]): number {
    return this.#counter.count(this.#markdown(pieces));
  }

  #pack(pieces: readonly Piece[], leftOut: readonly PackItem[]): Pack {
    const markdown = this.#markdown(pieces);
    const tokens = this.#counter.count(markdown);
    const items = pieces.map(({ item }) => item);
    const { session } = this.#sources;
    const budget = this.#budget === undefined ? {} : { budget_tokens: this.#budget };
    const value = { session, ...budget, counter: this.#counter.name, tokens, items, left_out: leftOut };
    return { items, leftOut, tokens, json: `${JSON.stringify(value, null, 2)}\n`, markdown };
  }
}

/**
 * Packs the working set of a session under a budget. Pins, summary, facts, decisions, open work,
 * references and children's results are added in that order while they fit, then the last messages.
 * The user's newest message is always included. The last messages never begin with a result.
 *
 * With a budget, the whole `pack.md` stays within it, by the counter named in `pack.json`. Without
 * a budget, only a few last messages are packed. Pure: equal sources give equal bytes.
 * @throws {CortexfsError} `budget-too-small`, with the minimum budget
 */
export function packSession(sources: PackSources, counter: TokenCounter, budget?: number): Pack {
  return new PackBuilder(sources, counter, budget).build();
}

import { defined } from '../values/defined.js';
import { firstUnits, splitsPair } from '../values/surrogate-pairs.js';
import { ToolError } from './tool.js';

/** Maximum size of a text in one answer. */
export interface OutputLimits {
  /** Number of UTF-16 units. */
  readonly chars: number;
  readonly lines: number;
}

/** Where a page starts. Lines and columns are counted from 1. */
export interface PageStart {
  readonly offset: number;
  /** First character of that line. It is needed for lines longer than an answer. */
  readonly column: number;
  /** Number of requested lines. Undefined for as many as fit. */
  readonly limit?: number | undefined;
}

/**
 * A part of a text that fits into an answer. It has whole lines, or a part of one line that does
 * not fit.
 */
export interface Page {
  /** The text of the page, exactly, with its line endings. */
  readonly text: string;
  readonly firstLine: number;
  readonly lastLine: number;
  /** Number of lines in the whole text. No line follows a final line end. */
  readonly totalLines: number;
  /** Number of UTF-16 units in the whole text. */
  readonly totalChars: number;
  /** Where the next page starts. Undefined at the end of the text. */
  readonly next?: { readonly offset: number; readonly column?: number };
  /** Whether the page is the whole text. */
  readonly whole: boolean;
}

/**
 * Takes one page from a text that is given in pieces, and counts the rest. Pieces may end anywhere.
 * But if the page starts inside a line, no piece may split a surrogate pair. Only the page and the
 * current line are in memory.
 */
export class PageReader {
  #start: PageStart;
  readonly #limits: OutputLimits;
  /** The page's complete lines. Each entry is a part of a piece and may have many lines. */
  #taken: string[] = [];
  /** The piece, if there was only one so far. */
  #piece: string | undefined;
  #takenChars = 0;
  #takenLines = 0;
  /** The text of the current line that earlier pieces had. */
  #pending = '';
  /** Number of the current line's characters that the page has so far. */
  #pendingChars = 0;
  #line = 1;
  #column = 0;
  #totalChars = 0;
  #next: { offset: number; column?: number } | undefined;

  constructor(start: PageStart, limits: OutputLimits) {
    this.#start = start;
    this.#limits = {
      chars: Math.max(2, limits.chars),
      lines: Math.max(1, Math.min(limits.lines, start.limit ?? limits.lines)),
    };
  }

  /** Reads the next piece of the text. */
  push(piece: string): void {
    this.#piece = this.#totalChars === 0 ? piece : undefined;
    this.#totalChars += piece.length;
    // The page takes one range of a piece: from its start to the end of the last whole line.
    let from = piece.length;
    let end = 0;
    let position = 0;
    while (position < piece.length) {
      const lineEnd = piece.indexOf('\n', position);
      const to = lineEnd < 0 ? piece.length : lineEnd + 1;
      if (this.#next === undefined && this.#line >= this.#start.offset) {
        const begin = this.#beginning(piece, position);
        if (begin < to) {
          from = Math.min(from, begin);
          this.#take(piece, begin, to);
        }
      }
      if (lineEnd < 0) {
        this.#column += to - position;
      } else {
        if (this.#commit()) end = to;
        this.#line++;
        this.#column = 0;
      }
      position = to;
    }
    if (from < end) {
      this.#taken.push(this.#pending + piece.slice(from, end));
      this.#pending = '';
    }
    this.#pending = this.#pendingChars === 0 ? '' : this.#pending + piece.slice(Math.max(from, end));
  }

  /**
   * Returns where the page starts in a piece. The piece continues the current line at `position`.
   * If the column is inside a surrogate pair, the page starts before the pair.
   */
  #beginning(piece: string, position: number): number {
    if (this.#line !== this.#start.offset) return position;
    const begin = position + Math.max(0, this.#start.column - 1 - this.#column);
    if (begin === position || !splitsPair(piece, begin)) return begin;
    this.#start = { ...this.#start, column: this.#start.column - 1 };
    return begin - 1;
  }

  /**
   * Adds a part of a line to the page. If the line does not fit, the page ends before it. If the
   * line is the page's first, the page ends inside it.
   */
  #take(piece: string, from: number, to: number): void {
    if (this.#takenLines >= this.#limits.lines) {
      this.#next = { offset: this.#line };
      return;
    }
    this.#pendingChars += to - from;
    if (this.#takenChars + this.#pendingChars <= this.#limits.chars) return;
    this.#pendingChars = 0;
    this.#next = { offset: this.#line };
    if (this.#takenLines > 0) return;
    const part = firstUnits(this.#pending + piece.slice(from, to), this.#limits.chars);
    const first = this.#line === this.#start.offset ? this.#start.column : 1;
    this.#taken.push(part);
    this.#takenLines = 1;
    this.#next = { offset: this.#line, column: first + part.length };
  }

  /** Completes a line of the page. Returns false if the page has no part of the line. */
  #commit(): boolean {
    if (this.#pendingChars === 0) return false;
    this.#takenChars += this.#pendingChars;
    this.#takenLines++;
    this.#pendingChars = 0;
    return true;
  }

  /** Returns the page. Call it once, after all pieces were pushed. */
  end(): Page {
    if (this.#commit()) this.#taken.push(this.#pending);
    const totalLines = this.#column > 0 ? this.#line : this.#line - 1;
    const { offset, column } = this.#start;
    const whole = offset === 1 && column === 1 && this.#next === undefined;
    return {
      // A whole text is returned as the same string, so that it is hashed and stored once. A part
      // is copied, because a slice would keep the whole text in memory.
      text: whole && this.#piece !== undefined ? this.#piece : copied(this.#taken),
      firstLine: offset,
      lastLine: offset + this.#takenLines - 1,
      totalLines,
      totalChars: this.#totalChars,
      ...defined({ next: this.#next }),
      whole,
    };
  }
}

/** Joins texts in new memory. A slice would keep its source in memory. */
function copied(texts: readonly string[]): string {
  const [first = ''] = texts;
  return (texts.length === 1 ? [first.slice(0, 1), first.slice(1)] : texts).join('');
}

/** Returns a page of a text that is in memory. */
export function pageOf(text: string, start: PageStart, limits: OutputLimits): Page {
  const reader = new PageReader(start, limits);
  reader.push(text);
  return reader.end();
}

/** The page that is wanted, and the text's name for errors. */
interface WantedPage {
  readonly start: PageStart;
  readonly limits: OutputLimits;
  readonly name: string;
}

/**
 * Returns a page of a text that is given in pieces.
 *
 * @throws {ToolError} `out-of-range` – the page would start after the end of the text
 */
export function pageOfPieces(text: Iterable<string>, { start, limits, name }: WantedPage): Page {
  const reader = new PageReader(start, limits);
  for (const piece of text) reader.push(piece);
  const page = reader.end();
  if (start.offset > Math.max(1, page.totalLines)) {
    throw new ToolError(
      'out-of-range',
      `offset ${start.offset} is past the end of ${name}, which has ${page.totalLines} lines.`,
      {
        next: `Use an offset from 1 to ${Math.max(1, page.totalLines)}.`,
      },
    );
  }
  if (page.text === '' && start.column > 1) {
    throw new ToolError('out-of-range', `column ${start.column} is past the end of line ${start.offset} of ${name}.`, {
      next: `Continue with offset=${start.offset + 1}.`,
    });
  }
  return page;
}

import { LRUCache } from 'lru-cache';
import { bareLines } from '../../../foreign-tools/text-edits.js';
import type { OtherLines } from '../../../history/rebuild/changed-outside.js';
import type { CanonicalPath } from '../../../objects/ids.js';

/** The lines of a file as they were last read or written. */
interface KnownLines {
  readonly lines: ReadonlyMap<number, string>;
  /** How many commands of unknown effect had run before. */
  readonly doubts: number;
}

/** Lines that a call showed. */
interface ShownLines {
  readonly text: string;
  /** Number of the first line, from 1. */
  readonly startLine: number;
}

/** Maximum UTF-16 units of remembered lines. */
const REMEMBERED_UNITS = 8 * 1_048_576;
const LINE_UNITS = 16;
/** Tools cut longer lines, each in its own way. */
const LONGEST_COMPARED = 1_000;

function sizeOf({ lines }: KnownLines): number {
  let size = LINE_UNITS;
  for (const line of lines.values()) size += line.length + LINE_UNITS;
  return size;
}

/** Tools cut spaces and blank lines from the end of an output. */
function isSame(one: string, other: string, isLast: boolean): boolean {
  if (one.length > LONGEST_COMPARED || other.length > LONGEST_COMPARED) return true;
  return isLast ? one.trimEnd() === other.trimEnd() : one === other;
}

/**
 * Finds changes from outside: a read shows another text of a line than the last read or write of
 * it. Unlike the file tree, it remembers lines beyond commands that may have changed any file.
 */
export class ReadLines {
  readonly #files: LRUCache<CanonicalPath, KnownLines>;
  #doubts = 0;

  /** `maxUnits` bounds the remembered lines. */
  constructor(maxUnits = REMEMBERED_UNITS) {
    this.#files = new LRUCache({ maxSize: maxUnits, sizeCalculation: sizeOf });
  }

  /** Notes that a command of unknown effect ran. */
  doubt(): void {
    this.#doubts += 1;
  }

  /** Notes that a recorded call changed a file. `text` is all of it, if that is known. */
  changed(path: CanonicalPath, text: string | undefined): void {
    this.#files.delete(path);
    if (text !== undefined) this.#learn(path, numbered(bareLines(text), 1), this.#doubts);
  }

  /** Takes a read. Returns the lines that differ from the last time that they were seen. */
  read(path: CanonicalPath, { text, startLine }: ShownLines): Omit<OtherLines, 'path'> | undefined {
    const shown = bareLines(text.replaceAll('\r\n', '\n'));
    const known = this.#files.get(path);
    const first = startLine + (known === undefined ? 0 : blanksCut(known.lines, { shown, startLine }));
    const fresh = numbered(shown, first);
    const other = [...fresh].flatMap(([n, line]) => {
      const before = known?.lines.get(n);
      const isLast = n === first + shown.length - 1;
      return before === undefined || isSame(before, line, isLast) ? [] : [n];
    });
    const [from, to] = [other[0], other.at(-1)];
    if (known === undefined || from === undefined || to === undefined) {
      const all = new Map([...(known?.lines ?? []), ...fresh]);
      this.#learn(path, all, Math.min(known?.doubts ?? this.#doubts, this.#doubts));
      return undefined;
    }
    this.#learn(path, fresh, this.#doubts);
    return { from, to, isDoubted: known.doubts < this.#doubts };
  }

  #learn(path: CanonicalPath, lines: ReadonlyMap<number, string>, doubts: number): void {
    this.#files.set(path, { lines, doubts });
  }
}

/** Numbers lines. Some tools show the line ends of Windows. */
const numbered = (lines: readonly string[], first: number): ReadonlyMap<number, string> =>
  new Map(lines.map((line, i) => [first + i, line.replace(/\r$/, '')]));

/** Returns how many blank lines a tool cut from the beginning of an output, if that explains it. */
function blanksCut(
  known: ReadonlyMap<number, string>,
  { shown, startLine }: { readonly shown: readonly string[]; readonly startLine: number },
): number {
  let cut = 0;
  while (known.get(startLine + cut)?.trim() === '') cut += 1;
  if (cut === 0 || shown[0]?.trim() === '') return 0;
  const isMoved = shown.every((line, i) =>
    isSame(known.get(startLine + cut + i) ?? line, line, i === shown.length - 1),
  );
  return isMoved ? cut : 0;
}

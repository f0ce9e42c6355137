import { LRUCache } from 'lru-cache';
import type { CanonicalPath } from '../../../objects/ids.js';

/** Shorter lines are said by chance. */
const TELLING_UNITS = 30;
const REMEMBERED_LINES = 50_000;
const LONGEST_LINE = 2_000;

/** A number for a line that two lines rarely share: two running hashes of 26 bits. */
function lineKey(line: string): number {
  let a = 0x811c9dc5;
  let b = 5_381;
  for (let i = 0; i < line.length; i++) {
    const code = line.charCodeAt(i);
    a = Math.imul(a ^ code, 0x01000193);
    b = (Math.imul(b, 33) + code) | 0;
  }
  return ((a >>> 6) & 0x3ffffff) * 0x4000000 + ((b >>> 6) & 0x3ffffff);
}

function tellingLines(text: string): readonly string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line.length >= TELLING_UNITS && line.length <= LONGEST_LINE);
}

/** Lines that files were seen to hold, to tell whether an agent quotes one of them later. Remembers the newest lines only. */
export class QuotedLines {
  readonly #paths: LRUCache<number, CanonicalPath>;

  constructor(most = REMEMBERED_LINES) {
    this.#paths = new LRUCache({ max: most });
  }

  /** A file was seen to hold a text. */
  learn(path: CanonicalPath, text: string): void {
    for (const line of tellingLines(text)) this.#paths.set(lineKey(line), path);
  }

  /** The files whose lines a text holds, each once. */
  quotedIn(text: string): readonly CanonicalPath[] {
    const found = new Set<CanonicalPath>();
    for (const line of tellingLines(text)) {
      const path = this.#paths.get(lineKey(line));
      if (path !== undefined) found.add(path);
    }
    return [...found];
  }
}

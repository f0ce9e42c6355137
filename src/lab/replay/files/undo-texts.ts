import { LRUCache } from 'lru-cache';
import type { CanonicalPath } from '../../../objects/ids.js';

/** How many changes of one file can be taken back. */
const DEPTH = 20;
/** UTF-16 units of text that are remembered; the files that were changed longest ago are given up. */
const REMEMBERED_UNITS = 4 * 1_048_576;
/** What an entry takes beside its text. */
const ENTRY_UNITS = 64;

/** What stood in a file before a change; undefined where that was not known. */
type Before = string | undefined;

const sizeOf = (texts: readonly Before[]): number => texts.reduce((sum, text) => sum + (text?.length ?? 0) + ENTRY_UNITS, ENTRY_UNITS);

/**
 * The texts of files before their last changes, for tools that take a change back. A text that was given up is not known any more, nor is then the file whose
 * change is taken back.
 */
export class UndoTexts {
  readonly #texts: LRUCache<CanonicalPath, readonly Before[]>;
  readonly #maxUnits: number;

  /** `maxUnits` bounds the remembered texts. */
  constructor(maxUnits = REMEMBERED_UNITS) {
    this.#maxUnits = maxUnits;
    this.#texts = new LRUCache({ maxSize: maxUnits, sizeCalculation: sizeOf });
  }

  /** Remembers what stood in a file before a change. */
  push(path: CanonicalPath, text: Before): void {
    let texts = [...(this.#texts.get(path) ?? []), text].slice(-DEPTH);
    while (texts.length > 1 && sizeOf(texts) > this.#maxUnits) texts = texts.slice(1);
    this.#texts.set(path, texts);
  }

  /** Takes back the last change of a file that is remembered: the text before it. */
  pop(path: CanonicalPath): Before {
    const texts = this.#texts.get(path) ?? [];
    if (texts.length > 1) this.#texts.set(path, texts.slice(0, -1));
    else this.#texts.delete(path);
    return texts.at(-1);
  }
}

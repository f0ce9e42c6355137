import { LRUCache } from 'lru-cache';
import { bareLines } from '../../../foreign-tools/text-edits.js';
import type { CanonicalPath } from '../../../objects/ids.js';

/** What a recording lets one know of a file at one moment. */
type FileKnowledge =
  /** All of its text; `sure` until something ran that may have changed it. */
  | { readonly state: 'whole'; readonly text: string; readonly sure: boolean }
  /** Some of its lines, from 1, without their ends. */
  | { readonly state: 'partial'; readonly lines: ReadonlyMap<number, string>; readonly total: number | undefined }
  /** It exists. */
  | { readonly state: 'named' }
  /** It has changed in a way that cannot be followed, or its text was given up. */
  | { readonly state: 'stale' }
  | { readonly state: 'deleted' };

export type FileState = FileKnowledge['state'];

/** Lines of a file that a recording shows. */
interface ShownLines {
  readonly text: string;
  /** Number of the first one, from 1. */
  readonly startLine: number;
  /** How many the file has, where the output says it. */
  readonly total?: number | undefined;
}

/** UTF-16 units of text that a tree remembers; the files that were used longest ago become `stale`. */
const REMEMBERED_UNITS = 24 * 1_048_576;
const OTHER_FILES = 200_000;

const sizeOf = (file: FileKnowledge): number => {
  if (file.state === 'whole') return file.text.length + 64;
  if (file.state !== 'partial') return 64;
  let size = 64;
  for (const line of file.lines.values()) size += line.length + 16;
  return size;
};

/** All lines from the first to the last are known: then the text is, but for the end of its last line, which is taken to have one. */
function completed(lines: ReadonlyMap<number, string>, total: number | undefined): FileKnowledge {
  if (total === undefined || lines.size < total) return { state: 'partial', lines, total };
  const all: string[] = [];
  for (let n = 1; n <= total; n++) {
    const line = lines.get(n);
    if (line === undefined) return { state: 'partial', lines, total };
    all.push(line);
  }
  return { state: 'whole', text: all.length === 0 ? '' : `${all.join('\n')}\n`, sure: true };
}

/** Whether lines that are shown contradict what is known of a file. */
function contradicts(known: FileKnowledge, shown: ShownLines, lines: readonly string[]): boolean {
  if (known.state === 'whole') {
    const own = bareLines(known.text);
    if (shown.total !== undefined && Math.abs(shown.total - own.length) > 1) return true;
    return lines.some(
      (line, i) =>
        own[shown.startLine - 1 + i] !== line && !(line === '' && own[shown.startLine - 1 + i] === undefined),
    );
  }
  if (known.state !== 'partial') return false;
  if (shown.total !== undefined && known.total !== undefined && shown.total !== known.total) return true;
  return lines.some((line, i) => {
    const before = known.lines.get(shown.startLine + i);
    return before !== undefined && before !== line;
  });
}

/**
 * The files of a recorded session as far as the recording shows them: nothing is ever taken from the disk and nothing is invented. What cannot be known is
 * marked as such; a partial read never makes a file whole unless all of its lines have been seen.
 */
export class FileTree {
  readonly #texts: LRUCache<CanonicalPath, FileKnowledge>;
  /** Files without a text to remember. */
  readonly #others = new Map<CanonicalPath, FileKnowledge>();
  /** Texts that were given up because there were too many. */
  forgotten = 0;

  /** `maxUnits` bounds the remembered texts. */
  constructor(maxUnits = REMEMBERED_UNITS) {
    this.#texts = new LRUCache({
      maxSize: maxUnits,
      sizeCalculation: sizeOf,
      dispose: (_file, path, reason) => {
        if (reason !== 'evict') return;
        this.forgotten += 1;
        this.#others.set(path, { state: 'stale' });
      },
    });
  }

  /** How many files are in which state. */
  get states(): Readonly<Record<FileState, number>> {
    const counts = { whole: 0, partial: 0, named: 0, stale: 0, deleted: 0 };
    for (const { state } of this.#texts.values()) counts[state] += 1;
    for (const { state } of this.#others.values()) counts[state] += 1;
    return counts;
  }

  /** What is known of a file; undefined where it was never observed. */
  get(path: CanonicalPath): FileKnowledge | undefined {
    return this.#texts.get(path) ?? this.#others.get(path);
  }

  /** Its text where all of it is known, and nothing may have changed it since. */
  text(path: CanonicalPath): string | undefined {
    const known = this.get(path);
    return known?.state === 'whole' && known.sure ? known.text : undefined;
  }

  /** All of a file's text is shown or was written; not `sure` where it was made from a text that was not. */
  setWhole(path: CanonicalPath, text: string, sure = true): void {
    this.#set(path, { state: 'whole', text, sure });
  }

  /** Some lines are shown: they are laid over what is known; where they contradict it, only they are known any more. */
  overlay(path: CanonicalPath, shown: ShownLines): void {
    const known = this.get(path);
    const lines = bareLines(shown.text);
    const sound = known !== undefined && !contradicts(known, shown, lines);
    if (sound && known.state === 'whole') return;
    const before = sound && known.state === 'partial' ? known : { lines: new Map<number, string>(), total: undefined };
    const all = new Map(before.lines);
    for (const [i, line] of lines.entries()) all.set(shown.startLine + i, line);
    this.#set(path, completed(all, shown.total ?? before.total));
  }

  /** It exists; what is known beyond that stays. */
  name(path: CanonicalPath): void {
    const known = this.get(path);
    if (known === undefined || known.state === 'deleted') this.#set(path, { state: 'named' });
  }

  /** It has changed in a way that cannot be followed. */
  lose(path: CanonicalPath): void {
    this.#set(path, { state: 'stale' });
  }

  /** Something ran that may have changed any file: what is known of them is not sure any more. */
  doubtAll(): void {
    for (const [path, known] of [...this.#texts.entries()]) {
      if (known.state === 'whole') this.#set(path, { ...known, sure: false });
      else this.lose(path);
    }
  }

  /** The files below a folder that are there as far as is known. */
  below(folder: CanonicalPath): readonly CanonicalPath[] {
    const inside = (path: CanonicalPath): boolean => path.startsWith(folder === '/' ? '/' : `${folder}/`);
    const all = [...this.#texts.keys(), ...this.#others.keys()].filter(inside);
    return all.filter((path) => this.get(path)?.state !== 'deleted').sort();
  }

  delete(path: CanonicalPath): void {
    this.#set(path, { state: 'deleted' });
  }

  /** A file has another name now, with all that is known of it. */
  move(from: CanonicalPath, to: CanonicalPath): void {
    const known = this.get(from);
    this.#set(to, known === undefined || known.state === 'deleted' ? { state: 'stale' } : known);
    this.delete(from);
  }

  #set(path: CanonicalPath, file: FileKnowledge): void {
    if (file.state === 'whole' || file.state === 'partial') {
      this.#others.delete(path);
      this.#texts.set(path, file);
      // A text that is larger than the whole memory is not taken up.
      if (!this.#texts.has(path)) this.#others.set(path, { state: 'stale' });
      return;
    }
    this.#texts.delete(path);
    if (this.#others.size < OTHER_FILES || this.#others.has(path)) this.#others.set(path, file);
  }
}

/** How many changes of one file can be taken back. */
const DEPTH = 20;
/** UTF-16 units of text that are remembered; the files that were changed longest ago are given up. */
const REMEMBERED_UNDO_UNITS = 4 * 1_048_576;
/** What an entry takes in addition to its text. */
const ENTRY_UNITS = 64;

/** What stood in a file before a change; undefined where that was not known. */
type Before = string | undefined;

const undoSize = (texts: readonly Before[]): number =>
  texts.reduce((sum, text) => sum + (text?.length ?? 0) + ENTRY_UNITS, ENTRY_UNITS);

/**
 * The texts of files before their last changes, for tools that take a change back. A text that was given up is not known any more, nor is then the file whose
 * change is taken back.
 */
export class UndoTexts {
  readonly #texts: LRUCache<CanonicalPath, readonly Before[]>;
  readonly #maxUnits: number;

  /** `maxUnits` bounds the remembered texts. */
  constructor(maxUnits = REMEMBERED_UNDO_UNITS) {
    this.#maxUnits = maxUnits;
    this.#texts = new LRUCache({ maxSize: maxUnits, sizeCalculation: undoSize });
  }

  /** Remembers what stood in a file before a change. */
  push(path: CanonicalPath, text: Before): void {
    let texts = [...(this.#texts.get(path) ?? []), text].slice(-DEPTH);
    while (texts.length > 1 && undoSize(texts) > this.#maxUnits) texts = texts.slice(1);
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

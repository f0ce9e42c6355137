import { LRUCache } from 'lru-cache';
import { bareLines } from '../../../foreign-tools/text-edits.js';
import type { CanonicalPath } from '../../../objects/ids.js';

/** The knowledge about a file at some point of the recording. */
type FileKnowledge =
  /** The whole text. `sure` is false once a command ran that may have changed it. */
  | { readonly state: 'whole'; readonly text: string; readonly sure: boolean }
  /** Some lines of the file, numbered from 1, without line endings. */
  | { readonly state: 'partial'; readonly lines: ReadonlyMap<number, string>; readonly total: number | undefined }
  /** The file is only known to exist. */
  | { readonly state: 'named' }
  /** The file changed in an unknown way, or its text was evicted. */
  | { readonly state: 'stale' }
  | { readonly state: 'deleted' };

export type FileState = FileKnowledge['state'];

/** Lines of a file that a recording shows. */
interface ShownLines {
  readonly text: string;
  /** Number of the first line, from 1. */
  readonly startLine: number;
  /** Number of lines of the file, if the output states it. */
  readonly total?: number | undefined;
}

/** Maximum UTF-16 units of cached text. The least recently used files become `stale`. */
const REMEMBERED_UNITS = 24 * 1_048_576;
const OTHER_FILES = 200_000;

const sizeOf = (file: FileKnowledge): number => {
  if (file.state === 'whole') return file.text.length + 64;
  if (file.state !== 'partial') return 64;
  let size = 64;
  for (const line of file.lines.values()) size += line.length + 16;
  return size;
};

/** Returns the whole text if all lines are known. Assumes that the last line has a line end. */
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

/** Returns true if shown lines contradict the known text. */
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
 * The files of a recorded session, as the recording shows them. The tree never reads the disk, and
 * never guesses a text. A file that was read in parts becomes whole only if all its lines were
 * shown.
 */
export class FileTree {
  readonly #texts: LRUCache<CanonicalPath, FileKnowledge>;
  /** The knowledge about files whose text is not cached. */
  readonly #others = new Map<CanonicalPath, FileKnowledge>();
  /** Number of texts evicted for lack of room. */
  forgotten = 0;

  /** `maxUnits` limits the cached texts. */
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

  /** Number of files in each state. */
  get states(): Readonly<Record<FileState, number>> {
    const counts = { whole: 0, partial: 0, named: 0, stale: 0, deleted: 0 };
    for (const { state } of this.#texts.values()) counts[state] += 1;
    for (const { state } of this.#others.values()) counts[state] += 1;
    return counts;
  }

  /** Returns what is known about a file; undefined if it was never observed. */
  get(path: CanonicalPath): FileKnowledge | undefined {
    return this.#texts.get(path) ?? this.#others.get(path);
  }

  /** Returns a file's text, if all of it is known and no command may have changed it since. */
  text(path: CanonicalPath): string | undefined {
    const known = this.get(path);
    return known?.state === 'whole' && known.sure ? known.text : undefined;
  }

  /**
   * Sets a file's whole text, as shown or written. `sure` is false if the text was computed from an
   * unsure text.
   */
  setWhole(path: CanonicalPath, text: string, sure = true): void {
    this.#set(path, { state: 'whole', text, sure });
  }

  /**
   * Adds shown lines to what is known. If the lines contradict the known text, only the shown lines
   * stay.
   */
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

  /** Records that a file exists, and keeps all other knowledge about it. */
  name(path: CanonicalPath): void {
    const known = this.get(path);
    if (known === undefined || known.state === 'deleted') this.#set(path, { state: 'named' });
  }

  /** Records a change whose result is unknown. */
  lose(path: CanonicalPath): void {
    this.#set(path, { state: 'stale' });
  }

  /** Marks all texts as unsure after a command that may have changed any file. */
  doubtAll(): void {
    for (const [path, known] of [...this.#texts.entries()]) {
      if (known.state === 'whole') this.#set(path, { ...known, sure: false });
      else this.lose(path);
    }
  }

  /** Returns the files below a folder that are known to exist. */
  below(folder: CanonicalPath): readonly CanonicalPath[] {
    const inside = (path: CanonicalPath): boolean => path.startsWith(folder === '/' ? '/' : `${folder}/`);
    const all = [...this.#texts.keys(), ...this.#others.keys()].filter(inside);
    return all.filter((path) => this.get(path)?.state !== 'deleted').sort();
  }

  delete(path: CanonicalPath): void {
    this.#set(path, { state: 'deleted' });
  }

  /** Renames a file together with what is known about it. */
  move(from: CanonicalPath, to: CanonicalPath): void {
    const known = this.get(from);
    this.#set(to, known === undefined || known.state === 'deleted' ? { state: 'stale' } : known);
    this.delete(from);
  }

  #set(path: CanonicalPath, file: FileKnowledge): void {
    if (file.state === 'whole' || file.state === 'partial') {
      this.#others.delete(path);
      this.#texts.set(path, file);
      // A text that exceeds the whole cache is not stored.
      if (!this.#texts.has(path)) this.#others.set(path, { state: 'stale' });
      return;
    }
    this.#texts.delete(path);
    if (this.#others.size < OTHER_FILES || this.#others.has(path)) this.#others.set(path, file);
  }
}

/** Maximum number of changes per file that can be undone. */
const DEPTH = 20;
/** Maximum UTF-16 units of stored texts. Files whose last change is oldest are evicted first. */
const REMEMBERED_UNDO_UNITS = 4 * 1_048_576;
/** The memory that an entry needs in addition to its text, in UTF-16 units. */
const ENTRY_UNITS = 64;

/** A file's text before a change; undefined if it was unknown. */
type Before = string | undefined;

const undoSize = (texts: readonly Before[]): number =>
  texts.reduce((sum, text) => sum + (text?.length ?? 0) + ENTRY_UNITS, ENTRY_UNITS);

/**
 * The texts of files before their last changes, for tools that undo a change. If a text was
 * evicted, undoing the change makes the file's text unknown.
 */
export class UndoTexts {
  readonly #texts: LRUCache<CanonicalPath, readonly Before[]>;
  readonly #maxUnits: number;

  /** `maxUnits` limits the stored texts. */
  constructor(maxUnits = REMEMBERED_UNDO_UNITS) {
    this.#maxUnits = maxUnits;
    this.#texts = new LRUCache({ maxSize: maxUnits, sizeCalculation: undoSize });
  }

  /** Stores a file's text before a change. */
  push(path: CanonicalPath, text: Before): void {
    let texts = [...(this.#texts.get(path) ?? []), text].slice(-DEPTH);
    while (texts.length > 1 && undoSize(texts) > this.#maxUnits) texts = texts.slice(1);
    this.#texts.set(path, texts);
  }

  /** Undoes the last stored change of a file and returns the text before it. */
  pop(path: CanonicalPath): Before {
    const texts = this.#texts.get(path) ?? [];
    if (texts.length > 1) this.#texts.set(path, texts.slice(0, -1));
    else this.#texts.delete(path);
    return texts.at(-1);
  }
}

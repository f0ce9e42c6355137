import { lstat } from 'node:fs/promises';
import { posix } from 'node:path';
import type { Editor } from '../../objects/file-author.js';
import { toNative } from '../access/native-path.js';

/** Maximum time in milliseconds between the traces of a save and its notice. */
const NEAR_MS = 5_000;
/** The file that Vim creates in a folder to check whether it may write there. */
const PROBE = '4913';
const MOST_NAMES = 500;

/** Files that an editor creates beside a file. */
interface Traces {
  readonly editor: Editor;
  /** Returns the possible names of a file that appears and disappears during a save. */
  readonly passing: (name: string) => readonly string[];
  /** Returns the name of the file that exists while the editor has the file open. */
  readonly open?: (name: string) => string;
}

const TRACES: readonly Traces[] = [
  { editor: 'Vim', passing: (name) => [`${name}~`, PROBE], open: (name) => `.${name}.swp` },
  { editor: 'Emacs', passing: (name) => [`.#${name}`] },
  { editor: 'Kate', passing: (name) => [`.${name}.kate-swp`] },
  { editor: 'JetBrains', passing: (name) => [`${name}___jb_tmp___`, `${name}___jb_old___`] },
];

const LIKE_A_TRACE = new RegExp(`^(?:\\..*\\.(?:kate-)?swp|\\.#.*|.*~|.*___jb_(?:tmp|old)___|${PROBE})$`);

const isThere = async (folder: string, name: string): Promise<boolean> =>
  (await lstat(toNative(posix.join(folder, name))).catch(() => undefined)) !== undefined;

/** Records the names of editors' files that appeared and disappeared in one folder. */
export class EditorTraces {
  readonly #folder: string;
  readonly #seen = new Map<string, number>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Takes a name that the system reported. */
  note(name: string): void {
    if (!LIKE_A_TRACE.test(name)) return;
    this.#seen.delete(name);
    this.#seen.set(name, Date.now());
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > MOST_NAMES && oldest !== undefined) this.#seen.delete(oldest);
  }

  /**
   * Returns the editor that has just saved a file. Undefined if there are traces of no editor, or
   * of several.
   */
  async editorOf(name: string): Promise<Editor | undefined> {
    const now = Date.now();
    const isNear = (trace: string): boolean => now - (this.#seen.get(trace) ?? Number.NEGATIVE_INFINITY) <= NEAR_MS;
    const found: Editor[] = [];
    for (const { editor, passing, open } of TRACES) {
      const passed = passing(name).filter(isNear);
      const isOpen = open === undefined || isNear(open(name)) || (await isThere(this.#folder, open(name)));
      const left = await Promise.all(passed.map((trace) => isThere(this.#folder, trace)));
      if (isOpen && left.includes(false)) found.push(editor);
    }
    return found.length === 1 ? found[0] : undefined;
  }
}

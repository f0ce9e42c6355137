import { mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import * as z from 'zod';
import { parseJson } from '../lab/recordings/json/json-text.js';
import { replaceFile } from '../process/owned-file.js';
import { type ContextUse, contextUseSchema } from './context-use.js';
import type { FoundFile } from './find-files.js';
import type { ReadFacts } from './read-facts.js';
import { sessionFactsSchema } from './session-facts.js';

/** Raised when the facts of unchanged files become different. */
const INDEX_VERSION = 4;

const knownFileSchema = z.object({
  size: z.number(),
  mtime: z.number(),
  /** The use of the context. Absent until a command asks for it, because it takes longer. */
  use: contextUseSchema.optional(),
  read: z.union([z.object({ facts: sessionFactsSchema }), z.object({ reason: z.string() })]),
});
type KnownFile = z.output<typeof knownFileSchema>;

const indexSchema = z.object({ version: z.literal(INDEX_VERSION), files: z.record(z.string(), knownFileSchema) });

/**
 * The facts of recordings that were read before, by path, size and time of the last change. It is a
 * cache: a damaged or older index is read anew from the recordings.
 */
export class SessionIndex {
  readonly #path: string;
  readonly #files: Map<string, KnownFile>;
  #changed = false;

  private constructor(path: string, files: Map<string, KnownFile>) {
    this.#path = path;
    this.#files = files;
  }

  /** Opens the index of a data folder, which need not exist. */
  static async open(dataDir: string): Promise<SessionIndex> {
    const path = join(dataDir, 'own-sessions.json');
    const text = await readFile(path, 'utf8').catch(() => '');
    const { data } = indexSchema.safeParse(parseJson(text));
    return new SessionIndex(path, new Map(Object.entries(data?.files ?? {})));
  }

  /** Returns what was read of a file if it has not changed since. */
  known({ path, size, mtime }: FoundFile): ReadFacts | undefined {
    const known = this.#files.get(path);
    return known?.size === size && known.mtime === mtime ? known.read : undefined;
  }

  keep({ path, size, mtime }: FoundFile, read: ReadFacts): void {
    this.#files.set(path, { size, mtime, read });
    this.#changed = true;
  }

  /** Returns what was found to be used in a file that has not changed since. */
  knownUse({ path }: FoundFile): ContextUse | undefined {
    return this.#files.get(path)?.use;
  }

  keepUse({ path }: FoundFile, use: ContextUse): void {
    const known = this.#files.get(path);
    if (known === undefined) return;
    this.#files.set(path, { ...known, use });
    this.#changed = true;
  }

  /** Forgets the files that no longer exist. */
  keepOnly(files: readonly FoundFile[]): void {
    const here = new Set(files.map(({ path }) => path));
    for (const path of this.#files.keys()) {
      if (here.has(path)) continue;
      this.#files.delete(path);
      this.#changed = true;
    }
  }

  /**
   * Writes the index if it changed. It contains prompts, so only this user can read it.
   */
  async save(): Promise<void> {
    if (!this.#changed) return;
    await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 });
    const index = { version: INDEX_VERSION, files: Object.fromEntries(this.#files) };
    await replaceFile(this.#path, JSON.stringify(index));
    this.#changed = false;
  }
}

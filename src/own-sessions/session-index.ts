import { mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import * as z from 'zod';
import { parseJson } from '../lab/recordings/json/json-text.js';
import { replaceFile } from '../process/owned-file.js';
import { type ContextUse, contextUseSchema } from './context-use.js';
import type { FoundFile } from './find-files.js';
import type { ReadFacts } from './read-facts.js';
import { sessionFactsSchema } from './session-facts.js';

/** Version of the index. Increase it when a change gives other facts for the same file. */
const INDEX_VERSION = 10;

const knownFileSchema = z.object({
  size: z.number(),
  mtime: z.number(),
  /** Missing until a command needs it, because computing it takes long. */
  use: contextUseSchema.optional(),
  read: z.union([z.object({ facts: sessionFactsSchema }), z.object({ reason: z.string() })]),
});
type KnownFile = z.output<typeof knownFileSchema>;

const indexSchema = z.object({ version: z.literal(INDEX_VERSION), files: z.record(z.string(), knownFileSchema) });

/**
 * A cache of the facts of recordings, by path. Facts are valid while the file keeps its size and
 * modification time. If the index is damaged or of an older version, all recordings are read again.
 */
export class SessionIndex {
  readonly #path: string;
  readonly #files: Map<string, KnownFile>;
  #changed = false;

  private constructor(path: string, files: Map<string, KnownFile>) {
    this.#path = path;
    this.#files = files;
  }

  /** Opens the index in a data folder. The folder need not exist. */
  static async open(dataDir: string): Promise<SessionIndex> {
    const path = join(dataDir, 'own-sessions.json');
    const text = await readFile(path, 'utf8').catch(() => '');
    const { data } = indexSchema.safeParse(parseJson(text));
    return new SessionIndex(path, new Map(Object.entries(data?.files ?? {})));
  }

  /** Returns the cached facts of a file; undefined if the file is new or has changed. */
  known({ path, size, mtime }: FoundFile): ReadFacts | undefined {
    const known = this.#files.get(path);
    return known?.size === size && known.mtime === mtime ? known.read : undefined;
  }

  /** Stores the facts of a file. Drops its stored context use, which belongs to the old content. */
  keep({ path, size, mtime }: FoundFile, read: ReadFacts): void {
    this.#files.set(path, { size, mtime, read });
    this.#changed = true;
  }

  /**
   * Returns the context use that was stored with a file's facts. Does not check whether the file
   * has changed.
   */
  knownUse({ path }: FoundFile): ContextUse | undefined {
    return this.#files.get(path)?.use;
  }

  /** Stores the context use of a file. Does nothing if the file has no stored facts. */
  keepUse({ path }: FoundFile, use: ContextUse): void {
    const known = this.#files.get(path);
    if (known === undefined) return;
    this.#files.set(path, { ...known, use });
    this.#changed = true;
  }

  /** Removes all files from the index, except the given ones. */
  keepOnly(files: readonly FoundFile[]): void {
    const here = new Set(files.map(({ path }) => path));
    for (const path of this.#files.keys()) {
      if (here.has(path)) continue;
      this.#files.delete(path);
      this.#changed = true;
    }
  }

  /**
   * Writes the index if it has changed. Only this user can read the file, because it has prompts.
   */
  async save(): Promise<void> {
    if (!this.#changed) return;
    await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 });
    const index = { version: INDEX_VERSION, files: Object.fromEntries(this.#files) };
    await replaceFile(this.#path, JSON.stringify(index));
    this.#changed = false;
  }
}

import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { parseJson, replaceFile } from '../process/owned-file.js';

const refusedSchema = z.object({
  session: z.string(),
  /** The first and the last step among them; null where there is none. */
  steps: z.tuple([z.int(), z.int()]).nullable(),
  /** Records of the session that were refused, and those that wait behind them. */
  records: z.int().positive(),
  /** Why the first of them was. */
  reason: z.string(),
  /** When it was tried last. */
  at: z.iso.datetime(),
});

/** Acknowledged records of one session that the database refused for good. */
export type RefusedRecords = Readonly<z.infer<typeof refusedSchema>>;

/** The note beside an owner's journal. */
export const noteFile = (folder: string, owner: string): string => join(folder, `${owner}.refused.json`);

/** What the note beside a journal says of what was refused of it; nothing where there is none, or it cannot be read. Changes nothing. */
export async function readRefused(folder: string, owner: string): Promise<readonly RefusedRecords[]> {
  const text = await readFile(noteFile(folder, owner), 'utf8').catch(() => '');
  return parseJson(text, z.array(refusedSchema)) ?? [];
}

/**
 * The note beside a journal that says what of it was refused for good, so that whoever looks at the data folder learns of it while the process lives and afterwards. It may
 * be missing where the disk is full: the records are in the journal.
 */
export class RefusedNote {
  readonly #path: string;
  #next: (() => readonly RefusedRecords[]) | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(folder: string, owner: string) {
    this.#path = noteFile(folder, owner);
  }

  /** Has the note say this from now on; what was to be written and is not yet is left out, and not even put together: thousands may be refused one after the other. */
  set(refused: () => readonly RefusedRecords[]): void {
    const isIdle = this.#next === undefined;
    this.#next = refused;
    if (isIdle) this.#writing = this.#writing.then(() => this.#write());
  }

  /** Resolves when what was set stands there, or cannot. */
  written(): Promise<void> {
    return this.#writing;
  }

  async #write(): Promise<void> {
    const refused = this.#next?.() ?? [];
    this.#next = undefined;
    const written = refused.length === 0 ? rm(this.#path, { force: true }) : replaceFile(this.#path, JSON.stringify(refused));
    await written.catch(() => undefined);
  }
}

import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { parseJson, replaceFile } from '../process/owned-file.js';

const refusedSchema = z.object({
  session: z.string(),
  /** The first and last refused step; null if there is none. */
  steps: z.tuple([z.int(), z.int()]).nullable(),
  /** Number of the session's refused records, including those that wait behind a refused one. */
  records: z.int().positive(),
  /** Why the session's first refused record was refused. */
  reason: z.string(),
  /** Time of the last attempt. */
  at: z.iso.datetime(),
});

/** Acknowledged records of one session that the database refused permanently. */
export type RefusedRecords = Readonly<z.infer<typeof refusedSchema>>;

/** Describes the steps of a session that the database refused permanently, and the reason. */
export function refusedText({ session, steps, records, reason, at }: RefusedRecords): string {
  const what = steps === null ? '' : `, steps ${steps[0]} to ${steps[1]}`;
  return `session ${session}: ${records} records${what}; last tried at ${at}: ${reason}`;
}

/** Returns the path of the note beside an owner's journal. */
export const noteFile = (folder: string, owner: string): string => join(folder, `${owner}.refused.json`);

/**
 * Reads the refused records from the note beside a journal. Returns an empty list if the note is
 * missing or unreadable.
 */
export async function readRefused(folder: string, owner: string): Promise<readonly RefusedRecords[]> {
  const text = await readFile(noteFile(folder, owner), 'utf8').catch(() => '');
  return parseJson(text, z.array(refusedSchema)) ?? [];
}

/**
 * A file beside a journal that lists its permanently refused records. Other processes can read it
 * while the journal's process lives and afterwards. It may be missing if the disk is full; the
 * records themselves are in the journal.
 */
export class RefusedNote {
  readonly #path: string;
  #next: (() => readonly RefusedRecords[]) | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(folder: string, owner: string) {
    this.#path = noteFile(folder, owner);
  }

  /**
   * Replaces the content of the note. Earlier content that is not yet written is skipped and not
   * even computed, because thousands of records may be refused in a row.
   */
  set(refused: () => readonly RefusedRecords[]): void {
    const isIdle = this.#next === undefined;
    this.#next = refused;
    if (isIdle) this.#writing = this.#writing.then(() => this.#write());
  }

  /** Resolves once the current content is written, or its write has failed. */
  written(): Promise<void> {
    return this.#writing;
  }

  async #write(): Promise<void> {
    const refused = this.#next?.() ?? [];
    this.#next = undefined;
    const written =
      refused.length === 0 ? rm(this.#path, { force: true }) : replaceFile(this.#path, JSON.stringify(refused));
    await written.catch(() => undefined);
  }
}

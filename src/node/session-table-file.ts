import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile, textOf } from '../process/owned-file.js';
import { erasureSign } from './erasure-sign.js';

/** The file of a data folder with the table of its sessions. */
export const SESSION_TABLE = 'session-table.json';

/** Stores the table of a data folder's sessions, which is derived from the database. */
interface SessionTableFile {
  /** Returns its text. Undefined if it cannot be read. Call it first whenever you use the file. */
  read(): Promise<string | undefined>;
  /**
   * Replaces its text, unless an erasure may have removed sessions since the last call. Does
   * nothing if the folder cannot be written.
   */
  write(text: string): Promise<void>;
}

/** Returns the file of a client's data folder. Undefined without one. */
export function sessionTableFile(dataDir: string | undefined): SessionTableFile | undefined {
  const isErased = erasureSign(dataDir);
  if (dataDir === undefined || isErased === undefined) return undefined;
  const path = join(dataDir, SESSION_TABLE);
  return {
    read: async () => {
      await isErased();
      return textOf(path).catch(() => undefined);
    },
    write: async (text) => {
      if (await isErased()) return;
      await replaceFile(path, text).catch(() => undefined);
      // An erasure that began meanwhile may have removed the file before it was written.
      if (await isErased()) await rm(path, { force: true });
    },
  };
}

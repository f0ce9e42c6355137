import { messageOf } from '../values/thrown.js';
import type { Made } from './edits/change.js';
import { takeBackSettings } from './edits/edit.js';
import { SettingsError } from './errors.js';
import { backedUp, forgetChange, hashOf, type KeptChange } from './kept-changes.js';
import { readSettingsFile, removeSettingsFile, type SettingsFile, writeSettingsFile } from './settings-file.js';

/** The planned undo of one settings file. */
export interface PlannedUndo {
  readonly change: KeptChange;
  readonly file: SettingsFile;
  /** Undefined if the file goes away. */
  readonly after: string | undefined;
  /** Entries that stay because someone gave them another meaning. */
  readonly left: readonly string[];
}

/**
 * Plans the undo of a setup. A file without later changes gets its former bytes. Otherwise only our
 * entries go. @throws {SettingsError} unreadable, unparsable, unfit
 */
export async function planUndo(change: KeptChange, dataDir: string): Promise<PlannedUndo> {
  const file = await readSettingsFile(change.path);
  const { text } = file;
  if (text === undefined) return { change, file, after: undefined, left: [] };
  if (hashOf(text) === change.after) {
    const after = change.before === null ? undefined : await backedUp(dataDir, change.before);
    return { change, file, after, left: [] };
  }
  try {
    const taken = takeBackSettings(change.syntax, text, change.made as readonly Made[]);
    const isOurs = change.before === null && taken.isEmpty;
    return { change, file, after: isOurs ? undefined : taken.text, left: taken.left };
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    throw new SettingsError(
      error.code,
      `${change.path}, ${messageOf(error)}. The file was left as it is. Correct it, then run the command again.`,
      { cause: error },
    );
  }
}

/** Makes a planned undo and forgets the change. @throws {SettingsError} changed-meanwhile */
export async function applyUndo({ change, file, after }: PlannedUndo, dataDir: string): Promise<void> {
  if (after === undefined) await removeSettingsFile(file, change.folders);
  else if (after !== file.text) await writeSettingsFile(file, after, { newMode: 0o600 });
  await forgetChange(dataDir, change);
}

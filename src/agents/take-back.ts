import { messageOf } from '../values/thrown.js';
import type { Made, TakenBack } from './edits/change.js';
import { takeBackSettings } from './edits/edit.js';
import { SettingsError } from './errors.js';
import { alone, backedUp, forgetChange, generationsOf, hashOf, type KeptChange } from './kept-changes.js';
import { readSettingsFile, removeSettingsFile, type SettingsFile, writeSettingsFile } from './settings-file.js';

/** The planned undo of one settings file. */
export interface PlannedUndo {
  readonly change: KeptChange;
  readonly file: SettingsFile;
  /** Undefined if the file is removed. */
  readonly after: string | undefined;
  /** Entries that stay, because they were changed after the setup. */
  readonly left: readonly string[];
}

/** Removes the edits of a record from a text. Leaves entries that no edit wrote in this form. */
export function takeBack(change: KeptChange, text: string): TakenBack {
  const [first, ...older] = generationsOf(change).map(({ made }) => made as readonly Made[]);
  const take = (from: string, made: readonly Made[]): TakenBack => takeBackSettings(change.syntax, from, made);
  return older.reduce<TakenBack>(
    (so, made) => {
      const next = take(so.text, made);
      return { ...next, left: so.left.filter((entry) => next.left.includes(entry)) };
    },
    take(text, first ?? []),
  );
}

/**
 * Plans the undo of a setup. A file without later changes gets its former bytes back. Otherwise
 * only our entries are removed.
 * @throws {SettingsError} unreadable, unparsable, unfit
 */
export async function planUndo(change: KeptChange, dataDir: string): Promise<PlannedUndo> {
  const file = await readSettingsFile(change.path, change.folder);
  const { text } = file;
  if (text === undefined) return { change, file, after: undefined, left: [] };
  if (generationsOf(change).some(({ after }) => after === hashOf(text))) {
    const after = change.before === null ? undefined : await backedUp(dataDir, change.before);
    return { change, file, after, left: [] };
  }
  try {
    const taken = takeBack(change, text);
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

/**
 * Makes a planned undo and removes the record of the change.
 * @throws {SettingsError} changed-meanwhile
 */
export function applyUndo({ change, file, after }: PlannedUndo, dataDir: string): Promise<void> {
  return alone(dataDir, async () => {
    if (after === undefined) await removeSettingsFile(file, change.folders);
    else if (after !== file.text) await writeSettingsFile(file, after, { newMode: 0o600 });
    await forgetChange(dataDir, change);
  });
}

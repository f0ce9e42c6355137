import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { messageOf } from '../values/thrown.js';
import type { Agent, FileEdit, Refusal, Wanted, WayName } from './agent.js';
import type { Made } from './edits/change.js';
import { changeSettings, takeBackSettings } from './edits/edit.js';
import { SettingsError } from './errors.js';
import { hashOf, type KeptChange, keepChange, keptChanges } from './kept-changes.js';
import { readSettingsFile, type SettingsFile, writeSettingsFile } from './settings-file.js';

/** The planned change of one settings file. */
export interface PlannedFile {
  readonly file: SettingsFile;
  readonly after: string;
  /** Entries of our name with other content, which the change replaces. */
  readonly replaced: readonly string[];
  readonly kept: Omit<KeptChange, 'folders' | 'at'>;
  /** The text that an undo restores; undefined if there was no file. */
  readonly base: string | undefined;
  /** Folders that an earlier setup created. */
  readonly folders: readonly string[];
}

/** Everything that a setup of one agent would change; empty if the agent is set up already. */
export type SetupPlan = readonly PlannedFile[] | Refusal;

async function usedPath({ paths }: FileEdit): Promise<string> {
  for (const path of paths) if (await stat(path).then(Boolean, () => false)) return resolve(path);
  return resolve(paths[0]);
}

/** Runs an edit; adds the file to the message of an error. */
function ofFile<T>(path: string, edit: () => T): T {
  try {
    return edit();
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    throw new SettingsError(
      error.code,
      `${path}, ${messageOf(error)}. The file was left as it is. Correct it, then run palimpsest setup again.`,
      { cause: error },
    );
  }
}

/** Returns the text without the changes of an earlier setup, so that one undo takes back both. */
function baseOf({ path, text }: SettingsFile, earlier: KeptChange | undefined): string | undefined {
  if (text === undefined || earlier === undefined) return text;
  const taken = ofFile(path, () => takeBackSettings(earlier.syntax, text, earlier.made as readonly Made[]));
  return earlier.before === null && taken.isEmpty ? undefined : taken.text;
}

async function planFile(
  edit: FileEdit,
  { agent, scope, dataDir }: { readonly agent: Agent; readonly scope: Wanted['scope']; readonly dataDir: string },
): Promise<PlannedFile | undefined> {
  const path = await usedPath(edit);
  const file = await readSettingsFile(path);
  const earlier = (await keptChanges(dataDir)).find((one) => one.path === path);
  const { text } = file;
  // An agent may have written the same file in another form since.
  if (text !== undefined && ofFile(path, () => changeSettings(edit.format, text, edit.changes)).made.length === 0)
    return undefined;
  const base = baseOf(file, earlier);
  const { text: after, made } = ofFile(path, () => changeSettings(edit.format, base ?? '', edit.changes));
  const replaced = made.flatMap((one) =>
    one.kind === 'entry' && one.before !== undefined ? [`${one.path.join('.')}: ${one.before}`] : [],
  );
  return {
    file,
    after,
    replaced,
    base,
    folders: earlier?.folders ?? [],
    kept: {
      format: 1,
      agent: agent.id,
      scope,
      path,
      syntax: edit.format,
      before: base === undefined ? null : hashOf(base),
      after: hashOf(after),
      made: [...made] as KeptChange['made'],
    },
  };
}

/**
 * Plans the setup of an agent. Changes nothing. @throws {SettingsError} unreadable, unparsable,
 *   unfit – a settings file cannot be changed; the message names it, with line and reason
 */
export async function planSetup(
  agent: Agent,
  name: WayName,
  { wanted, dataDir }: { readonly wanted: Wanted; readonly dataDir: string },
): Promise<SetupPlan> {
  const way = agent.ways[name];
  if (way === undefined)
    return { refused: `${agent.title} has no way ${name}. It has: ${Object.keys(agent.ways).join(', ')}.` };
  if (name === 'loop' && wanted.isDataNamed)
    return { refused: 'The loop takes its data folder from PALIMPSEST_DATA. Set that, and leave out --data.' };
  const edits = way.edits(wanted);
  if ('refused' in edits) return edits;
  const planned: PlannedFile[] = [];
  for (const edit of edits) {
    const file = await planFile(edit, { agent, scope: wanted.scope, dataDir });
    if (file !== undefined) planned.push(file);
  }
  return planned;
}

/** Modes of new files: the user's own, and those that a project shares. */
const NEW_MODE = { user: 0o600, project: 0o644 } as const;

/**
 * Makes a planned change. The backup is on disk before the file changes.
 * @throws {SettingsError} changed-meanwhile – the file no longer is as planned
 */
export async function applyPlanned(planned: PlannedFile, dataDir: string): Promise<void> {
  const { file, after, base, kept } = planned;
  const record = { ...kept, folders: [...planned.folders], at: new Date().toISOString() };
  await keepChange(dataDir, record, base);
  const folders = await writeSettingsFile(file, after, { newMode: NEW_MODE[kept.scope] });
  if (folders.length > 0) await keepChange(dataDir, { ...record, folders: [...planned.folders, ...folders] }, base);
}

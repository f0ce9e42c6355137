import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { defined } from '../values/defined.js';
import { messageOf } from '../values/thrown.js';
import type { Agent, FileEdit, Refusal, Wanted, WayName } from './agent.js';
import { changeSettings } from './edits/edit.js';
import { SettingsError } from './errors.js';
import { alone, forgetChange, hashOf, type KeptChange, keepChange, keptChange } from './kept-changes.js';
import { readSettingsFile, requireUnchanged, type SettingsFile, writeSettingsFile } from './settings-file.js';
import { takeBack } from './take-back.js';

/** The planned change of one settings file. */
export interface PlannedFile {
  readonly file: SettingsFile;
  readonly after: string;
  /** Existing entries with our name and other content. The change replaces them. */
  readonly replaced: readonly string[];
  readonly kept: Omit<KeptChange, 'folders' | 'at'>;
  /** The text that an undo restores. Undefined if there was no file. */
  readonly base: string | undefined;
  /** Folders that an earlier setup created. */
  readonly folders: readonly string[];
}

/** All changes that a setup of one agent would make. Empty if the agent is set up already. */
export type SetupPlan = readonly PlannedFile[] | Refusal;

async function usedPath({ paths }: FileEdit): Promise<string> {
  for (const path of paths) if (await stat(path).then(Boolean, () => false)) return resolve(path);
  return resolve(paths[0]);
}

/** Runs an edit. Adds the file's path to the message of an error. */
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

/** Returns the text without the changes of an earlier setup, so that one undo removes both. */
function baseOf({ path, text }: SettingsFile, earlier: KeptChange | undefined): string | undefined {
  if (text === undefined || earlier === undefined) return text;
  const taken = ofFile(path, () => takeBack(earlier, text));
  return earlier.before === null && taken.isEmpty ? undefined : taken.text;
}

async function planFile(
  edit: FileEdit,
  { agent, wanted, dataDir }: { readonly agent: Agent; readonly wanted: Wanted; readonly dataDir: string },
): Promise<PlannedFile | undefined> {
  const { scope, at } = wanted;
  const path = await usedPath(edit);
  const folder = scope === 'project' ? resolve(at.cwd) : undefined;
  const file = await readSettingsFile(path, folder);
  const earlier = await keptChange(dataDir, path);
  const { text } = file;
  // The entries are all there, even if the agent has since written them in another form.
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
      folder,
      syntax: edit.format,
      before: base === undefined ? null : hashOf(base),
      after: hashOf(after),
      made: [...made] as KeptChange['made'],
    },
  };
}

/** Ways that can be set up together. Any other way replaces the earlier one. */
const BESIDE: readonly WayName[] = ['mcp', 'hooks'];

/**
 * Returns the ways that a setup writes: the named ways, and the ways of an earlier setup that can
 * coexist with them. Two ways may share a file, which has one record.
 */
async function waysOf(
  agent: Agent,
  names: readonly WayName[],
  { wanted, dataDir }: { readonly wanted: Wanted; readonly dataDir: string },
): Promise<readonly WayName[]> {
  if (!names.every((name) => BESIDE.includes(name))) return names;
  const others: WayName[] = [];
  for (const name of BESIDE.filter((one) => !names.includes(one))) {
    const edits = agent.ways[name]?.edits(wanted) ?? [];
    if ('refused' in edits) continue;
    for (const edit of edits) {
      const kept = await keptChange(dataDir, await usedPath(edit));
      const paths = (kept?.made ?? []).map(({ path }) => path.join('\0'));
      if (edit.changes.some(({ path }) => paths.includes(path.join('\0')))) others.push(name);
    }
  }
  return [...new Set([...names, ...others])];
}

/** Joins the edits of several ways, so that each file is changed once. */
async function joinedEdits(edits: readonly FileEdit[]): Promise<readonly FileEdit[]> {
  const joined = new Map<string, FileEdit>();
  for (const edit of edits) {
    const path = await usedPath(edit);
    const known = joined.get(path);
    joined.set(path, known === undefined ? edit : { ...known, changes: [...known.changes, ...edit.changes] });
  }
  return [...joined.values()];
}

/**
 * Plans the setup of an agent. Changes nothing.
 * @throws {SettingsError} unreadable, unparsable, unfit – a settings file cannot be changed; the
 *   message names it, with line and reason
 */
export async function planSetup(
  agent: Agent,
  names: readonly WayName[],
  { wanted, dataDir }: { readonly wanted: Wanted; readonly dataDir: string },
): Promise<SetupPlan> {
  const all: FileEdit[] = [];
  for (const name of await waysOf(agent, names, { wanted, dataDir })) {
    const way = agent.ways[name];
    if (way === undefined)
      return {
        refused: `${agent.title} has no way called ${name}. Choose one of: ${Object.keys(agent.ways).join(', ')}.`,
      };
    if (name === 'loop' && wanted.isDataNamed)
      return { refused: 'The loop takes its data folder from PALIMPSEST_DATA. Set that, and leave out --data.' };
    const edits = way.edits(wanted);
    if ('refused' in edits) return edits;
    all.push(...edits);
  }
  const planned: PlannedFile[] = [];
  for (const edit of await joinedEdits(all)) {
    const file = await planFile(edit, { agent, wanted, dataDir });
    if (file !== undefined) planned.push(file);
  }
  return planned;
}

/** Modes of new files: private for a user's settings, readable by others for a project's. */
const NEW_MODE = { user: 0o600, project: 0o644 } as const;

/**
 * Makes a planned change. The backup is on disk before the file changes. If this process is killed
 * in between, an undo recognises both states of the file.
 * @throws {SettingsError} changed-meanwhile – the file has changed since the plan
 */
export function applyPlanned(planned: PlannedFile, dataDir: string): Promise<void> {
  const { file, after, base, kept } = planned;
  return alone(dataDir, async () => {
    await requireUnchanged(file);
    const former = await keptChange(dataDir, kept.path);
    const record = { ...kept, folders: [...planned.folders], at: new Date().toISOString() };
    const earlier = former === undefined ? undefined : { after: former.after, made: former.made };
    await keepChange(dataDir, { ...record, ...defined({ earlier }) }, base);
    let folders: readonly string[];
    try {
      folders = await writeSettingsFile(file, after, { newMode: NEW_MODE[kept.scope] });
    } catch (error) {
      if (former === undefined) await forgetChange(dataDir, { ...record });
      else await keepChange(dataDir, former, undefined);
      throw error;
    }
    if (folders.length > 0 || earlier !== undefined)
      await keepChange(dataDir, { ...record, folders: [...planned.folders, ...folders] }, base);
  });
}

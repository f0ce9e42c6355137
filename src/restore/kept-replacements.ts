import { randomInt } from 'node:crypto';
import { mkdir, open, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { named, SourceError } from '../filesystem/access/errors.js';
import { openFileInside } from '../filesystem/access/open-inside.js';
import { AllowedRoots } from '../filesystem/access/roots.js';
import { removeSource, writeSource } from '../filesystem/access/write-source.js';
import { hashBytes } from '../objects/hashes.js';
import { type CanonicalPath, canonicalPath, type Sha256, sha256 } from '../objects/ids.js';
import { draftOf, removeDeadDrafts } from '../process/drafts.js';
import { flushFolder, rename } from '../process/held-files.js';
import { namesIn, parseJson, replaceFile, textOf } from '../process/owned-file.js';
import { messageOf } from '../values/thrown.js';
import { RestoreError } from './restore-error.js';

/** A file to be replaced. */
export interface Replacement {
  readonly path: CanonicalPath;
  /** The hash of the current bytes; null if absent. */
  readonly before: Sha256 | null;
  readonly after: Sha256;
  /** Returns the new bytes, which must have the hash `after`. */
  readonly bytes: () => Promise<Uint8Array>;
}

/** The origin of replacements, for later readers. */
export interface ReplacementsOf {
  readonly session: string;
  readonly turn: number;
  readonly step: number;
}

const hash = z.string().regex(/^[0-9a-f]{64}$/);

const manifestSchema = z.strictObject({
  id: z.string(),
  session: z.string(),
  turn: z.int(),
  step: z.int(),
  at: z.iso.datetime(),
  roots: z.array(z.string()).min(1),
  files: z.array(z.strictObject({ path: z.string(), before: hash.nullable(), after: hash })),
});
type Manifest = z.output<typeof manifestSchema>;

/** Replacements that were made or begun. */
export interface KeptReplacements extends Pick<Manifest, 'id' | 'session' | 'turn' | 'step' | 'at' | 'files'> {
  readonly isUndone: boolean;
}

const ID = /^r\d{8}-[a-z0-9]{6}$/;
const MANIFEST = 'restore.json';
const UNDONE = 'undone';

/** Returns the folder of a data folder that holds replaced files. */
export const replacementsFolder = (dataDir: string): string => join(dataDir, 'restores');

function newId(): string {
  const random = Array.from({ length: 6 }, () => 'abcdefghjkmnpqrstvwxyz0123456789'[randomInt(32)]).join('');
  return `r${new Date().toISOString().slice(0, 10).replaceAll('-', '')}-${random}`;
}

async function syncFolder(path: string): Promise<void> {
  const handle = await open(path);
  await flushFolder(handle).finally(() => handle.close());
}

/** Returns the bytes of a file inside the roots; undefined if absent. */
async function bytesAt(roots: AllowedRoots, path: CanonicalPath): Promise<Uint8Array | undefined> {
  try {
    const { handle } = await openFileInside(roots, path);
    return await handle.readFile().finally(() => handle.close());
  } catch (error) {
    if (error instanceof SourceError && error.code === 'not-found') return undefined;
    throw error;
  }
}

async function readManifest(dataDir: string, id: string): Promise<Manifest | undefined> {
  const text = await textOf(join(replacementsFolder(dataDir), id, MANIFEST));
  return text === undefined ? undefined : parseJson(text, manifestSchema);
}

/** Returns all stored replacements of a data folder, oldest first. */
export async function keptReplacements(dataDir: string): Promise<readonly KeptReplacements[]> {
  const found: KeptReplacements[] = [];
  for (const name of (await namesIn(replacementsFolder(dataDir))).filter((one) => ID.test(one))) {
    const manifest = await readManifest(dataDir, name);
    const isUndone = (await textOf(join(replacementsFolder(dataDir), name, UNDONE))) !== undefined;
    if (manifest !== undefined) found.push({ ...manifest, isUndone });
  }
  return found.sort((a, b) => (a.at < b.at ? -1 : 1));
}

/** Stores the current bytes of the paths so that they can be restored after any failure. */
async function keep(dataDir: string, roots: AllowedRoots, manifest: Manifest): Promise<void> {
  const parent = replacementsFolder(dataDir);
  await mkdir(parent, { recursive: true, mode: 0o700 });
  await removeDeadDrafts(parent, { recursive: true });
  const draft = await draftOf(join(parent, manifest.id));
  await mkdir(draft, { mode: 0o700 });
  try {
    for (const [i, { path, before }] of manifest.files.entries()) {
      const found = await bytesAt(roots, canonicalPath(path));
      if ((found === undefined ? null : hashBytes(found)) !== before)
        throw new RestoreError(
          'changed-since',
          `${named(path)} was changed since the plan was made: nothing was changed; try again`,
        );
      if (found !== undefined) await writeFile(join(draft, String(i)), found, { mode: 0o600, flag: 'wx', flush: true });
    }
    await writeFile(join(draft, MANIFEST), JSON.stringify(manifest), { mode: 0o600, flag: 'wx', flush: true });
    await syncFolder(draft);
    await rename(draft, join(parent, manifest.id));
    await syncFolder(parent);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    throw error;
  }
}

/**
 * Replaces the bytes of files. The old bytes are first flushed to the data folder, so that
 * `undoReplacements` can restore them even if this process is killed midway. If a write fails, the
 * files already written are restored, except those changed since, which the error names. `onKept`
 * is called with the id before any change.
 * @throws {RestoreError} `changed-since`
 * @throws {SourceError} if a file cannot be written
 */
export async function replaceKept(
  dataDir: string,
  {
    roots,
    of,
    replacements,
    onKept = () => undefined,
  }: {
    readonly roots: AllowedRoots;
    readonly of: ReplacementsOf;
    readonly replacements: readonly Replacement[];
    readonly onKept?: (id: string) => void;
  },
): Promise<string> {
  const { session, turn, step } = of;
  const id = newId();
  const files = replacements.map(({ path, before, after }) => ({ path, before, after }));
  await keep(dataDir, roots, { id, session, turn, step, at: new Date().toISOString(), roots: [...roots.roots], files });
  onKept(id);
  const written: number[] = [];
  try {
    for (const [i, { path, before, bytes }] of replacements.entries()) {
      await writeSource(roots, path, { content: await bytes(), expected: before ?? 'absent' });
      written.push(i);
    }
  } catch (error) {
    throw await giveBackWritten(dataDir, { id, written, error });
  }
  return id;
}

/**
 * Restores the files written before an error as far as possible. Resolves to the error, which then
 * names the files that were not restored.
 */
async function giveBackWritten(
  dataDir: string,
  { id, written, error }: { readonly id: string; readonly written: readonly number[]; readonly error: unknown },
): Promise<unknown> {
  const manifest = await readManifest(dataDir, id);
  if (manifest === undefined) return error;
  const folder = join(replacementsFolder(dataDir), id);
  const left: string[] = [];
  for (const i of written) {
    const files = manifest.files.slice(i, i + 1);
    await giveBack(folder, { ...manifest, files }, i).catch((cause: unknown) => left.push(messageOf(cause)));
  }
  if (left.length > 0)
    return new RestoreError(
      'changed-since',
      `${messageOf(error)}. The files already written were restored, except: ${left.join('; ')}. ` +
        `Then palimpsest restore --undo ${id} restores the rest`,
      { cause: error },
    );
  await markUndone(folder);
  return error;
}

const markUndone = (folder: string): Promise<void> =>
  replaceFile(join(folder, UNDONE), new Date().toISOString(), { flush: true });

/**
 * Restores the files of a manifest; `first` is the number of its first file in the folder. If one
 * was changed since its replacement, restores none. A missing file is not an obstacle.
 */
async function giveBack(folder: string, { roots: folders, files }: Manifest, first = 0): Promise<readonly string[]> {
  const roots = await AllowedRoots.open(folders);
  const changed: {
    readonly kept: string;
    readonly path: CanonicalPath;
    readonly before: Sha256 | null;
    readonly expected: Sha256 | 'absent';
  }[] = [];
  for (const [i, file] of files.entries()) {
    const path = canonicalPath(file.path);
    const [before, after] = [file.before === null ? null : sha256(file.before), sha256(file.after)];
    const found = await bytesAt(roots, path);
    const now = found === undefined ? null : hashBytes(found);
    if (now === before) continue;
    if (now !== null && now !== after)
      throw new RestoreError(
        'changed-since',
        `${named(path)} was changed since it was restored, so it was not undone: move it away first`,
      );
    changed.push({ kept: join(folder, String(first + i)), path, before, expected: now ?? 'absent' });
  }
  for (const { kept, path, before, expected } of changed) {
    if (before !== null) await writeSource(roots, path, { content: await readFile(kept), expected });
    else if (expected !== 'absent') await removeSource(roots, path, expected);
  }
  return changed.map(({ path }) => path);
}

/**
 * Restores the files of earlier replacements and removes the files that they created. If one of
 * them was changed since, it restores none. A missing file is restored too, so that a user can
 * first move a changed file away. After a kill midway, call it again. Resolves to the restored
 * paths.
 * @throws {RestoreError} `unknown-restore`, `changed-since`
 * @throws {SourceError} if a file cannot be written
 */
export async function undoReplacements(dataDir: string, id: string): Promise<readonly string[]> {
  const manifest = ID.test(id) ? await readManifest(dataDir, id) : undefined;
  if (manifest === undefined) {
    const known = (await keptReplacements(dataDir)).filter(({ isUndone }) => !isUndone).map((one) => one.id);
    const hint = known.length === 0 ? 'none is kept' : `those that can be undone are ${known.slice(-5).join(', ')}`;
    throw new RestoreError('unknown-restore', `there is no restore ${named(id)} in this data folder: ${hint}`);
  }
  const folder = join(replacementsFolder(dataDir), id);
  const paths = await giveBack(folder, manifest);
  await markUndone(folder);
  return paths;
}

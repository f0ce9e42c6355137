import { lstat, mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { replaceFile } from '../../process/owned-file.js';
import { unlessMissing } from '../../process/system-error.js';
import { isJsonObject } from '../../values/json-object.js';
import { fileFindings, findingText } from './check-file.js';
import { CortexfsError } from './errors.js';
import { isPathWithin } from './session-paths.js';
import { strictJson } from './strict-json.js';

/** Append-only files. All others are derived and may be rewritten. */
const APPEND_ONLY: ReadonlySet<string> = new Set(['messages.jsonl', 'events.jsonl']);
const FOLDERS = ['context', 'context/pinned', 'context/swap', 'context/dedup', 'context/child'];
/** The names of pinned files that this writer makes. */
export const OWN_PINNED = /^(?:system|r\d+|f-[0-9a-f]{32})\.md$/;

/** The result of writing a session directory. */
export interface WrittenDirectory {
  /** Lines appended to `messages.jsonl`. */
  readonly appended: number;
  readonly written: readonly string[];
  readonly unchanged: number;
  /** Removed files, whose objects are no longer pinned. */
  readonly removed: readonly string[];
}

const linkError = (path: string): CortexfsError =>
  new CortexfsError(
    'symbolic-link',
    `${path} is a symbolic link, and links are not written through: remove it, or export to another folder`,
  );

/** Returns true if the file or folder exists. Rejects a link. */
async function isThere(path: string, what: 'file' | 'folder'): Promise<boolean> {
  const found = await unlessMissing(lstat(path));
  if (found === undefined) return false;
  if (found.isSymbolicLink()) throw linkError(path);
  if (what === 'file' ? found.isFile() : found.isDirectory()) return true;
  throw new CortexfsError(
    'no-session',
    `${path} is not a ${what}, as a session directory requires: export to another folder`,
  );
}

/**
 * The session to which a directory must belong. A folder whose `meta.json` equals the imported text
 * `meta` also belongs to it.
 */
export interface DirectoryOwner {
  readonly session: string;
  readonly meta?: string;
}

/** Rejects a folder that does not hold this session. */
async function checkOwner(folder: string, { session, meta: imported }: DirectoryOwner): Promise<void> {
  if (!(await isThere(folder, 'folder'))) return;
  const names = await readdir(folder);
  if (names.length === 0) return;
  const meta = join(folder, 'meta.json');
  if (!(await isThere(meta, 'file')))
    throw new CortexfsError(
      'no-session',
      `${folder} is not empty and holds no session, because meta.json is missing: export to a new folder`,
    );
  const text = await readFile(meta, 'utf8');
  if (text === imported) return;
  const read = strictJson(text);
  const own = read.ok && isJsonObject(read.value) ? read.value.palimpsest : undefined;
  const name = isJsonObject(own) ? own.session : undefined;
  if (name === session) return;
  const whose =
    typeof name === 'string' ? `session ${JSON.stringify(name)}` : 'a session that was not exported by Palimpsest';
  throw new CortexfsError(
    'foreign-session',
    `${folder} holds ${whose}, not ${JSON.stringify(session)}: export to another folder`,
  );
}

/** Returns the first line, from 1, at which two texts differ. */
function differingLine(before: Buffer, now: Buffer): number {
  let line = 1;
  for (let i = 0; i < before.length && before[i] === now[i]; i++) if (before[i] === 10) line++;
  return line;
}

function checkPrefix(path: string, before: Buffer, now: Buffer): void {
  if (before.length > 0 && before.at(-1) !== 10)
    throw new CortexfsError(
      'invalid-file',
      `${path}: the last line does not end with a line break and may be truncated. ` +
        'Nothing was changed; export to another folder',
    );
  if (before.length <= now.length && now.subarray(0, before.length).equals(before)) return;
  const line = differingLine(before, now);
  throw new CortexfsError(
    'not-a-prefix',
    `${path} is append-only and differs from the new content from line ${line} on. ` +
      'Nothing was changed; export to another folder',
  );
}

/**
 * Writes or updates a session directory. An existing append-only file must be the beginning of its
 * new content, byte for byte. Everything is checked before the first write. Each file is replaced
 * atomically and is private to its user.
 * @throws {CortexfsError} `symbolic-link`, `no-session`, `foreign-session`, `not-a-prefix`
 * @throws {CortexfsError} `invalid-file` if a last line is truncated or the new content violates
 *   the format. No error changes a file.
 */
export async function writeDirectory(
  folder: string,
  owner: DirectoryOwner,
  files: ReadonlyMap<string, string>,
): Promise<WrittenDirectory> {
  for (const [path, text] of files) {
    if (!isPathWithin(path))
      throw new CortexfsError(
        'invalid-file',
        `${JSON.stringify(path)} is not a path within a session directory: nothing was written`,
      );
    const [found] = fileFindings(path, text);
    if (found !== undefined)
      throw new CortexfsError('invalid-file', `the session cannot be written in this format: ${findingText(found)}`);
  }
  await checkOwner(folder, owner);
  const children = [...files.keys()].flatMap((path) => /^context\/child\/[^/]+/.exec(path)?.[0] ?? []);
  const parents = [...files.keys()].map(dirname).filter((path) => path !== '.');
  const folders = [...new Set([...FOLDERS, ...parents, ...children.map((child) => `${child}/artifact`)])];
  for (const name of folders) await isThere(join(folder, name), 'folder');
  const changed: string[] = [];
  let appended = 0;
  for (const [path, text] of files) {
    const at = join(folder, path);
    const before = (await isThere(at, 'file')) ? await readFile(at) : undefined;
    const now = Buffer.from(text);
    if (APPEND_ONLY.has(path)) checkPrefix(at, before ?? Buffer.alloc(0), now);
    if (path === 'messages.jsonl') appended = now.subarray(before?.length ?? 0).filter((byte) => byte === 10).length;
    if (before === undefined || !before.equals(now)) changed.push(path);
  }
  await mkdir(folder, { recursive: true, mode: 0o700 });
  for (const name of folders) await mkdir(join(folder, name), { recursive: true, mode: 0o700 });
  for (const path of changed)
    await replaceFile(join(folder, path), files.get(path) ?? '', { flush: APPEND_ONLY.has(path) });
  const pinned = await readdir(join(folder, 'context/pinned'));
  const removed = pinned
    .filter((name) => OWN_PINNED.test(name) && !files.has(`context/pinned/${name}`))
    .map((name) => `context/pinned/${name}`);
  for (const path of removed) await rm(join(folder, path));
  return { appended, written: changed, unchanged: files.size - changed.length, removed };
}

/** Returns the text of an existing `budget` file; undefined if there is none. */
export async function writtenBudget(folder: string): Promise<string | undefined> {
  const path = join(folder, 'context/budget');
  return (await isThere(folder, 'folder')) && (await isThere(path, 'file')) ? readFile(path, 'utf8') : undefined;
}

/**
 * Rejects existing pack files unless both belong to this session, so that no other file is
 * overwritten.
 */
async function checkPackOwner(jsonPath: string, markdownPath: string, json: string): Promise<void> {
  const [hasJson, hasMarkdown] = [await isThere(jsonPath, 'file'), await isThere(markdownPath, 'file')];
  if (!hasJson && !hasMarkdown) return;
  const sessionOf = (text: string): unknown => {
    const read = strictJson(text);
    return read.ok && isJsonObject(read.value) ? read.value.session : undefined;
  };
  const [own, theirs] = [sessionOf(json), hasJson ? sessionOf(await readFile(jsonPath, 'utf8')) : undefined];
  if (typeof own === 'string' && theirs === own) return;
  const path = hasJson ? jsonPath : markdownPath;
  const whose = typeof theirs === 'string' ? `a pack of ${JSON.stringify(theirs)}` : 'not a pack written by Palimpsest';
  throw new CortexfsError(
    'foreign-session',
    `${path} is ${whose}, not of ${JSON.stringify(own)}: nothing was changed; name another folder, or remove it`,
  );
}

/**
 * Writes the two files of a pack into a folder, or into the context area of an exported session.
 * Replaces an earlier pack of the session, but no other file with these names. Resolves to the
 * paths of both files.
 * @throws {CortexfsError} `symbolic-link`, `foreign-session`, `no-session`: nothing was changed
 */
export async function writePack(
  folder: string,
  owner: DirectoryOwner,
  { json, markdown }: { readonly json: string; readonly markdown: string },
): Promise<readonly string[]> {
  const isSession = (await isThere(folder, 'folder')) && (await isThere(join(folder, 'meta.json'), 'file'));
  if (isSession) await checkOwner(folder, owner);
  const into = isSession ? join(folder, 'context') : folder;
  const files = [
    [join(into, 'pack.json'), json],
    [join(into, 'pack.md'), markdown],
  ] as const;
  await isThere(into, 'folder');
  const [[jsonPath], [markdownPath]] = files;
  if (isSession) for (const [path] of files) await isThere(path, 'file');
  else await checkPackOwner(jsonPath, markdownPath, json);
  await mkdir(into, { recursive: true, mode: 0o700 });
  for (const [path, text] of files) await replaceFile(path, text);
  return files.map(([path]) => path);
}

import type { Dirent, Stats } from 'node:fs';
import { lstat, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { unlessMissing } from '../../process/system-error.js';
import { ownMember } from '../../values/own-member.js';
import { fileFindings, findingText } from './check-file.js';
import { CortexfsError } from './errors.js';
import { PALIMPSEST_FILE } from './palimpsest-file.js';

/** A session directory that was read and follows the document. */
export interface ReadDirectory {
  /** By path within it, the path with `/`. */
  readonly files: ReadonlyMap<string, string>;
  /** Artifacts of children that are no text, which are not taken up. */
  readonly leftOut: readonly string[];
}

const MIB = 1_048_576;
/** The raw files grow without end; all others are made to be read by a model, or list what is. */
const LARGEST: Readonly<Record<string, number>> = {
  'messages.jsonl': 256 * MIB,
  'events.jsonl': 256 * MIB,
  'context/palimpsest.jsonl': 256 * MIB,
};
const LARGEST_OTHER = 16 * MIB;
const LARGEST_TOGETHER = 768 * MIB;
/** Characters of everything that is kept, as JSON texts: with a line's number and mark they must fit into one text. */
const LARGEST_KEPT = 256 * MIB;
const MOST_FILES = 10_000;
const DEEPEST = 6;
/** What a writer that was killed leaves. */
const DRAFT = /.\.\d{1,10}-[0-9a-f]{16}-[0-9a-f]{16}\.draft$/;

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** How long a text is as a JSON text, at most. */
function jsonLength(bytes: Buffer): number {
  let length = bytes.length;
  for (const byte of bytes) length += byte === 34 || byte === 92 || byte === 10 ? 1 : byte < 32 ? 5 : 0;
  return length;
}

function textIn(bytes: Buffer): string | undefined {
  try {
    return UTF8.decode(bytes);
  } catch {
    return undefined;
  }
}

const refuseLink = (path: string): CortexfsError =>
  new CortexfsError(
    'symbolic-link',
    `${path} is a symbolic link: a session directory is read without following any; copy what it points to`,
  );

/** Why a file cannot be one of the session's; undefined where it can. */
function foreignFault(path: string): string | undefined {
  const inside = /^context\/child\/[^/]+\/(.+)$/.exec(path)?.[1];
  if (inside !== undefined && !/^(?:agent|session|status|handoff\.md|result\.md|refs\.jsonl|artifact\/[^/]+)$/.test(inside))
    return `${path} is of a child's own session: a child's folder has agent, session, status, handoff.md, result.md, refs.jsonl and artifact/ alone`;
  if (/(?:^|\/)session\//.test(path)) return `${path} is of another session: a session directory holds none`;
  return undefined;
}

class DirectoryReader {
  readonly files = new Map<string, string>();
  readonly leftOut: string[] = [];
  readonly #folder: string;
  #bytes = 0;
  #kept = 0;
  #count = 0;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async folder(path: string, depth = 0): Promise<void> {
    if (depth > DEEPEST)
      throw new CortexfsError('invalid-file', `${join(this.#folder, path)} lies deeper than anything of a session directory does`);
    const entries = await readdir(join(this.#folder, path), { withFileTypes: true });
    const own = entries.filter(({ name }) => !DRAFT.test(name)).sort((a, b) => (a.name < b.name ? -1 : 1));
    for (const entry of own) await this.#entry(path, entry, depth);
  }

  async #entry(parent: string, entry: Dirent, depth: number): Promise<void> {
    const path = parent === '' ? entry.name : `${parent}/${entry.name}`;
    const at = join(this.#folder, path);
    if (entry.isSymbolicLink()) throw refuseLink(at);
    if (entry.isDirectory()) return this.folder(path, depth + 1);
    if (!entry.isFile()) throw new CortexfsError('invalid-file', `${at} is neither file nor folder: remove it, and import again`);
    const fault = foreignFault(path);
    if (fault !== undefined) throw new CortexfsError('foreign-session', fault);
    await this.#file(path, at);
  }

  async #file(path: string, at: string): Promise<void> {
    const { size } = await lstat(at);
    const limit = ownMember(LARGEST, path) ?? LARGEST_OTHER;
    this.#bytes += size;
    this.#count += 1;
    if (size > limit) throw new CortexfsError('too-large', `${at} has ${size} bytes: at most ${limit} are read of it`);
    if (this.#bytes > LARGEST_TOGETHER)
      throw new CortexfsError('too-large', `${this.#folder} has more than ${LARGEST_TOGETHER} bytes, seen at ${path}: that is no session`);
    if (this.#count > MOST_FILES)
      throw new CortexfsError('too-large', `${this.#folder} has more than ${MOST_FILES} files, seen at ${path}: that is no session`);
    const bytes = await readFile(at);
    // Our own file is not kept, but made again.
    if (path !== PALIMPSEST_FILE) this.#kept += jsonLength(bytes);
    if (this.#kept > LARGEST_KEPT)
      throw new CortexfsError(
        'too-large',
        `${this.#folder} has more than can be kept of one directory, ${LARGEST_KEPT} characters, seen at ${path}`,
      );
    const text = textIn(bytes);
    if (text !== undefined) this.files.set(path, text);
    else if (/^context\/child\/[^/]+\/artifact\//.test(path)) this.leftOut.push(path);
    else throw new CortexfsError('invalid-file', `${at} is not UTF-8: the files of a session directory are texts`);
  }
}

const isFolder = (found: Stats | undefined): boolean => found?.isDirectory() === true;

/** Whether a folder looks like a session directory: it has `messages.jsonl` and a context area, or says of itself whose it is. */
export async function isSessionDirectory(folder: string): Promise<boolean> {
  if (!isFolder(await unlessMissing(lstat(folder)))) return false;
  const [messages, context, meta] = await Promise.all(
    ['messages.jsonl', 'context', 'meta.json'].map((name) => unlessMissing(lstat(join(folder, name)))),
  );
  return messages?.isFile() === true && (isFolder(context) || meta?.isFile() === true);
}

/**
 * Reads a session directory and checks every file of it. Nothing is followed out of it, nothing larger than its limit is read.
 * @throws {CortexfsError} `no-session`, `symbolic-link`, `too-large`, `foreign-session`, `invalid-file` – naming file, line and field
 */
export async function readDirectory(folder: string): Promise<ReadDirectory> {
  const found = await unlessMissing(lstat(folder));
  if (found === undefined) throw new CortexfsError('no-session', `there is no folder ${folder}`);
  if (found.isSymbolicLink()) throw refuseLink(folder);
  if (!found.isDirectory()) throw new CortexfsError('no-session', `${folder} is no folder: name the folder of a session`);
  const reader = new DirectoryReader(folder);
  await reader.folder('');
  const { files, leftOut } = reader;
  if (!files.has('messages.jsonl'))
    throw new CortexfsError('no-session', `${folder} is no session directory: messages.jsonl is missing; name the folder of a session`);
  for (const [path, text] of files) {
    const [finding] = fileFindings(path, text);
    if (finding !== undefined) throw new CortexfsError('invalid-file', `${join(folder, findingText(finding))}; nothing was changed`);
  }
  return { files, leftOut };
}

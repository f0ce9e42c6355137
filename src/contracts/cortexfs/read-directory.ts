import type { Dirent, Stats } from 'node:fs';
import { lstat, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { unlessMissing } from '../../process/system-error.js';
import { ownMember } from '../../values/own-member.js';
import { fileFindings, findingText } from './check-file.js';
import { CortexfsError } from './errors.js';
import { PALIMPSEST_FILE } from './palimpsest-file.js';

/** The files of a session directory that conforms to CortexFS document 000. */
export interface ReadDirectory {
  /** The files by their path within the directory, with `/`. */
  readonly files: ReadonlyMap<string, string>;
  /** Artifacts of child agents that are skipped because they are not text. */
  readonly leftOut: readonly string[];
}

const MIB = 1_048_576;
/**
 * Maximum bytes of each file. Raw files grow without limit; all others are short texts for a model,
 * or indexes.
 */
const LARGEST: Readonly<Record<string, number>> = {
  'messages.jsonl': 256 * MIB,
  'events.jsonl': 256 * MIB,
  'context/palimpsest.jsonl': 256 * MIB,
};
const LARGEST_OTHER = 16 * MIB;
const LARGEST_TOGETHER = 768 * MIB;
/**
 * Maximum characters of all stored files as JSON. An import is stored as one string: these files,
 * with line numbers and the hashes of steps.
 */
const LARGEST_KEPT = 256 * MIB;
const MOST_FILES = 10_000;
const DEEPEST = 6;
/** The name of a draft that a killed writer left. */
const DRAFT = /.\.\d{1,10}-[0-9a-f]{16}-[0-9a-f]{16}\.draft$/;

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Returns an upper bound of a text's length as JSON. */
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
    `${path} is a symbolic link, and links are not followed: replace it by a copy of its target`,
  );

/** Returns why a file cannot belong to the session; undefined if it can. */
function foreignFault(path: string): string | undefined {
  const inside = /^context\/child\/[^/]+\/(.+)$/.exec(path)?.[1];
  if (
    inside !== undefined &&
    !/^(?:agent|session|status|handoff\.md|result\.md|refs\.jsonl|artifact\/[^/]+)$/.test(inside)
  )
    return (
      `${path} belongs to a child's own session: its folder may only have ` +
      'agent, session, status, handoff.md, result.md, refs.jsonl and artifact/'
    );
  if (/(?:^|\/)session\//.test(path))
    return `${path} belongs to another session, which a session directory must not contain`;
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
      throw new CortexfsError(
        'invalid-file',
        `${join(this.#folder, path)} is nested deeper than any file of a session directory`,
      );
    const entries = await readdir(join(this.#folder, path), { withFileTypes: true });
    const own = entries.filter(({ name }) => !DRAFT.test(name)).sort((a, b) => (a.name < b.name ? -1 : 1));
    for (const entry of own) await this.#entry(path, entry, depth);
  }

  async #entry(parent: string, entry: Dirent, depth: number): Promise<void> {
    const path = parent === '' ? entry.name : `${parent}/${entry.name}`;
    const at = join(this.#folder, path);
    if (entry.isSymbolicLink()) throw refuseLink(at);
    if (entry.isDirectory()) return this.folder(path, depth + 1);
    if (!entry.isFile())
      throw new CortexfsError('invalid-file', `${at} is neither a file nor a folder: remove it, and import again`);
    const fault = foreignFault(path);
    if (fault !== undefined) throw new CortexfsError('foreign-session', fault);
    await this.#file(path, at);
  }

  async #file(path: string, at: string): Promise<void> {
    const { size } = await lstat(at);
    const limit = ownMember(LARGEST, path) ?? LARGEST_OTHER;
    this.#bytes += size;
    this.#count += 1;
    if (size > limit) throw new CortexfsError('too-large', `${at} has ${size} bytes, and the limit is ${limit}`);
    if (this.#bytes > LARGEST_TOGETHER)
      throw new CortexfsError(
        'too-large',
        `${this.#folder} has more than ${LARGEST_TOGETHER} bytes, reached at ${path}: it cannot be a session`,
      );
    if (this.#count > MOST_FILES)
      throw new CortexfsError(
        'too-large',
        `${this.#folder} has more than ${MOST_FILES} files, reached at ${path}: it cannot be a session`,
      );
    const bytes = await readFile(at);
    // Our own file is not stored, because an export generates it.
    if (path !== PALIMPSEST_FILE) this.#kept += jsonLength(bytes);
    if (this.#kept > LARGEST_KEPT)
      throw new CortexfsError(
        'too-large',
        `${this.#folder} exceeds the ${LARGEST_KEPT} characters that can be kept of one directory, at ${path}`,
      );
    const text = textIn(bytes);
    if (text !== undefined) this.files.set(path, text);
    else if (/^context\/child\/[^/]+\/artifact\//.test(path)) this.leftOut.push(path);
    else throw new CortexfsError('invalid-file', `${at} is not UTF-8: the files of a session directory must be text`);
  }
}

const isFolder = (found: Stats | undefined): boolean => found?.isDirectory() === true;

/**
 * Returns true if a folder looks like a session directory: it has `messages.jsonl` and a context
 * area, or names its session.
 */
export async function isSessionDirectory(folder: string): Promise<boolean> {
  if (!isFolder(await unlessMissing(lstat(folder)))) return false;
  const [messages, context, meta] = await Promise.all(
    ['messages.jsonl', 'context', 'meta.json'].map((name) => unlessMissing(lstat(join(folder, name)))),
  );
  return messages?.isFile() === true && (isFolder(context) || meta?.isFile() === true);
}

/**
 * Reads and checks every file of a session directory. Links are not followed, and files over their
 * limit are not read.
 * @throws {CortexfsError} `no-session`, `symbolic-link`, `too-large`, `foreign-session`,
 *   `invalid-file`; the message names file, line and field
 */
export async function readDirectory(folder: string): Promise<ReadDirectory> {
  const found = await unlessMissing(lstat(folder));
  if (found === undefined) throw new CortexfsError('no-session', `the folder ${folder} does not exist`);
  if (found.isSymbolicLink()) throw refuseLink(folder);
  if (!found.isDirectory())
    throw new CortexfsError('no-session', `${folder} is not a folder: name the folder of a session`);
  const reader = new DirectoryReader(folder);
  await reader.folder('');
  const { files, leftOut } = reader;
  if (!files.has('messages.jsonl'))
    throw new CortexfsError(
      'no-session',
      `${folder} is not a session directory: messages.jsonl is missing; name the folder of a session`,
    );
  for (const [path, text] of files) {
    const [finding] = fileFindings(path, text);
    if (finding !== undefined)
      throw new CortexfsError('invalid-file', `${join(folder, findingText(finding))}; nothing was changed`);
  }
  return { files, leftOut };
}

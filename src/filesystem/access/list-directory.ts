import { isUtf8 } from 'node:buffer';
import type { Dirent } from 'node:fs';
import { readdir, realpath } from 'node:fs/promises';
import { posix } from 'node:path';
import { sourceErrorFrom } from './errors.js';
import { entryPath, irregularKind, leave, openFolderInside, openInside } from './open-inside.js';
import type { AllowedRoots } from './roots.js';

/** What a folder's entry is; a link is a `symlink`, whatever it leads to. */
export type EntryKind = 'file' | 'directory' | 'symlink' | 'fifo' | 'socket' | 'device';

/** One entry of a folder. */
export interface DirectoryEntry {
  /** The name; bytes that are not UTF-8 written as `\xNN`. */
  readonly name: string;
  readonly kind: EntryKind;
  /** False for a name that is not UTF-8: no path can name it. */
  readonly addressable: boolean;
  /** What a link leads to, if that is a file or folder inside the roots; `undefined` otherwise and for anything but a link. */
  readonly target: 'file' | 'directory' | undefined;
}

/** A folder's entries. */
export interface DirectoryListing {
  /** In the order of their names' code units. */
  readonly entries: readonly DirectoryEntry[];
  /** Entries whose names are not UTF-8. */
  readonly unaddressable: number;
}

/** How a folder is listed. */
export interface ListOptions {
  readonly signal?: AbortSignal | undefined;
  /** The folder as the agent gave it, for messages. */
  readonly shown?: string;
}

/** Lists one canonical folder inside the roots, everything in it, hidden and ignored entries too. Throws {@link SourceError}. */
export async function listDirectory(roots: AllowedRoots, folder: string, options: ListOptions = {}): Promise<DirectoryListing> {
  options.signal?.throwIfAborted();
  const shown = options.shown ?? folder;
  const { handle } = await openFolderInside(roots, folder, shown);
  try {
    const found = await readdir(entryPath(handle, folder, ''), { withFileTypes: true, encoding: 'buffer' });
    options.signal?.throwIfAborted();
    const entries = await Promise.all(found.map((entry) => describeEntry(roots, entryPath(handle, folder, ''), entry)));
    entries.sort((a, b) => (a.name < b.name ? -1 : 1));
    return { entries, unaddressable: entries.filter(({ addressable }) => !addressable).length };
  } catch (error) {
    throw sourceErrorFrom(error, shown);
  } finally {
    await handle.close();
  }
}

async function describeEntry(roots: AllowedRoots, within: string, entry: Dirent<Buffer>): Promise<DirectoryEntry> {
  const addressable = isUtf8(entry.name);
  const name = addressable ? entry.name.toString('utf8') : escapeName(entry.name);
  const kind = irregularKind(entry) ?? 'file';
  const target = kind === 'symlink' && addressable ? await targetKind(roots, posix.join(within, name)) : undefined;
  return { name, kind, addressable, target };
}

async function targetKind(roots: AllowedRoots, link: string): Promise<'file' | 'directory' | undefined> {
  try {
    const target = await openInside(roots, await realpath(link));
    leave(target);
    const kind = irregularKind(target.stats);
    return kind === undefined ? 'file' : kind === 'directory' ? kind : undefined;
  } catch {
    return undefined;
  }
}

/** A name that is not UTF-8, with its valid parts as they are and every other byte as `\xNN`. */
export function escapeName(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; ) {
    const length = [1, 2, 3, 4].find((size) => at + size <= bytes.length && isUtf8(bytes.subarray(at, at + size)));
    const part = bytes.subarray(at, at + (length ?? 1));
    text += length === undefined ? `\\x${(part[0] ?? 0).toString(16).padStart(2, '0')}` : Buffer.from(part).toString('utf8');
    at += part.length;
  }
  return text;
}

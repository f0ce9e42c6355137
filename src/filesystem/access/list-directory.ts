import { isUtf8 } from 'node:buffer';
import type { Dirent } from 'node:fs';
import { readdir, realpath } from 'node:fs/promises';
import { posix } from 'node:path';
import { sourceErrorFrom } from './errors.js';
import { fromNative } from './native-path.js';
import { entryPath, irregularKind, leave, openFolderInside, openInside } from './open-inside.js';
import type { AllowedRoots } from './roots.js';

/** The kind of a folder's entry. A link is always a `symlink`, regardless of its target. */
export type EntryKind = 'file' | 'directory' | 'symlink' | 'fifo' | 'socket' | 'device';

/** One entry of a folder. */
export interface DirectoryEntry {
  /** The name; bytes that are not UTF-8 are written as `\xNN`. */
  readonly name: string;
  readonly kind: EntryKind;
  /** False for a name that is not UTF-8, which no path can express. */
  readonly addressable: boolean;
  /**
   * The target of a link, if that is a file or folder inside the roots. `undefined` for any other
   * target, and for entries that are not links.
   */
  readonly target: 'file' | 'directory' | undefined;
}

/** The entries of a folder. */
export interface DirectoryListing {
  /** The entries, sorted by the code units of their names. */
  readonly entries: readonly DirectoryEntry[];
  /** Number of entries whose names are not UTF-8. */
  readonly unaddressable: number;
}

/** Options for listing a folder. */
export interface ListOptions {
  readonly signal?: AbortSignal | undefined;
  /** The folder as the agent gave it, for messages. */
  readonly shown?: string;
}

/**
 * Lists all entries of a canonical folder inside the roots, including hidden and ignored ones.
 * Throws {@link SourceError}.
 */
export async function listDirectory(
  roots: AllowedRoots,
  folder: string,
  options: ListOptions = {},
): Promise<DirectoryListing> {
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
    const target = await openInside(roots, fromNative(await realpath(link)));
    leave(target);
    const kind = irregularKind(target.stats);
    return kind === undefined ? 'file' : kind === 'directory' ? kind : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Returns a name that is not UTF-8 with its valid parts unchanged and every other byte as `\xNN`.
 */
export function escapeName(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; ) {
    const length = [1, 2, 3, 4].find((size) => at + size <= bytes.length && isUtf8(bytes.subarray(at, at + size)));
    const part = bytes.subarray(at, at + (length ?? 1));
    text +=
      length === undefined ? `\\x${(part[0] ?? 0).toString(16).padStart(2, '0')}` : Buffer.from(part).toString('utf8');
    at += part.length;
  }
  return text;
}

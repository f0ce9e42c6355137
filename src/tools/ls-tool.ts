import { posix } from 'node:path';
import { z } from 'zod';
import { unreachableError } from '../filesystem/access/access.js';
import { type DirectoryEntry, type EntryKind, listDirectory } from '../filesystem/access/list-directory.js';
import { ignoredNames } from '../filesystem/search/ignore-rules.js';
import type { ToolSettings, Work } from './define-tool.js';
import { discover } from './discover.js';
import { type Listing, listingTool } from './listing.js';
import { shownName } from './shown-name.js';
import type { Tool } from './tool.js';

const DEFAULT_LIMIT = 2_000;

const SHAPE = {
  path: z.string().min(1).optional().describe('Folder (default: the working folder)'),
  limit: z.int().min(1).optional().describe(`Most entries (default ${DEFAULT_LIMIT})`),
};

const SUFFIX: Readonly<Record<EntryKind, string>> = { file: '', directory: '/', symlink: '@', fifo: '|', socket: '=', device: '#' };

function entryLine({ name, kind, target }: DirectoryEntry): string {
  return `${shownName(name)}${target === 'directory' ? '/' : ''}${SUFFIX[kind]}`;
}

async function list(path: string, limit: number, work: Work): Promise<Listing> {
  const { files } = work.client;
  const folder = await files.locate(path);
  if (!folder.location.reachable) throw unreachableError(path);
  const { roots } = files.access;
  const { entries, unaddressable } = await listDirectory(roots, folder.location.path, { signal: work.signal, shown: path });
  const shown = entries.slice(0, limit);
  const ignored = await ignoredNames(
    folder.location.path,
    shown.map(({ name, kind }) => ({ name, isFolder: kind === 'directory' })),
  );
  const named = shown.filter(({ name, kind, addressable }) => kind === 'file' && addressable && !ignored.has(name));
  const { mentions, note } = await discover(
    folder,
    named.map(({ name }) => posix.join(folder.location.path, name)),
    work,
  );
  return {
    fields: { path: folder.display, entries: entries.length },
    lines: shown.map(entryLine),
    none: '(empty folder)',
    notes: [
      entries.length > shown.length
        ? `[${entries.length - shown.length} more entries. Continue: ls with limit=${entries.length}]`
        : undefined,
      unaddressable > 0 ? `[${unaddressable} names are not UTF-8; such files cannot be used here.]` : undefined,
      note,
    ],
    mentions,
    meta: { path: folder.display, entries: entries.length },
  };
}

/** `ls`: one folder, everything in it; its files that are not ignored enter the pool [§5.6, decision C7]. */
export function lsTool(settings: ToolSettings): Tool {
  return listingTool(
    {
      name: 'ls',
      description: 'List a folder, hidden files included. "/" marks folders, "@" links. Files listed become known to your context, unread.',
      shape: SHAPE,
      list: ({ path = '.', limit = DEFAULT_LIMIT }, work) => list(path, limit, work),
    },
    settings,
  );
}

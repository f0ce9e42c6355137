import { posix } from 'node:path';
import * as z from 'zod';
import { MOST_DISCOVERED } from '../client/decide-file.js';
import { type DirectoryEntry, type EntryKind, listDirectory } from '../filesystem/access/list-directory.js';
import { ignoredNames } from '../filesystem/search/ignore-rules.js';
import { findFiles, walkFiles } from '../filesystem/search/walk.js';
import { noFilesText } from './empty-search.js';
import { treeLines } from './folder-tree.js';
import { headerValue, shownName } from './framing.js';
import { asGiven, discover, listingTool, reachablePlace } from './listing.js';
import { didYouMean, similarPaths } from './require-object.js';

const FOLDER = z.string().min(1).optional().describe('Folder (default: the working folder)');

const notUtf8 = (names: number): string | undefined =>
  names > 0 ? `[${names} names are not UTF-8; such files cannot be used here.]` : undefined;

const SUFFIX: Readonly<Record<EntryKind, string>> = {
  file: '',
  directory: '/',
  symlink: '@',
  fifo: '|',
  socket: '=',
  device: '#',
};

function entryLine({ name, kind, target }: DirectoryEntry): string {
  return `${shownName(name)}${target === 'directory' ? '/' : ''}${SUFFIX[kind]}`;
}

/**
 * The tool `ls`: lists a whole folder. Files that are not ignored enter the pool [§5.6,
 * divergence C7].
 */
export const lsTool = listingTool({
  name: 'ls',
  description:
    'List a folder, hidden files included. "/" marks folders, "@" links. Files listed become known to the ' +
    'session, unread, unless ignored (.gitignore).',
  shape: { path: FOLDER, limit: z.int().min(1).optional().describe('Most entries (default: all)') },
  list: async ({ path = '.', limit }, work) => {
    const folder = await reachablePlace(path, work);
    const at = folder.location.path;
    const { roots } = work.client.files.access;
    const { entries, unaddressable } = await listDirectory(roots, at, { signal: work.signal, shown: path });
    const shown = entries.slice(0, limit);
    const files = shown.filter(({ kind, addressable }) => kind === 'file' && addressable).map(({ name }) => name);
    // Checks only the first names: ignore rules can take milliseconds per name, and a folder can
    // have a million names.
    const judged = files.slice(0, MOST_DISCOVERED).map((name) => ({ name, isFolder: false }));
    const ignored = await ignoredNames(at, judged);
    const paths = judged.flatMap(({ name }) => (ignored.has(name) ? [] : [posix.join(at, name)]));
    const { mentions, note } = await discover(folder, { paths, of: files.length }, work);
    return {
      fields: { path: folder.display, entries: entries.length },
      lines: shown.map(entryLine),
      none: '(empty folder)',
      notes: [notUtf8(unaddressable), note],
      rest:
        entries.length > shown.length
          ? `[${entries.length - shown.length} more entries. Continue: ls path=${headerValue(path)} ` +
            `limit=${entries.length}]`
          : undefined,
      mentions,
    };
  },
});

const MOST_FOUND = 1_000;

/** The tool `find`: finds files by glob and respects ignore rules. */
export const findTool = listingTool({
  name: 'find',
  description: 'Find files by glob. Ignored files (.gitignore) and .git are skipped.',
  shape: {
    pattern: z.string().min(1).describe('Glob: *.ts (any folder), src/**/*.{ts,js}'),
    path: z.string().min(1).optional().describe('Folder to search (default: the working folder)'),
    limit: z.int().min(1).max(100_000).optional().describe(`Most files (default ${MOST_FOUND})`),
  },
  list: async ({ pattern, path = '.', limit = MOST_FOUND }, work) => {
    const folder = await reachablePlace(path, work);
    const { roots } = work.client.files.access;
    const found = await findFiles(roots, folder.location.path, { pattern, limit, signal: work.signal, shown: path });
    const { mentions, note } = await discover(folder, found, work);
    return {
      fields: { path: folder.display, files: found.paths.length },
      lines: found.paths.map((file) => shownName(asGiven(folder, file))),
      none: `${noFilesText(pattern, path)} ${didYouMean(similarPaths(pattern, work), pattern)}`.trimEnd(),
      notes: [
        found.truncated
          ? `[There are more than ${limit} files. Narrow the pattern or give a larger limit.]`
          : undefined,
        found.timedOut ? '[The search took too long and was stopped; narrow the path.]' : undefined,
        notUtf8(found.unaddressable),
        note,
      ],
      mentions,
      truncated: found.truncated || found.timedOut,
    };
  },
});

const DEFAULT_DEPTH = 3;
const MOST_WALKED = 50_000;

/**
 * The tool `tree`: shows the files below a folder as an indented tree and respects ignore rules.
 */
export const treeTool = listingTool({
  name: 'tree',
  description: 'Show the files below a folder as an indented tree. Ignored files (.gitignore) and .git are skipped.',
  shape: {
    path: FOLDER,
    depth: z
      .int()
      .min(1)
      .max(100)
      .optional()
      .describe(`Levels shown (default ${DEFAULT_DEPTH}); deeper folders are counted`),
  },
  list: async ({ path = '.', depth = DEFAULT_DEPTH }, work) => {
    const folder = await reachablePlace(path, work);
    const at = folder.location.path;
    const walked = await walkFiles(work.client.files.access.roots, at, {
      limit: MOST_WALKED,
      signal: work.signal,
      shown: path,
    });
    const { lines, named } = treeLines(walked.paths, depth, shownName);
    const paths = named.map((file) => posix.join(at, file));
    const { mentions, note } = await discover(folder, { paths }, work);
    return {
      fields: { path: folder.display, files: walked.paths.length },
      lines,
      none: `No files below ${shownName(path)}.`,
      notes: [
        walked.truncated
          ? `[There are more than ${MOST_WALKED} files; the rest is left out. Name a deeper folder.]`
          : undefined,
        walked.timedOut ? '[The walk took too long and was stopped; name a deeper folder.]' : undefined,
        notUtf8(walked.unaddressable),
        note,
      ],
      mentions,
      truncated: walked.truncated || walked.timedOut,
    };
  },
});

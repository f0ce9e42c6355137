import { posix } from 'node:path';
import { z } from 'zod';
import { unreachableError } from '../filesystem/access/access.js';
import { walkFiles } from '../filesystem/search/walk.js';
import type { ToolSettings, Work } from './define-tool.js';
import { discover } from './discover.js';
import { treeLines } from './folder-tree.js';
import { type Listing, listingTool } from './listing.js';
import { shownName } from './shown-name.js';
import type { Tool } from './tool.js';

const DEFAULT_DEPTH = 3;
const MOST_FILES = 50_000;

const SHAPE = {
  path: z.string().min(1).optional().describe('Folder (default: the working folder)'),
  depth: z.int().min(1).max(100).optional().describe(`Levels shown (default ${DEFAULT_DEPTH}); deeper folders are counted`),
};

async function list(path: string, depth: number, work: Work): Promise<Listing> {
  const { files } = work.client;
  const folder = await files.locate(path);
  if (!folder.location.reachable) throw unreachableError(path);
  const walked = await walkFiles(files.access.roots, folder.location.path, { limit: MOST_FILES, signal: work.signal, shown: path });
  const { lines, named } = treeLines(walked.paths, depth, shownName);
  const { mentions, note } = await discover(
    folder,
    named.map((file) => posix.join(folder.location.path, file)),
    work,
  );
  return {
    fields: { path: folder.display, files: walked.paths.length },
    lines,
    none: `No files below ${path}.`,
    notes: [
      walked.truncated ? `[There are more than ${MOST_FILES} files; the rest is left out. Name a deeper folder.]` : undefined,
      walked.timedOut ? '[The walk took too long and was stopped; name a deeper folder.]' : undefined,
      walked.unaddressable > 0 ? `[${walked.unaddressable} names are not UTF-8; such files cannot be used here.]` : undefined,
      note,
    ],
    mentions,
    meta: { path: folder.display, files: walked.paths.length, truncated: walked.truncated || walked.timedOut },
  };
}

/** `tree`: the files below a folder, indented, ignore rules honoured. */
export function treeTool(settings: ToolSettings): Tool {
  return listingTool(
    {
      name: 'tree',
      description: 'Show the files below a folder as an indented tree. Ignored files (.gitignore) and .git are skipped.',
      shape: SHAPE,
      list: ({ path = '.', depth = DEFAULT_DEPTH }, work) => list(path, depth, work),
    },
    settings,
  );
}

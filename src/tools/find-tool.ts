import { z } from 'zod';
import { unreachableError } from '../filesystem/access/access.js';
import { findFiles } from '../filesystem/search/walk.js';
import type { ToolSettings, Work } from './define-tool.js';
import { asGiven, discover } from './discover.js';
import { type Listing, listingTool } from './listing.js';
import { shownName } from './shown-name.js';
import type { Tool } from './tool.js';

const DEFAULT_LIMIT = 1_000;

const SHAPE = {
  pattern: z.string().min(1).describe('Glob: *.ts (any folder), src/**/*.{ts,js}'),
  path: z.string().min(1).optional().describe('Folder to search (default: the working folder)'),
  limit: z.int().min(1).max(100_000).optional().describe(`Most files (default ${DEFAULT_LIMIT})`),
};

async function list(pattern: string, path: string, limit: number, work: Work): Promise<Listing> {
  const { files } = work.client;
  const folder = await files.locate(path);
  if (!folder.location.reachable) throw unreachableError(path);
  const found = await findFiles(files.access.roots, folder.location.path, pattern, { limit, signal: work.signal, shown: path });
  const { mentions, note } = await discover(folder, found.paths, work);
  return {
    fields: { path: folder.display, files: found.paths.length },
    lines: found.paths.map((file) => shownName(asGiven(folder, file))),
    none: `No files below ${path} match ${pattern}.`,
    notes: [
      found.truncated ? `[There are more than ${limit} files. Narrow the pattern or give a larger limit.]` : undefined,
      found.timedOut ? '[The search took too long and was stopped; narrow the path.]' : undefined,
      found.unaddressable > 0 ? `[${found.unaddressable} names are not UTF-8; such files cannot be used here.]` : undefined,
      note,
    ],
    mentions,
    meta: { path: folder.display, files: found.paths.length, truncated: found.truncated || found.timedOut },
  };
}

/** `find`: files by glob, ignore rules honoured. */
export function findTool(settings: ToolSettings): Tool {
  return listingTool(
    {
      name: 'find',
      description: 'Find files by glob. Ignored files (.gitignore) and .git are skipped.',
      shape: SHAPE,
      list: ({ pattern, path = '.', limit = DEFAULT_LIMIT }, work) => list(pattern, path, limit, work),
    },
    settings,
  );
}

import * as z from 'zod';
import type { FoundLine, LeftOutFile } from '../filesystem/search/search-task.js';
import { searchText } from '../filesystem/search/search-text.js';
import { defined } from '../values/defined.js';
import { noFilesText, noMatchesText } from './empty-search.js';
import { shownName } from './framing.js';
import { asGiven, discover, listingTool, reachablePlace } from './listing.js';
import { ToolError } from './tool.js';

const DEFAULT_LIMIT = 100;

const SHAPE = {
  pattern: z.string().min(1).describe('Regular expression'),
  path: z.string().min(1).optional().describe('File or folder to search (default: the working folder)'),
  glob: z.string().min(1).optional().describe('Only files that match, such as *.ts'),
  ignoreCase: z.boolean().optional().describe('Default false'),
  literal: z.boolean().optional().describe('Take the pattern as plain text (default false)'),
  context: z.int().min(0).max(100).optional().describe('Lines around each match (default 0)'),
  limit: z.int().min(1).max(10_000).optional().describe(`Most matches (default ${DEFAULT_LIMIT})`),
};

/**
 * Formats matches as `src/a.ts:3: text`, and lines around them as `src/a.ts-2- text`. `--` stands
 * between two parts of a file, and between files.
 */
function resultLines(
  found: readonly FoundLine[],
  nameOf: (path: string) => string,
  withGaps: boolean,
): readonly string[] {
  const lines: string[] = [];
  let before: FoundLine | undefined;
  for (const line of found) {
    const adjoins = before !== undefined && before.path === line.path && before.line + 1 === line.line;
    if (withGaps && before !== undefined && !adjoins) lines.push('--');
    const mark = line.isContext ? '-' : ':';
    lines.push(`${nameOf(line.path)}${mark}${line.line}${mark} ${line.text}${line.cut ? ' [line cut]' : ''}`);
    before = line;
  }
  return lines;
}

/** Returns the error if the only named file is not searched. */
function leftOutError({ why, bytes }: LeftOutFile, name: string): ToolError {
  if (why === 'binary')
    return new ToolError('not-text', `${name} is not searched: it is binary (${bytes} bytes, a NUL among them).`, {
      next: 'Search another file; only text can be searched.',
    });
  return new ToolError(
    'too-large',
    `${name} is left out: it has ${bytes} bytes, and files over 64 MiB are not searched.`,
    {
      next: 'Search it with a shell command, or split it into smaller files.',
    },
  );
}

const NAMED_LEFT_OUT = 5;

function leftOutNote(names: readonly string[]): string | undefined {
  if (names.length === 0) return undefined;
  const more = names.length > NAMED_LEFT_OUT ? ` and ${names.length - NAMED_LEFT_OUT} more` : '';
  return (
    `[Left out, over 64 MiB: ${names.slice(0, NAMED_LEFT_OUT).join(', ')}${more}. Search such a file with a ` +
    'command of the shell.]'
  );
}

/** The tool `grep`: searches lines of files by regular expression and respects ignore rules. */
export const grepTool = listingTool({
  name: 'grep',
  description: 'Search file contents, line by line. Ignored files (.gitignore), .git and binary files are skipped.',
  shape: SHAPE,
  list: async (
    { pattern, path = '.', glob, ignoreCase = false, literal = false, context = 0, limit = DEFAULT_LIMIT },
    work,
  ) => {
    const place = await reachablePlace(path, work);
    const options = { ignoreCase, literal, context, limit, signal: work.signal, shown: path, ...defined({ glob }) };
    const found = await searchText(work.client.files.access.roots, place.location.path, { pattern, ...options });
    const named = found.leftOut.find((one) => one.path === place.location.path);
    if (named !== undefined) throw leftOutError(named, shownName(path));
    const paths = [...new Set(found.lines.map((line) => line.path))];
    const names = new Map(paths.map((one) => [one, shownName(asGiven(place, one))]));
    const { mentions, note } = await discover(place, { paths }, work);
    return {
      fields: { path: place.display, matches: found.matches, files: paths.length },
      lines: resultLines(found.lines, (one) => names.get(one) ?? one, context > 0),
      none: glob !== undefined && found.files === 0 ? noFilesText(glob, path) : noMatchesText(pattern, literal),
      notes: [
        found.truncated
          ? `[There are more than ${found.matches} matches. Narrow the pattern, path or glob, or give a larger limit.]`
          : undefined,
        found.timedOut ? '[The search took too long and was stopped; narrow the path or glob.]' : undefined,
        found.skipped > 0
          ? `[${found.skipped} lines or files were too long or have names that are not UTF-8, and were left out.]`
          : undefined,
        leftOutNote(found.leftOut.map((one) => shownName(asGiven(place, one.path)))),
        note,
      ],
      mentions,
      truncated: found.truncated || found.timedOut,
    };
  },
});

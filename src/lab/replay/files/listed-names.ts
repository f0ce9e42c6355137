import { posix } from 'node:path';
import type { NamesLayout } from '../shell/shell-act.js';

/** Lines of an output that are looked at; the client takes up at most 2,000 files a call (decision C7). */
const MOST_LINES = 20_000;

const linesOf = (output: string): readonly string[] =>
  output
    .split('\n', MOST_LINES)
    .map((line) => line.replace(/\r$/, ''))
    .filter((line) => line !== '' && line.length <= 4_096);

const looksLikePath = (name: string): boolean =>
  name !== '' && !name.endsWith('/') && !/[\0\t*?<>|"]/.test(name) && name !== '.' && name !== '..';

/** One path a line, as `find -type f`, `rg --files` and globbing tools print them; anything else in the output means that it is something else. */
function pathLines(output: string): readonly string[] {
  return linesOf(output)
    .map((line) => line.trim())
    .filter(
      (line) =>
        looksLikePath(line) &&
        !/^(?:No files found|No matches|Found \d+|\(Results|\[|find: |rg: |grep: |ls: |fatal: |error: )/i.test(line) &&
        !line.includes(': '),
    );
}

const LONG =
  /^(-)[rwxsStT-]{9}[.+@]?\s+\d+\s+\S+\s+\S+\s+[\d.,]+[KMGT]?\s+\S+\s+\S+\s+(?:\d{2}:?\d{2}\s+|\d{4}\s+|[\d:.]+\s+(?:[+-]\d{4}\s+)?)?(.+)$/;

/** Regular files of `ls -l`: their lines begin with `-`. */
function longLines(output: string): readonly string[] {
  return linesOf(output).flatMap((line) => {
    const name = LONG.exec(line)?.[2];
    return name === undefined || !looksLikePath(name) ? [] : [name.replace(/^'(.*)'$/, '$1')];
  });
}

/**
 * Names of a listing that marks its folders, with a slash or in words: then those without a mark are files. A listing without any mark does not tell files
 * from folders, and nothing is taken from it.
 */
function markedLines(output: string): readonly string[] {
  const lines = linesOf(output).map((line) => line.trim().replace(/^[-•] /, ''));
  const typed = lines.flatMap((line) => /^\[(?:FILE|F)\]\s+(.+)$/i.exec(line)?.[1] ?? []);
  if (typed.length > 0) return typed;
  if (!lines.some((line) => line.endsWith('/'))) return [];
  return lines.map((line) => line.replace(/\*$/, '')).filter((line) => looksLikePath(line) && !/\s{2,}|: |^\(|^\[|[@=]$/.test(line));
}

/** The file of a line `path:12:text`, `path-12-text` or, for searches below a named folder, `path:text`. */
function matchPath(line: string, targets: readonly string[]): string | undefined {
  const numbered = /^((?:[A-Za-z]:)?[^:]+?)[:-]\d+[:-]/.exec(line)?.[1];
  if (numbered !== undefined) return numbered;
  const first = line.slice(0, Math.max(0, line.indexOf(':')));
  return targets.some((target) => target !== '.' && first.startsWith(`${target.replace(/\/$/, '')}/`)) ? first : undefined;
}

function matchLines(output: string, targets: readonly string[]): readonly string[] {
  const paths = linesOf(output).flatMap((line) => matchPath(line, targets) ?? []);
  return paths.filter((path) => looksLikePath(path) && !/\s/.test(path) && /[./]/.test(path));
}

const LAYOUTS: Readonly<Record<NamesLayout, (output: string, targets: readonly string[]) => readonly string[]>> = {
  paths: pathLines,
  listing: markedLines,
  'long-listing': longLines,
  matches: matchLines,
};

/**
 * The files that an output certainly names, each once, in its order. There is no disk to ask here, so a name that may be a folder or no name at all is left
 * out: fewer than a live session discovers, never one that was not there.
 */
export function listedNames(layout: NamesLayout, output: string, folder: string, targets: readonly string[] = []): readonly string[] {
  const names = LAYOUTS[layout](output, targets);
  const below = layout === 'listing' || layout === 'long-listing';
  return [...new Set(below ? names.map((name) => (posix.isAbsolute(name) ? name : posix.join(folder, name))) : names)];
}

import { posix } from 'node:path';
import type { ListingFormat } from '../../foreign-tools/tool-table.js';

/**
 * Maximum number of an output's lines that are read. A call discovers at most 2,000 files
 * (decision C7).
 */
const MOST_LINES = 20_000;
const LONGEST_LINE = 4_096;

function linesOf(output: string): readonly string[] {
  return output
    .split('\n', MOST_LINES)
    .map((line) => line.replace(/\r$/, ''))
    .filter((line) => line !== '' && line.length <= LONGEST_LINE);
}

/** Matches a line of `ls -l`: its type and its name. */
const LONG =
  /^([-dlbcps])[-rwxsStT]{9}[.+@]?\s+\d+\s+\S+\s+\S+\s+[\d.,]+[KMGT]?\s+\S+\s+\S+\s+(?:\d{2}:?\d{2}\s+|\d{4}\s+|[\d:.]+\s+(?:[+-]\d{4}\s+)?|[+-]\d{4}\s+)?(.+)$/;

/** Matches a line with a match or around a match: `path:3: text`, `path.ts-2- text`. */
const MATCH = /^((?:[A-Za-z]:)?[^:]+?)(?::\d+[:-]|(?<=\.[A-Za-z]\w{0,7})-\d+-)/;

// The next functions return every name that a line may contain. Their callers check the disk.

/**
 * The names that one line may contain, most likely first. They are relative to the call's folder.
 */
export type LineReadings = readonly string[];

const unquoted = (name: string): string => (/^(["'`]).+\1$/.test(name) ? name.slice(1, -1) : name);

/** Returns a name without what a listing adds: marks before it, and a type or size after it. */
function bareNames(text: string): readonly string[] {
  const name = text.replace(/^\[(?:FILE|DIR|F|D|LINK)\]\s+/i, '').trimEnd();
  const long = LONG.exec(name)?.[2];
  const names = [name, name.replace(/[*@=|]$/, ''), name.replace(/\s+[([]?[\d.,]+\s*(?:bytes|[KMGT]?i?B)[)\]]?$/i, '')];
  if (long !== undefined) names.unshift(long, name.split(/\s+/).at(-1) ?? long);
  return [...new Set(names.map(unquoted))].filter((one) => one !== '' && one !== '.' && one !== '..');
}

/**
 * Reads the lines of `ls` or `tree`, plain or long. Indentation and box drawing show which folder a
 * name is in. After a header such as `src:` of `ls -R`, names are in that folder.
 */
function listingReadings(output: string): readonly LineReadings[] {
  const folders: { readonly depth: number; readonly path: string }[] = [];
  let header = '';
  return linesOf(output).map((line) => {
    const lead = /^(?:[\s│├└─|`+•]|[-*](?= ))*/u.exec(line)?.[0].length ?? 0;
    const names = bareNames(line.slice(lead));
    const [name = ''] = names;
    while ((folders.at(-1)?.depth ?? -1) >= lead) folders.pop();
    if (lead === 0 && name.endsWith(':')) header = name.slice(0, -1);
    const above = folders.at(-1)?.path ?? '';
    const readings = names.map((one) => posix.join(above, one));
    folders.push({
      depth: lead,
      path: name.startsWith('/') ? name : posix.join(above, name.replace(/\/? \(\d+ files?\)$/, '')),
    });
    const below = header === '' ? [] : names.map((one) => posix.join(header, one));
    return [...readings, ...below, ...(lead > 0 ? [...names, line.trim()] : [])];
  });
}

function pathReadings(output: string): readonly LineReadings[] {
  return linesOf(output).map((line) => [...bareNames(line.trim()), ...bareNames(line.replace(/^[-*•]\s+/, '').trim())]);
}

/**
 * Reads `path:3: text`, `path-2- text`, `path:text`, `path`, or a path as the heading of its
 * matches.
 */
function matchReadings(output: string): readonly LineReadings[] {
  return linesOf(output).map((line) => {
    const numbered = /^(.+?)[:-]\d+[:-]/.exec(line)?.[1];
    const counted = /^(.+):\d+$/.exec(line)?.[1];
    const heading = /^(?:(?:File|Path):\s*)?(.+?):?$/i.exec(line.trim())?.[1];
    const first = line.indexOf(':') > 0 ? line.slice(0, line.indexOf(':')) : undefined;
    const readings = [numbered, counted, first, heading, ...bareNames(line.trim())];
    return [...new Set(readings.filter((one) => one !== undefined).map(unquoted))];
  });
}

function wordReadings(output: string): readonly LineReadings[] {
  const words = linesOf(output).flatMap((line) => [
    matchReadings(line)[0] ?? [],
    ...line.split(/[\s"'`()[\]{}<>,;=]+/).map((word) => [word]),
  ]);
  return words.map((readings) =>
    readings.flatMap((word) => [word, word.replace(/[.:!?]+$/, ''), word.replace(/(?::\d+){1,2}:?$/, '')]),
  );
}

function jsonReadings(value: unknown, folder: string): readonly LineReadings[] {
  if (typeof value === 'string') return [[posix.join(value.startsWith('/') ? '' : folder, value)]];
  if (Array.isArray(value)) return value.slice(0, MOST_LINES).flatMap((entry) => jsonReadings(entry, folder));
  if (typeof value !== 'object' || value === null) return [];
  const { path, file, name, type, children, files, entries, results, matches } = value as Readonly<
    Record<string, unknown>
  >;
  const own = [path, file, name].find((one) => typeof one === 'string') as string | undefined;
  const here = own === undefined ? folder : posix.join(own.startsWith('/') ? '' : folder, own);
  const nested = [children, files, entries, results, matches].flatMap((one) =>
    Array.isArray(one) ? jsonReadings(one, here) : [],
  );
  return [...(own === undefined || type === 'directory' ? [] : [[here]]), ...nested];
}

function parsedJson(output: string): unknown {
  const text = output.trim();
  if (!/^[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// The next functions return only names that are certainly files. Their callers have no disk.

const looksLikePath = (name: string): boolean =>
  name !== '' && !name.endsWith('/') && !/[\0\t*?<>|"]/.test(name) && name !== '.' && name !== '..';

const NO_PATH = /^(?:No files found|No matches|Found \d+|\(Results|\[|find: |rg: |grep: |ls: |fatal: |error: )/i;

/** Reads one path per line, as `find -type f`, `rg --files` and tools for globbing print them. */
function certainPaths(output: string): readonly string[] {
  return linesOf(output)
    .map((line) => line.trim())
    .filter((line) => looksLikePath(line) && !NO_PATH.test(line) && !line.includes(': '));
}

/** Reads the regular files in `ls -l`, whose lines begin with `-`. */
function longNames(output: string): readonly string[] {
  return linesOf(output).flatMap((line) => {
    const [, type, name = ''] = LONG.exec(line) ?? [];
    return type === '-' && looksLikePath(name) ? [name.replace(/^'(.*)'$/, '$1')] : [];
  });
}

/**
 * Reads a listing that marks its folders with a slash or in words. Names without a mark are files.
 * If nothing is marked, files and folders look alike, so no names are returned.
 */
function markedNames(output: string): readonly string[] {
  const lines = linesOf(output).map((line) => line.trim().replace(/^[-•] /, ''));
  const typed = lines.flatMap((line) => /^\[(?:FILE|F)\]\s+(.+)$/i.exec(line)?.[1] ?? []);
  if (typed.length > 0) return typed;
  if (!lines.some((line) => line.endsWith('/'))) return [];
  return lines
    .map((line) => line.replace(/\*$/, ''))
    .filter((line) => looksLikePath(line) && !/\s{2,}|: |^\(|^\[|[@=]$/.test(line));
}

/**
 * Returns the file that a match's line names. The line has a number, or the form `path:text` in a
 * search below a named folder. A line around a match names a file only by its extension, because
 * the beginning of `logs/2026-01-06-a.log` looks alike.
 */
function matchPath(line: string, targets: readonly string[]): string | undefined {
  const numbered = MATCH.exec(line)?.[1];
  if (numbered !== undefined) return numbered;
  const first = line.slice(0, Math.max(0, line.indexOf(':')));
  return targets.some((target) => target !== '.' && first.startsWith(`${target.replace(/\/$/, '')}/`))
    ? first
    : undefined;
}

function matchedPaths(output: string, targets: readonly string[]): readonly string[] {
  const paths = linesOf(output).flatMap((line) => matchPath(line, targets) ?? []);
  return paths.filter((path) => looksLikePath(path) && !/\s/.test(path) && /[./]/.test(path));
}

interface FormatReader {
  readonly possible: (output: string) => readonly LineReadings[];
  readonly certain: (output: string, targets: readonly string[]) => readonly string[];
  /** Whether names are relative to the listed folder, as opposed to the call's folder. */
  readonly inFolder: boolean;
}

const FORMATS: Readonly<Record<ListingFormat, FormatReader>> = {
  paths: { possible: pathReadings, certain: certainPaths, inFolder: false },
  listing: { possible: listingReadings, certain: markedNames, inFolder: true },
  'long-listing': { possible: listingReadings, certain: longNames, inFolder: true },
  matches: { possible: matchReadings, certain: matchedPaths, inFolder: false },
  words: { possible: wordReadings, certain: () => [], inFolder: false },
};

/**
 * Returns the names that an output may contain, by line [§5.6, Discovery]. Many of them name no
 * file: the caller keeps only those of existing regular files (decisions C7, C8).
 */
export function possibleNames(format: ListingFormat, output: string): readonly LineReadings[] {
  const json = parsedJson(output);
  const readings = json === undefined ? FORMATS[format].possible(output) : jsonReadings(json, '');
  return readings.map((line) => line.filter((path) => path !== '' && !path.endsWith('/') && !path.includes('\0')));
}

/** The folder or targets that an output is about. */
export interface ListedPlace {
  /** The listed folder. `.` is the call's folder. */
  readonly folder?: string;
  /** The files and folders that were searched. */
  readonly targets?: readonly string[];
}

/**
 * Returns the files that an output certainly names, each once, in order. Names that may be folders
 * are left out. A client with a disk would discover more files, but every file returned here
 * existed.
 */
export function certainNames(
  format: ListingFormat,
  output: string,
  { folder = '.', targets = [] }: ListedPlace = {},
): readonly string[] {
  const { certain, inFolder } = FORMATS[format];
  const names = certain(output, targets);
  return [
    ...new Set(inFolder ? names.map((name) => (posix.isAbsolute(name) ? name : posix.join(folder, name))) : names),
  ];
}

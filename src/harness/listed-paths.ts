import { posix } from 'node:path';

/** The ways in which one line of an output may be meant: paths relative to the call's folder, the most likely first. */
export type LineReadings = readonly string[];

/** More lines than this are not looked at. */
const MOST_LINES = 20_000;
const LONGEST_LINE = 4_096;

function linesOf(output: string): readonly string[] {
  return output
    .split('\n', MOST_LINES)
    .map((line) => line.replace(/\r$/, ''))
    .filter((line) => line !== '' && line.length <= LONGEST_LINE);
}

const unquoted = (name: string): string => (/^(["'`]).+\1$/.test(name) ? name.slice(1, -1) : name);

/** A name without what listings put around it: marks before it, a type suffix or a size behind it. */
function bareNames(text: string): readonly string[] {
  const name = text.replace(/^\[(?:FILE|DIR|F|D|LINK)\]\s+/i, '').trimEnd();
  const long = /^[-dlbcps][-rwxsStT]{9}[.+@]?\s+\d+\s+\S+\s+\S+\s+[\d.,]+[KMGT]?\s+\S+\s+\S+\s+(?:\S+\s+(?=\S))?(.+)$/.exec(name)?.[1];
  const names = [name, name.replace(/[*@=|]$/, ''), name.replace(/\s+[([]?[\d.,]+\s*(?:bytes|[KMGT]?i?B)[)\]]?$/i, '')];
  if (long !== undefined) names.unshift(long, name.split(/\s+/).at(-1) ?? long);
  return [...new Set(names.map(unquoted))].filter((one) => one !== '' && one !== '.' && one !== '..');
}

interface Folder {
  readonly depth: number;
  readonly path: string;
}

/**
 * The lines of `ls` or `tree`: names, bare or long, and names below folders by indentation or box drawing. A folder header of `ls -R` (`src:`) holds
 * for the lines after it.
 */
function listingLines(output: string): readonly LineReadings[] {
  const folders: Folder[] = [];
  let header = '';
  return linesOf(output).map((line) => {
    const lead = /^(?:[\s│├└─|`+•]|[-*](?= ))*/u.exec(line)?.[0].length ?? 0;
    const names = bareNames(line.slice(lead));
    const [name = ''] = names;
    while ((folders.at(-1)?.depth ?? -1) >= lead) folders.pop();
    if (lead === 0 && name.endsWith(':')) header = name.slice(0, -1);
    const above = folders.at(-1)?.path ?? '';
    const readings = names.map((one) => posix.join(above, one));
    folders.push({ depth: lead, path: name.startsWith('/') ? name : posix.join(above, name.replace(/\/? \(\d+ files?\)$/, '')) });
    const below = header === '' ? [] : names.map((one) => posix.join(header, one));
    return [...readings, ...below, ...(lead > 0 ? [...names, line.trim()] : [])];
  });
}

/** The lines of `glob` or `find`: one path each. */
function pathLines(output: string): readonly LineReadings[] {
  return linesOf(output).map((line) => [...bareNames(line.trim()), ...bareNames(line.replace(/^[-*•]\s+/, '').trim())]);
}

/** The lines of `grep`: `path:3: text`, `path-2- text`, `path:text`, `path`, or a path as a heading over its matches. */
function matchLines(output: string): readonly LineReadings[] {
  return linesOf(output).map((line) => {
    const numbered = /^(.+?)[:-]\d+[:-]/.exec(line)?.[1];
    const counted = /^(.+):\d+$/.exec(line)?.[1];
    const heading = /^(?:(?:File|Path):\s*)?(.+?):?$/i.exec(line.trim())?.[1];
    const first = line.indexOf(':') > 0 ? line.slice(0, line.indexOf(':')) : undefined;
    const readings = [numbered, counted, first, heading, ...bareNames(line.trim())];
    return [...new Set(readings.filter((one) => one !== undefined).map(unquoted))];
  });
}

/** Words of shell output that may be paths; whether they are, the disk decides (decision C8). */
function shellWords(output: string): readonly LineReadings[] {
  const words = linesOf(output).flatMap((line) => [matchLines(line)[0] ?? [], ...line.split(/[\s"'`()[\]{}<>,;=]+/).map((word) => [word])]);
  return words.map((readings) => readings.flatMap((word) => [word, word.replace(/[.:!?]+$/, ''), word.replace(/(?::\d+){1,2}:?$/, '')]));
}

function fromJson(value: unknown, folder: string): readonly LineReadings[] {
  if (typeof value === 'string') return [[posix.join(value.startsWith('/') ? '' : folder, value)]];
  if (Array.isArray(value)) return value.slice(0, MOST_LINES).flatMap((entry) => fromJson(entry, folder));
  if (typeof value !== 'object' || value === null) return [];
  const { path, file, name, type, children, files, entries, results, matches } = value as Readonly<Record<string, unknown>>;
  const own = [path, file, name].find((one) => typeof one === 'string') as string | undefined;
  const here = own === undefined ? folder : posix.join(own.startsWith('/') ? '' : folder, own);
  const nested = [children, files, entries, results, matches].flatMap((one) => (Array.isArray(one) ? fromJson(one, here) : []));
  return [...(own === undefined || type === 'directory' ? [] : [[here]]), ...nested];
}

function parsed(output: string): unknown {
  const text = output.trim();
  if (!/^[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const LINES = { list: listingLines, tree: listingLines, find: pathLines, search: matchLines, shell: shellWords } as const;

/** Kinds of tools whose output names files. */
export type ListingKind = keyof typeof LINES;

/**
 * What the output of a listing, search or tree may name, line by line [§5.6, Discovery]. Generous on purpose: the caller keeps only what exists and is
 * a regular file.
 */
export function namedPaths(kind: ListingKind, output: string): readonly LineReadings[] {
  const json = parsed(output);
  const readings = json === undefined ? LINES[kind](output) : fromJson(json, '');
  return readings.map((line) => line.filter((path) => path !== '' && !path.endsWith('/') && !path.includes('\0')));
}

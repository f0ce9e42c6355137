import { posix } from 'node:path';
import { type LineReadings, possibleNames } from './listed-names.js';
import { operands, type ShellCommand, shellSteps } from './shell-syntax.js';

/**
 * The names that a script's output may contain, line by line, and the folders that they are
 * relative to, most likely first.
 */
export interface ShellNames {
  readonly lines: readonly LineReadings[];
  readonly folders: readonly string[];
}

/**
 * One listing of a script: of `target` as its command names it, or of the folder itself, or of
 * several folders, each below a header.
 */
interface Listing {
  /** The script's folder at that point. */
  readonly place: string;
  readonly target: string | undefined;
}

/** The parts of a script that print. */
interface Printed {
  readonly listings: readonly Listing[];
  /** The folders of all other commands. */
  readonly places: readonly string[];
}

const LISTS: ReadonlySet<string> = new Set(['ls', 'dir', 'vdir', 'exa', 'eza', 'lsd', 'tree']);
/** Their options that take a value. */
const VALUED = /^-[IwTLP]$/;
/** Commands that leave the lines of a listing unchanged. */
const LINE_FILTERS: ReadonlySet<string> = new Set(['head', 'tail', 'sort', 'uniq', 'grep', 'egrep', 'rg', 'cat']);
/** Commands that name no file in their output. */
const NAMELESS: ReadonlySet<string> = new Set([
  '',
  ':',
  'true',
  'mkdir',
  'export',
  'set',
  'unset',
  'echo',
  'printf',
  'pwd',
  'date',
  'sleep',
]);

/** Returns a path named by a script; undefined if only the shell could resolve it. */
function pathAt(place: string | undefined, path: string | undefined): string | undefined {
  if (path === undefined || path === '-' || path.startsWith('~')) return undefined;
  return posix.isAbsolute(path) ? posix.normalize(path) : place === undefined ? undefined : posix.join(place, path);
}

const isRedirected = ({ redirects }: ShellCommand): boolean =>
  redirects.some(({ operator, descriptor }) => operator.startsWith('>') && descriptor === 1);

/**
 * Returns the listing of a command; undefined if the folder is unknown. Patterns mean names
 * relative to the place.
 */
function listingOf({ words }: ShellCommand, place: string | undefined, hasVariables: boolean): Listing | undefined {
  const given = operands(words, VALUED);
  const [target] = given;
  if (given.length !== 1 || (target === undefined && !hasVariables)) {
    return place === undefined || (hasVariables && given.includes(undefined))
      ? undefined
      : { place, target: undefined };
  }
  return pathAt(place, target) === undefined
    ? undefined
    : { place: place ?? '/', target: target?.replace(/(?<=.)\/+$/, '') };
}

/** Returns the folder of a command. Git changes its folder first (`-C`). */
function placeOf({ name, words }: ShellCommand, place: string | undefined): string | undefined {
  if (name !== 'git') return place;
  let at = place;
  for (let i = 0; i < words.length && (words[i] === undefined || words[i]?.startsWith('-') === true); i++) {
    if (words[i] === '-C') at = pathAt(at, words[i + 1]);
    if (words[i] === '-C' || words[i] === '-c') i++;
  }
  return at;
}

/** Returns the printing parts of a script by its text; undefined if it is malformed. */
function printedBy(script: string, cwd: string): Printed | undefined {
  const listings: Listing[] = [];
  const places = new Set<string>();
  let place: string | undefined = cwd;
  const steps = shellSteps(script);
  for (const { pipeline } of steps ?? []) {
    const [first, ...filters] = pipeline ?? [];
    if (first !== undefined && filters.length === 0 && (first.name === 'cd' || first.name === 'pushd')) {
      place = pathAt(place, operands(first.words)[0]);
    } else if (first !== undefined && LISTS.has(first.name) && filters.every(({ name }) => LINE_FILTERS.has(name))) {
      const listing = listingOf(first, place, /[$`]/.test(script));
      if (listing !== undefined && ![first, ...filters].some(isRedirected)) listings.push(listing);
    } else if (first === undefined || !NAMELESS.has(first.name)) {
      places.add((first === undefined ? place : placeOf(first, place)) ?? '/');
    }
  }
  return steps === undefined ? undefined : { listings, places: [...places] };
}

/** Returns the parts of a listing, one per folder below its header, `src:`. */
function sectionsOf(output: string): readonly { readonly header: string | undefined; readonly lines: string[] }[] {
  const sections: { readonly header: string | undefined; readonly lines: string[] }[] = [
    { header: undefined, lines: [] },
  ];
  let before = '';
  for (const line of output.split(/\r?\n/)) {
    const header = before === '' ? /^(\S.*):$/.exec(line)?.[1] : undefined;
    if (header === undefined) sections.at(-1)?.lines.push(line);
    else sections.push({ header, lines: [] });
    before = line;
  }
  return sections;
}

const folderOf = ({ place, target }: Listing): string => posix.resolve(place, target ?? '.');

/**
 * Returns the names of a listing as absolute paths: names below its folder, a given file as given.
 */
function listedLines(listing: Listing, output: string): readonly LineReadings[] {
  const { place, target } = listing;
  return sectionsOf(output).flatMap(({ header, lines }) => {
    const folder = header === undefined ? folderOf(listing) : posix.resolve(place, header);
    const pathOf = (name: string): string =>
      posix.resolve(target !== undefined && (name === target || name.startsWith(`${target}/`)) ? place : folder, name);
    const columns = lines.filter((line) => /\S\s+\S/.test(line));
    const named = [...possibleNames('listing', lines.join('\n')), ...possibleNames('words', columns.join('\n'))];
    return named.map((readings) => readings.map(pathOf));
  });
}

/**
 * Returns the names that a shell's output may contain [§5.6, Discovery]. Listed names are relative
 * to the listed folder only, even if the same names exist elsewhere. All other words are relative
 * to their command's folder.
 */
export function shellNames(script: string | undefined, output: string, cwd: string): ShellNames {
  const printed = script === undefined ? undefined : printedBy(script, cwd);
  if (printed === undefined) return { lines: possibleNames('words', output), folders: [cwd] };
  const { listings, places } = printed;
  if (places.length === 0) return { lines: listings.flatMap((one) => listedLines(one, output)), folders: ['/'] };
  return { lines: possibleNames('words', output), folders: [...new Set([...listings.map(folderOf), ...places])] };
}

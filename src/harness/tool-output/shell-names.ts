import { posix } from 'node:path';
import { type LineReadings, possibleNames } from './listed-names.js';
import { operands, type ShellCommand, shellSteps } from './shell-syntax.js';

/**
 * The names that a script's output may contain, by line. `folders` are the folders that names may
 * be relative to, most likely first.
 */
export interface ShellNames {
  readonly lines: readonly LineReadings[];
  readonly folders: readonly string[];
}

/**
 * A listing that a script prints. It lists `target`, written as in the command, or else the
 * script's folder. It may have several folders, each below a header.
 */
interface Listing {
  /** The script's current folder when it lists. */
  readonly place: string;
  readonly target: string | undefined;
}

/** The commands of a script that print. */
interface Printed {
  readonly listings: readonly Listing[];
  /** The folders of the printing commands that are not listings. */
  readonly places: readonly string[];
}

const LISTS: ReadonlySet<string> = new Set(['ls', 'dir', 'vdir', 'exa', 'eza', 'lsd', 'tree']);
/** Matches options of listing commands that take a value. */
const VALUED = /^-[IwTLP]$/;
/** Commands that do not change the lines of a listing. */
const LINE_FILTERS: ReadonlySet<string> = new Set(['head', 'tail', 'sort', 'uniq', 'grep', 'egrep', 'rg', 'cat']);
/** Commands whose output does not name files. */
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

/** Resolves a path of a script. Undefined if only the shell could resolve it. */
function pathAt(place: string | undefined, path: string | undefined): string | undefined {
  if (path === undefined || path === '-' || path.startsWith('~')) return undefined;
  return posix.isAbsolute(path) ? posix.normalize(path) : place === undefined ? undefined : posix.join(place, path);
}

const isRedirected = ({ redirects }: ShellCommand): boolean =>
  redirects.some(({ operator, descriptor }) => operator.startsWith('>') && descriptor === 1);

/**
 * Returns the listing that a command prints. Undefined if its folder is unknown. If a pattern was
 * given, names are relative to the current folder.
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

/** Returns the folder that a command runs in. Git may change it with `-C`. */
function placeOf({ name, words }: ShellCommand, place: string | undefined): string | undefined {
  if (name !== 'git') return place;
  let at = place;
  for (let i = 0; i < words.length && (words[i] === undefined || words[i]?.startsWith('-') === true); i++) {
    if (words[i] === '-C') at = pathAt(at, words[i + 1]);
    if (words[i] === '-C' || words[i] === '-c') i++;
  }
  return at;
}

/** Returns the commands of a script that print. Undefined if the script is malformed. */
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

/**
 * Divides a listing into one section per folder. Each section except the first begins with a header
 * such as `src:`.
 */
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
 * Returns the names in a listing as absolute paths. Names are below the listed folder, except a
 * file that the command itself names.
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
 * Returns the names that the output of a shell may contain [§5.6, Discovery]. Names in a listing
 * are only relative to the listed folder. All other words are relative to the folders in which the
 * commands ran.
 */
export function shellNames(script: string | undefined, output: string, cwd: string): ShellNames {
  const printed = script === undefined ? undefined : printedBy(script, cwd);
  if (printed === undefined) return { lines: possibleNames('words', output), folders: [cwd] };
  const { listings, places } = printed;
  if (places.length === 0) return { lines: listings.flatMap((one) => listedLines(one, output)), folders: ['/'] };
  return { lines: possibleNames('words', output), folders: [...new Set([...listings.map(folderOf), ...places])] };
}

import { posix } from 'node:path';
import { type LineReadings, possibleNames } from './listed-names.js';
import { operands, type ShellCommand, shellSteps } from './shell-syntax.js';

/** What the output of a script may name, line by line, and the folders that the names are relative to, the most likely first. */
export interface ShellNames {
  readonly lines: readonly LineReadings[];
  readonly folders: readonly string[];
}

/** One listing of a script: of `target` as its command names it, else of what stands in the place, or of several folders, each under a header. */
interface Listing {
  /** The folder that the script was in. */
  readonly place: string;
  readonly target: string | undefined;
}

/** What prints something in a script. */
interface Printed {
  readonly listings: readonly Listing[];
  /** Where everything else ran. */
  readonly places: readonly string[];
}

const LISTS: ReadonlySet<string> = new Set(['ls', 'dir', 'vdir', 'exa', 'eza', 'lsd', 'tree']);
/** Options of those that take a value. */
const VALUED = /^-[IwTLP]$/;
/** What leaves the lines of a listing as they are. */
const LINE_FILTERS: ReadonlySet<string> = new Set(['head', 'tail', 'sort', 'uniq', 'grep', 'egrep', 'rg', 'cat']);
/** What names no file in its output. */
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

/** A path as a script names it; undefined where only the shell could tell. */
function pathAt(place: string | undefined, path: string | undefined): string | undefined {
  if (path === undefined || path === '-' || path.startsWith('~')) return undefined;
  return posix.isAbsolute(path) ? posix.normalize(path) : place === undefined ? undefined : posix.join(place, path);
}

const isRedirected = ({ redirects }: ShellCommand): boolean =>
  redirects.some(({ operator, descriptor }) => operator.startsWith('>') && descriptor === 1);

/** The listing of a command; undefined where the folder is not known. Patterns stand for names relative to the place. */
function listingOf({ words }: ShellCommand, place: string | undefined, hasVariables: boolean): Listing | undefined {
  const given = operands(words, VALUED);
  const [target] = given;
  if (given.length !== 1 || (target === undefined && !hasVariables)) {
    return place === undefined || (hasVariables && given.includes(undefined)) ? undefined : { place, target: undefined };
  }
  return pathAt(place, target) === undefined ? undefined : { place: place ?? '/', target: target?.replace(/(?<=.)\/+$/, '') };
}

/** Where a command runs: git changes its folder before it does anything (`-C`). */
function placeOf({ name, words }: ShellCommand, place: string | undefined): string | undefined {
  if (name !== 'git') return place;
  let at = place;
  for (let i = 0; i < words.length && (words[i] === undefined || words[i]?.startsWith('-') === true); i++) {
    if (words[i] === '-C') at = pathAt(at, words[i + 1]);
    if (words[i] === '-C' || words[i] === '-c') i++;
  }
  return at;
}

/** What a script prints, by its text; undefined for one that is malformed. */
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

/** The parts of a listing: each folder's below its header, `src:`. */
function sectionsOf(output: string): readonly { readonly header: string | undefined; readonly lines: string[] }[] {
  const sections: { readonly header: string | undefined; readonly lines: string[] }[] = [{ header: undefined, lines: [] }];
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

/** What a listing names, as absolute paths: names below its folder, a file that it was given as it was given. */
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
 * What the output of a shell may name [§5.6, Discovery]: what a script lists is meant below the folder that it lists, whatever else is called the same; all other
 * words are meant where their command ran.
 */
export function shellNames(script: string | undefined, output: string, cwd: string): ShellNames {
  const printed = script === undefined ? undefined : printedBy(script, cwd);
  if (printed === undefined) return { lines: possibleNames('words', output), folders: [cwd] };
  const { listings, places } = printed;
  if (places.length === 0) return { lines: listings.flatMap((one) => listedLines(one, output)), folders: ['/'] };
  return { lines: possibleNames('words', output), folders: [...new Set([...listings.map(folderOf), ...places])] };
}

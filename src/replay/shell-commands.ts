import type { CommandActs, LineRange, NamesLayout, ShellAct } from './shell-act.js';
import type { ShellCommand, ShellWord } from './shell-syntax.js';

type Words = readonly ShellWord[];
type Reader = (words: Words, command: ShellCommand) => CommandActs;

const SILENT: CommandActs = { acts: [], prints: false };
const PRINTS: CommandActs = { acts: [], prints: true };
const ANYTHING: CommandActs = { acts: [{ kind: 'anything' }], prints: true };

const isOption = (word: ShellWord): boolean => word !== undefined && word.length > 1 && word.startsWith('-');

/** Words that are no options; those after the options that take a value are left out with them. */
function operands(words: Words, valued: RegExp = /^$/): Words {
  const found: ShellWord[] = [];
  let ended = false;
  for (let i = 0; i < words.length; i++) {
    const word = words[i];
    if (!ended && word === '--') ended = true;
    else if (!ended && isOption(word)) {
      if (valued.test(word ?? '')) i += 1;
    } else found.push(word);
  }
  return found;
}

const known = (words: Words): readonly string[] => words.filter((word) => word !== undefined);
const names = (paths: readonly string[]): readonly ShellAct[] => paths.map((path) => ({ kind: 'name', path }));
const reads = (words: Words): CommandActs => ({ acts: names(known(words)), prints: true });

function shows(words: Words, range: LineRange | undefined, exact: boolean): CommandActs {
  const [path] = words;
  // Several files are printed one after another: where one ends cannot be told.
  if (words.length !== 1 || path === undefined || path === '-') return reads(words.filter((word) => word !== '-'));
  return { acts: [{ kind: 'show', path, range, exact }], prints: true };
}

const cat: Reader = (words) => shows(operands(words), undefined, !words.some((word) => isOption(word) && word !== '-u'));
const nl: Reader = (words) =>
  shows(operands(words, /^-[bdfhilnpsvw]$/), undefined, words.some((word) => word === '-ba') || words.join(' ').includes('-b a'));

function countOf(words: Words): number | undefined {
  for (const [i, word] of words.entries()) {
    const joined = /^-(?:n|-lines=)?(\d+)$/.exec(word ?? '')?.[1];
    if (joined !== undefined) return Number(joined);
    if (word === '-n' || word === '--lines') return /^\d+$/.test(words[i + 1] ?? '') ? Number(words[i + 1]) : undefined;
    if (isOption(word) && word !== '-q') return undefined;
  }
  return 10;
}

const head: Reader = (words) => {
  const to = countOf(words);
  const files = operands(words, /^-[nc]$|^--(?:lines|bytes)$/);
  return to === undefined ? reads(files) : shows(files, { from: 1, to }, true);
};

const tail: Reader = (words) => {
  const from = words.flatMap(
    (word, i) => /^(?:-n)?\+(\d+)$/.exec(word ?? '')?.[1] ?? (word === '-n' ? (/^\+(\d+)$/.exec(words[i + 1] ?? '')?.[1] ?? []) : []),
  )[0];
  const files = operands(words, /^-[nc]$|^--(?:lines|bytes)$/).filter((word) => !/^\+\d+$/.test(word ?? ''));
  return from === undefined ? reads(files) : shows(files, { from: Number(from) }, true);
};

/** The lines that `sed -n 'A,Bp'` prints; undefined for any other script. */
function printedLines(script: string): LineRange | undefined {
  const match = /^\s*(\d+)(?:\s*,\s*(\d+|\$))?\s*p\s*;?\s*(?:\d+q\s*)?$/.exec(script);
  if (match === null) return undefined;
  const from = Number(match[1]);
  return { from, to: match[2] === undefined ? from : match[2] === '$' ? undefined : Number(match[2]) };
}

const sed: Reader = (words) => {
  const inPlace = words.some((word) => word !== undefined && /^(?:-[nErsz]*i|--in-place)/.test(word));
  const scripted = words.some((word) => word === '-e' || word === '-f' || word === '--expression');
  // BSD's `-i ''` names a suffix, an empty one.
  const given = operands(words, /^-[ef]$|^--(?:expression|file)$/);
  const [script, ...rest] = inPlace && given[0] === '' ? given.slice(1) : given;
  const files = scripted ? [script, ...rest] : rest;
  if (inPlace) {
    const changed = files.filter((file) => file !== '');
    return changed.includes(undefined) ? ANYTHING : { acts: known(changed).map((path) => ({ kind: 'change', path })), prints: false };
  }
  const quiet = words.some((word) => word !== undefined && /^-[a-zA-Z]*n/.test(word)) || words.includes('--quiet');
  const range = quiet && !scripted && script !== undefined ? printedLines(script) : undefined;
  return range === undefined ? reads(files) : shows(files, range, true);
};

const lists =
  (layout: NamesLayout, valued: RegExp, skip: number): Reader =>
  (words) => {
    const targets = known(operands(words, valued).slice(skip));
    return { acts: [{ kind: 'list', layout, folder: '.', targets }], prints: true };
  };

const ls: Reader = (words) => {
  const targets = operands(words, /^-[IwT]$/);
  const flags = words.filter(isOption).join('');
  const [folder = '.', second] = targets;
  if (second !== undefined || targets.includes(undefined) || flags.includes('R') || flags.includes('d')) return PRINTS;
  return { acts: [{ kind: 'list', layout: /l/.test(flags) ? 'long-listing' : 'listing', folder, targets: [folder] }], prints: true };
};

const CHANGING_FIND = /^-(?:delete|exec|execdir|ok|okdir|fprint.*|fls)$/;
const find: Reader = (words) => {
  if (words.some((word) => CHANGING_FIND.test(word ?? ''))) {
    const at = words.findIndex((word) => CHANGING_FIND.test(word ?? ''));
    const run = words[at + 1];
    return words[at] !== '-delete' && run !== undefined && /^(?:grep|wc|ls|cat|head|file|stat)$/.test(run) ? PRINTS : ANYTHING;
  }
  const onlyFiles = words.some((word, i) => word === '-type' && words[i + 1] === 'f');
  return onlyFiles && !words.some((word) => /^-(?:printf|ls|print0)$/.test(word ?? ''))
    ? lists('paths', /^-/, 0)([], { name: 'find', words, redirects: [] })
    : PRINTS;
};

const SEARCH_VALUED =
  /^-(?:[ABCmegtTfdjM]|-(?:context|max-count|glob|type|type-not|file|max-depth|after-context|before-context|include|exclude|exclude-dir|color|colors|sort))$/;
const namesOnly = (words: Words): boolean =>
  words.some((word) => word !== undefined && (/^-[a-zA-Z]*[lL]/.test(word) || /^--files-with(?:out)?-match/.test(word)));

const search: Reader = (words) => {
  if (words.includes('--files')) return lists('paths', SEARCH_VALUED, 0)(words, { name: 'rg', words, redirects: [] });
  if (words.some((word) => word !== undefined && /^(?:-h|--no-filename|-I|--json|--heading|-c|--count)$/.test(word))) return PRINTS;
  const skip = words.includes('-e') || words.includes('--regexp') || words.includes('-f') ? 0 : 1;
  return lists(namesOnly(words) ? 'paths' : 'matches', SEARCH_VALUED, skip)(words, { name: 'rg', words, redirects: [] });
};

const rm: Reader = (words) => {
  const targets = operands(words);
  if (targets.includes(undefined)) return ANYTHING;
  const folders = words.some((word) => word !== undefined && /^-[a-zA-Z]*[rR]/.test(word));
  return { acts: known(targets).map((path) => ({ kind: 'remove', path, folders })), prints: false };
};

const twoPlaces =
  (kind: 'move' | 'copy'): Reader =>
  (words) => {
    const places = operands(words);
    const [from, to, third] = places;
    const folder = places.at(-1);
    // Into a folder, several at once or one: each keeps its name.
    if (folder?.endsWith('/') === true && places.length > 1 && !places.includes(undefined) && !/\.\.?\/$/.test(folder)) {
      const acts = known(places.slice(0, -1)).map(
        (one): ShellAct => ({ kind, from: one, to: `${folder}${one.replace(/\/$/, '').split('/').at(-1) ?? ''}` }),
      );
      return { acts, prints: false };
    }
    const plain =
      from !== undefined &&
      to !== undefined &&
      third === undefined &&
      !to.endsWith('/') &&
      to !== '.' &&
      !words.some((word) => /^-[a-zA-Z]*[rRat]/.test(word ?? ''));
    return plain ? { acts: [{ kind, from, to }], prints: false } : ANYTHING;
  };

const tee: Reader = (words) => {
  const targets = operands(words);
  return targets.includes(undefined) ? ANYTHING : { acts: known(targets).map((path) => ({ kind: 'change', path })), prints: true };
};

const READING_GIT = new Set([
  'status',
  'log',
  'diff',
  'show',
  'blame',
  'branch',
  'remote',
  'rev-parse',
  'describe',
  'config',
  'add',
  'commit',
  'push',
  'fetch',
  'tag',
  'grep',
  'cat-file',
  'reflog',
  'shortlog',
  'rev-list',
  'merge-base',
  'check-ignore',
  'for-each-ref',
  'show-ref',
  'name-rev',
  'ls-tree',
  'ls-remote',
]);
const git: Reader = (words) => {
  const [verb, ...rest] = operands(words, /^-[Cc]$|^--(?:git-dir|work-tree)$/);
  const elsewhere = words.includes('-C');
  if (verb === 'ls-files' && !elsewhere)
    return { acts: [{ kind: 'list', layout: 'paths', folder: '.', targets: known(rest) }], prints: true };
  return verb !== undefined && (READING_GIT.has(verb) || verb === 'ls-files') ? PRINTS : ANYTHING;
};

/** Commands of build tools that, by what they are for, change no source. */
const go: Reader = (words) => (/^(?:test|build|vet|list|version|env|doc)$/.test(words[0] ?? '') ? PRINTS : ANYTHING);
const cargo: Reader = (words) =>
  /^(?:test|build|check|clippy|tree|metadata)$/.test(words[0] ?? '') && !words.includes('--fix') ? PRINTS : ANYTHING;
const npm: Reader = (words) => (/^(?:test|t|view|ls|list|outdated|info|why|pack)$/.test(words[0] ?? '') ? PRINTS : ANYTHING);
const npx: Reader = (words) => {
  const [run] = operands(words);
  const checks = run !== undefined && /^(?:tsc|tsgo|jest|vitest|eslint|biome|prettier|madge|knip)$/.test(run);
  return checks && !words.some((word) => word !== undefined && /^--(?:fix|write|apply)/.test(word)) ? PRINTS : ANYTHING;
};
const gofmt: Reader = (words) => {
  if (!words.some((word) => word === '-w')) return PRINTS;
  const files = operands(words);
  return files.includes(undefined) ? ANYTHING : { acts: known(files).map((path) => ({ kind: 'change', path })), prints: false };
};

/** What it runs is what counts. */
const xargs: Reader = (words) => {
  const [run] = operands(words, /^-[IdEnLPs]$/);
  return run !== undefined && /^(?:grep|egrep|rg|cat|wc|ls|head|tail|stat|file|echo|basename|dirname)$/.test(run) ? PRINTS : ANYTHING;
};

const SILENT_NAMES = [
  '',
  'true',
  'false',
  ':',
  'mkdir',
  'sleep',
  'export',
  'set',
  'unset',
  'exit',
  'popd',
  'wait',
  'kill',
  'pkill',
  'source',
  '.',
  'test',
  '[',
  'chmod',
  'trap',
  'shopt',
  'alias',
  'umask',
  'ulimit',
  'return',
];
const PRINTING_NAMES = [
  'echo',
  'printf',
  'pwd',
  'date',
  'which',
  'type',
  'whoami',
  'hostname',
  'uname',
  'env',
  'printenv',
  'ps',
  'df',
  'du',
  'free',
  'uptime',
  'id',
  'seq',
  'basename',
  'dirname',
  'realpath',
  'readlink',
  'expr',
  'bc',
  'cal',
  'history',
  'jobs',
  'top',
  'lsof',
  'pgrep',
  'gh',
  'jq',
  'yq',
  'curl',
  'ping',
  'pytest',
  'jest',
  'tsc',
  'command',
  'man',
  'time',
  'nproc',
  'locale',
  'cut',
  'tr',
  'column',
  'diff',
  'cmp',
  'comm',
  'xxd',
  'hexdump',
  'od',
  'strings',
  'md5sum',
  'sha1sum',
  'sha256sum',
  'tree',
  'uniq',
  'awk',
  'gawk',
  'paste',
  'fold',
  'fmt',
  'rev',
  'join',
  'golangci-lint',
];

const READERS: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  ...SILENT_NAMES.map((name): [string, Reader] => [name, () => SILENT]),
  ...PRINTING_NAMES.map((name): [string, Reader] => [name, () => PRINTS]),
  ['cat', cat],
  ['bat', (words) => reads(operands(words, /^-[rl]$/))],
  ['nl', nl],
  ['head', head],
  ['tail', tail],
  ['less', (words) => reads(operands(words))],
  ['more', (words) => reads(operands(words))],
  ['wc', (words) => reads(operands(words))],
  ['stat', (words) => reads(operands(words, /^-[fc]$/))],
  ['file', () => PRINTS],
  ['sort', (words) => (words.some((word) => word === '-o') ? ANYTHING : PRINTS)],
  ['sed', sed],
  ['ls', ls],
  ['find', find],
  ['fd', () => PRINTS],
  ['grep', search],
  ['egrep', search],
  ['fgrep', search],
  ['rg', search],
  ['rm', rm],
  ['unlink', rm],
  ['mv', twoPlaces('move')],
  ['cp', twoPlaces('copy')],
  ['touch', (words) => ({ acts: names(known(operands(words, /^-[dtr]$/))), prints: false })],
  ['tee', tee],
  ['xargs', xargs],
  ['git', git],
  ['go', go],
  ['cargo', cargo],
  ['npm', npm],
  ['pnpm', npm],
  ['yarn', npm],
  ['npx', npx],
  ['gofmt', gofmt],
  ['goimports', gofmt],
]);

/** What a command does, from the table; one that is not in it may do anything. */
export function commandActs(command: ShellCommand): CommandActs {
  return READERS.get(command.name)?.(command.words, command) ?? ANYTHING;
}

function within(range: LineRange | undefined, first: number, to: number | undefined): LineRange {
  const from = (range?.from ?? 1) + first - 1;
  const last = to === undefined ? undefined : from + to - first;
  const ends = [range?.to, last].filter((end) => end !== undefined);
  return { from, to: ends.length === 0 ? undefined : Math.min(...ends) };
}

/** The part that a filter lets through of what a command shows; undefined where it cannot be told. */
function passedOn({ name, words }: ShellCommand): LineRange | undefined {
  if (name === 'head') {
    const to = countOf(words);
    return to === undefined || operands(words, /^-[nc]$/).length > 0 ? undefined : { from: 1, to };
  }
  if (name === 'sed') {
    const acts = sed([...words, '\0'], { name, words, redirects: [] }).acts;
    return acts[0]?.kind === 'show' ? acts[0].range : undefined;
  }
  if (name === 'tail') {
    const acts = tail([...words, '\0'], { name, words, redirects: [] }).acts;
    return acts[0]?.kind === 'show' ? acts[0].range : undefined;
  }
  return name === 'nl' || (name === 'cat' && operands(words).length === 0) ? { from: 1 } : undefined;
}

/** Filters that drop whole lines of a list and change none. */
const LINE_FILTERS: ReadonlySet<string> = new Set(['head', 'tail', 'sort', 'uniq', 'grep', 'egrep', 'rg', 'cat']);

/** A pipeline with one more command at its end. */
export function filterActs(before: CommandActs, filter: ShellCommand): CommandActs {
  const own = commandActs(filter);
  if (own.acts.some(({ kind }) => kind === 'anything')) return { acts: [...before.acts, ...own.acts], prints: true };
  const changes = own.acts.filter(({ kind }) => kind === 'change' || kind === 'write' || kind === 'remove');
  const range = passedOn(filter);
  const acts = before.acts.flatMap((act): readonly ShellAct[] => {
    if (act.kind === 'show') {
      if (range === undefined) return [{ kind: 'name', path: act.path }];
      return [{ ...act, range: within(act.range, range.from ?? 1, range.to) }];
    }
    if (act.kind === 'list') return LINE_FILTERS.has(filter.name) && !filter.words.includes('-c') ? [act] : [];
    return [act];
  });
  return { acts: [...acts, ...changes], prints: own.prints };
}

import { patchedPaths } from '../../foreign-tools/patch-envelope.js';
import type { ListingFormat } from '../../foreign-tools/tool-table.js';
import { patchActs } from './file-act.js';
import {
  ANYTHING,
  type CommandActs,
  type CommandReader,
  changes,
  known,
  PRINTS,
  reads,
  type ShellAct,
  SILENT,
  some,
  toEach,
  type Words,
} from './shell-act.js';
import { cat, head, nl, sed, tail } from './shell-show.js';
import { isOption, operands, type ShellCommand } from './shell-syntax.js';

const lists = (format: ListingFormat, targets: Words, folder = '.'): CommandActs => ({
  acts: [{ kind: 'list', format, folder, targets: known(targets) }],
  prints: true,
});

const ls: CommandReader = (words) => {
  const targets = operands(words, /^-[IwT]$/);
  const flags = words.filter(isOption).join('');
  const [folder = '.', second] = targets;
  if (second !== undefined || targets.includes(undefined) || flags.includes('R') || flags.includes('d')) return PRINTS;
  return lists(/l/.test(flags) ? 'long-listing' : 'listing', [folder], folder);
};

const CHANGING_FIND = /^-(?:delete|exec|execdir|ok|okdir|fprint.*|fls)$/;
const find: CommandReader = (words) => {
  const at = words.findIndex((word) => CHANGING_FIND.test(word ?? ''));
  if (at >= 0)
    return words[at] !== '-delete' && /^(?:grep|wc|ls|cat|head|file|stat)$/.test(words[at + 1] ?? '')
      ? PRINTS
      : ANYTHING;
  const onlyFiles = words.some((word, i) => word === '-type' && words[i + 1] === 'f');
  return onlyFiles && !some(words, /^-(?:printf|ls|print0)$/) ? lists('paths', []) : PRINTS;
};

const SEARCH_VALUED =
  /^-(?:[ABCmegtTfdjM]|-(?:context|max-count|glob|type|type-not|file|max-depth|after-context|before-context|include|exclude|exclude-dir|color|colors|sort))$/;
const search: CommandReader = (words) => {
  const targets = operands(words, SEARCH_VALUED);
  if (words.includes('--files')) return lists('paths', targets);
  if (some(words, /^(?:-h|--no-filename|-I|--json|--heading|-c|--count)$/)) return PRINTS;
  const skip = some(words, /^(?:-e|--regexp|-f)$/) ? 0 : 1;
  return lists(some(words, /^-[a-zA-Z]*[lL]|^--files-with(?:out)?-match/) ? 'paths' : 'matches', targets.slice(skip));
};

const rm: CommandReader = (words) => {
  const folder = some(words, /^-[a-zA-Z]*[rR]/);
  return toEach(operands(words), false, (path) => ({ kind: 'delete', path, folder }));
};

const twoPlaces =
  (kind: 'move' | 'copy'): CommandReader =>
  (words) => {
    const places = operands(words);
    const [from, to, third] = places;
    const folder = places.at(-1);
    // If the target is a folder, the files keep their names.
    if (folder?.endsWith('/') === true && places.length > 1 && !/\.\.?\/$/.test(folder)) {
      const into = (one: string): ShellAct => ({
        kind,
        from: one,
        to: `${folder}${one.replace(/\/$/, '').split('/').at(-1) ?? ''}`,
      });
      return toEach(places.slice(0, -1), false, into);
    }
    const plain =
      from !== undefined &&
      to !== undefined &&
      third === undefined &&
      !to.endsWith('/') &&
      to !== '.' &&
      !some(words, /^-[a-zA-Z]*[rRat]/);
    return plain ? { acts: [{ kind, from, to }], prints: false } : ANYTHING;
  };

const move = twoPlaces('move');

const tee: CommandReader = (words, input) => {
  const append = some(words, /^-a$|^--append$/);
  return input === undefined
    ? changes(operands(words), true)
    : toEach(operands(words), true, (path) => ({ kind: append ? 'append' : 'write', path, text: input }));
};

const applyPatch: CommandReader = ([given], input) => {
  const acts = patchActs(given ?? input ?? '');
  return acts === undefined ? ANYTHING : { acts, prints: true };
};

/** Applies a unified diff. Its files are known, but not their new texts. */
const applyDiff = (input: string | undefined, prints: boolean): CommandActs => {
  const files = patchedPaths(input ?? '');
  return files.length === 0 ? ANYTHING : changes(files, prints);
};
const patch: CommandReader = (words, input) =>
  words.every((word) => word === '-p1') && words.length === 1 ? applyDiff(input, true) : ANYTHING;

const READING_GIT: ReadonlySet<string> = new Set(
  [
    'status log diff show blame branch remote rev-parse describe config add commit push fetch tag grep cat-file',
    'reflog shortlog rev-list merge-base check-ignore for-each-ref show-ref name-rev ls-tree ls-remote',
  ].flatMap((line) => line.split(' ')),
);
const git: CommandReader = (words, input) => {
  const [verb, ...rest] = operands(words, /^-[Cc]$|^--(?:git-dir|work-tree)$/);
  const elsewhere = words.includes('-C');
  if (words[0] === 'mv') return move(words.slice(1));
  if (words[0] === 'rm' && !words.includes('--cached')) return { ...rm(words.slice(1)), prints: true };
  if (words[0] === 'apply' && words.slice(1).every((word) => word === '-')) return applyDiff(input, false);
  if (verb === 'ls-files' && !elsewhere) return lists('paths', rest);
  return verb !== undefined && (READING_GIT.has(verb) || verb === 'ls-files') ? PRINTS : ANYTHING;
};

/**
 * Prints if the first word is one of the subcommands, which change no sources. Otherwise anything
 * is possible.
 */
const only =
  (harmless: RegExp): CommandReader =>
  ([first]) =>
    harmless.test(first ?? '') ? PRINTS : ANYTHING;
const CARGO = only(/^(?:test|build|check|clippy|tree|metadata)$/);
const cargo: CommandReader = (words) => (words.includes('--fix') ? ANYTHING : CARGO(words));
const npm = only(/^(?:test|t|view|ls|list|outdated|info|why|pack)$/);
const npx: CommandReader = (words) => {
  const [run] = operands(words);
  const checks = run !== undefined && /^(?:tsc|tsgo|jest|vitest|eslint|biome|prettier|madge|knip)$/.test(run);
  return checks && !some(words, /^--(?:fix|write|apply|update)|^-[a-z]*[uw]$/) ? PRINTS : ANYTHING;
};
const gofmt: CommandReader = (words) => (words.includes('-w') ? changes(operands(words), false) : PRINTS);

/** Runs another command, so it has the effects of that command. */
const xargs: CommandReader = (words) => {
  const [run] = operands(words, /^-[IdEnLPs]$/);
  return run !== undefined && /^(?:grep|egrep|rg|cat|wc|ls|head|tail|stat|file|echo|basename|dirname)$/.test(run)
    ? PRINTS
    : ANYTHING;
};

/**
 * Returns the text that a command certainly prints. Undefined if that is only known by running it.
 */
export function printedText({ name, words, redirects }: ShellCommand): string | undefined {
  if (name === 'cat') return words.every((word) => word === '-') ? inputText(redirects) : undefined;
  if (name !== 'echo' || words.includes(undefined)) return undefined;
  const text = known(words).join(' ');
  return /^-|\\/.test(text) ? undefined : `${text}\n`;
}

/** Returns the text of a command's here-document, if that is the whole input. */
function inputText(redirects: ShellCommand['redirects']): string | undefined {
  const [first, second] = redirects.filter(({ descriptor }) => descriptor === 0);
  return second === undefined && /^<<-?$/.test(first?.operator ?? '') ? first?.text : undefined;
}

/** Commands that neither print nor change files. A line of assignments has an empty name. */
const SILENT_NAMES = [
  '',
  ...(
    'true false : mkdir sleep export set unset exit popd wait kill pkill test [ chmod trap shopt alias umask ' +
    'ulimit return'
  ).split(' '),
];
const PRINTING_NAMES = [
  'echo printf pwd date which type whoami hostname uname printenv ps df du free uptime id seq',
  'basename dirname realpath readlink expr bc cal history jobs top lsof pgrep gh jq ping pytest tsc man nproc',
  'locale cut tr column diff cmp comm xxd hexdump od strings md5sum sha1sum sha256sum uniq paste fold fmt rev join',
  'golangci-lint',
].flatMap((line) => line.split(' '));

/** Prints, unless a word matches that makes the command write or run something. */
const unless =
  (changing: RegExp): CommandReader =>
  (words) =>
    some(words, changing) ? ANYTHING : PRINTS;

/** Prints variables. If a command follows, anything is possible. */
const env: CommandReader = (words) => (words.every((word) => word !== undefined && isOption(word)) ? PRINTS : ANYTHING);
/** A sourced script may do anything, except a script that only sets up an environment. */
const source: CommandReader = (words) =>
  /(?:^|\/)activate$|(?:^|\/)\.?(?:bashrc|zshrc|profile|nvm\.sh)$/.test(words[0] ?? '') ? SILENT : ANYTHING;

const READERS: ReadonlyMap<string, CommandReader> = new Map<string, CommandReader>([
  ...SILENT_NAMES.map((name): [string, CommandReader] => [name, () => SILENT]),
  ...PRINTING_NAMES.map((name): [string, CommandReader] => [name, () => PRINTS]),
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
  ['sort', unless(/^-[a-zA-Z]*o|^--output/)],
  ['tree', unless(/^-[a-zA-Z]*o$/)],
  ['awk', unless(/^-i$|^--in-place|^inplace$|>|system\(/)],
  ['gawk', unless(/^-i$|^--in-place|^inplace$|>|system\(/)],
  ['yq', unless(/^-[a-zA-Z]*i$|^--inplace|^--in-place/)],
  ['curl', unless(/^-[a-zA-Z]*[oO]|^--output|^--remote-name/)],
  ['jest', unless(/^-[a-zA-Z]*u$|^--updateSnapshot/)],
  ['env', env],
  ['command', only(/^-[vV]$/)],
  ['source', source],
  ['.', source],
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
  ['mv', move],
  ['cp', twoPlaces('copy')],
  ['touch', (words) => ({ ...reads(operands(words, /^-[dtr]$/)), prints: false })],
  ['tee', tee],
  ['apply_patch', applyPatch],
  ['applypatch', applyPatch],
  ['patch', patch],
  ['xargs', xargs],
  ['git', git],
  ['go', only(/^(?:test|build|vet|list|version|env|doc)$/)],
  ['cargo', cargo],
  ['npm', npm],
  ['pnpm', npm],
  ['yarn', npm],
  ['npx', npx],
  ['gofmt', gofmt],
  ['goimports', gofmt],
]);

/**
 * Returns a command's effects. An unknown command may do anything. `input` is the text that a pipe
 * passes to it, if that is known.
 */
export function commandActs({ name, words, redirects }: ShellCommand, input?: string): CommandActs {
  return READERS.get(name)?.(words, input ?? inputText(redirects)) ?? ANYTHING;
}

import type { ListingFormat } from '../../../foreign-tools/tool-table.js';
import {
  ANYTHING,
  type CommandActs,
  type CommandReader,
  isOption,
  known,
  names,
  operands,
  PRINTS,
  reads,
  type ShellAct,
  SILENT,
  type Words,
} from './shell-act.js';
import { cat, head, nl, sed, tail } from './shell-show.js';
import type { ShellCommand } from './shell-syntax.js';

const lists =
  (format: ListingFormat, valued: RegExp, skip: number): CommandReader =>
  (words) => {
    const targets = known(operands(words, valued).slice(skip));
    return { acts: [{ kind: 'list', format, folder: '.', targets }], prints: true };
  };

const ls: CommandReader = (words) => {
  const targets = operands(words, /^-[IwT]$/);
  const flags = words.filter(isOption).join('');
  const [folder = '.', second] = targets;
  if (second !== undefined || targets.includes(undefined) || flags.includes('R') || flags.includes('d')) return PRINTS;
  return { acts: [{ kind: 'list', format: /l/.test(flags) ? 'long-listing' : 'listing', folder, targets: [folder] }], prints: true };
};

const CHANGING_FIND = /^-(?:delete|exec|execdir|ok|okdir|fprint.*|fls)$/;
const find: CommandReader = (words) => {
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

const search: CommandReader = (words) => {
  if (words.includes('--files')) return lists('paths', SEARCH_VALUED, 0)(words, { name: 'rg', words, redirects: [] });
  if (words.some((word) => word !== undefined && /^(?:-h|--no-filename|-I|--json|--heading|-c|--count)$/.test(word))) return PRINTS;
  const skip = words.includes('-e') || words.includes('--regexp') || words.includes('-f') ? 0 : 1;
  return lists(namesOnly(words) ? 'paths' : 'matches', SEARCH_VALUED, skip)(words, { name: 'rg', words, redirects: [] });
};

const rm: CommandReader = (words) => {
  const targets = operands(words);
  if (targets.includes(undefined)) return ANYTHING;
  const folders = words.some((word) => word !== undefined && /^-[a-zA-Z]*[rR]/.test(word));
  return { acts: known(targets).map((path) => ({ kind: 'remove', path, folders })), prints: false };
};

const twoPlaces =
  (kind: 'move' | 'copy'): CommandReader =>
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

const tee: CommandReader = (words) => {
  const targets = operands(words);
  return targets.includes(undefined) ? ANYTHING : { acts: known(targets).map((path) => ({ kind: 'change', path })), prints: true };
};

const READING_GIT: ReadonlySet<string> = new Set(
  'status log diff show blame branch remote rev-parse describe config add commit push fetch tag grep cat-file reflog shortlog rev-list merge-base check-ignore for-each-ref show-ref name-rev ls-tree ls-remote'.split(
    ' ',
  ),
);
const git: CommandReader = (words) => {
  const [verb, ...rest] = operands(words, /^-[Cc]$|^--(?:git-dir|work-tree)$/);
  const elsewhere = words.includes('-C');
  if (verb === 'ls-files' && !elsewhere)
    return { acts: [{ kind: 'list', format: 'paths', folder: '.', targets: known(rest) }], prints: true };
  return verb !== undefined && (READING_GIT.has(verb) || verb === 'ls-files') ? PRINTS : ANYTHING;
};

/** Commands of build tools that, by what they are for, change no source. */
const go: CommandReader = (words) => (/^(?:test|build|vet|list|version|env|doc)$/.test(words[0] ?? '') ? PRINTS : ANYTHING);
const cargo: CommandReader = (words) =>
  /^(?:test|build|check|clippy|tree|metadata)$/.test(words[0] ?? '') && !words.includes('--fix') ? PRINTS : ANYTHING;
const npm: CommandReader = (words) => (/^(?:test|t|view|ls|list|outdated|info|why|pack)$/.test(words[0] ?? '') ? PRINTS : ANYTHING);
const npx: CommandReader = (words) => {
  const [run] = operands(words);
  const checks = run !== undefined && /^(?:tsc|tsgo|jest|vitest|eslint|biome|prettier|madge|knip)$/.test(run);
  return checks && !words.some((word) => word !== undefined && /^--(?:fix|write|apply|update)|^-[a-z]*[uw]$/.test(word))
    ? PRINTS
    : ANYTHING;
};
const gofmt: CommandReader = (words) => {
  if (!words.some((word) => word === '-w')) return PRINTS;
  const files = operands(words);
  return files.includes(undefined) ? ANYTHING : { acts: known(files).map((path) => ({ kind: 'change', path })), prints: false };
};

/** What it runs is what counts. */
const xargs: CommandReader = (words) => {
  const [run] = operands(words, /^-[IdEnLPs]$/);
  return run !== undefined && /^(?:grep|egrep|rg|cat|wc|ls|head|tail|stat|file|echo|basename|dirname)$/.test(run) ? PRINTS : ANYTHING;
};

/** A line of assignments has the empty name. */
const SILENT_NAMES = [
  '',
  ...'true false : mkdir sleep export set unset exit popd wait kill pkill test [ chmod trap shopt alias umask ulimit return'.split(' '),
];
const PRINTING_NAMES =
  'echo printf pwd date which type whoami hostname uname printenv ps df du free uptime id seq basename dirname realpath readlink expr bc cal history jobs top lsof pgrep gh jq ping pytest tsc man nproc locale cut tr column diff cmp comm xxd hexdump od strings md5sum sha1sum sha256sum uniq paste fold fmt rev join golangci-lint'.split(
    ' ',
  );

/** Prints, unless one of its words says that it writes or runs something. */
const unless =
  (changing: RegExp): CommandReader =>
  (words) =>
    words.some((word) => word !== undefined && changing.test(word)) ? ANYTHING : PRINTS;

/** Lists variables; with words behind them it runs a command. */
const env: CommandReader = (words) => (words.every((word) => word !== undefined && isOption(word)) ? PRINTS : ANYTHING);
const command: CommandReader = (words) => (/^-[vV]$/.test(words[0] ?? '') ? PRINTS : ANYTHING);
/** A script that is run here may do anything; what makes an environment ready sets variables. */
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
  ['command', command],
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

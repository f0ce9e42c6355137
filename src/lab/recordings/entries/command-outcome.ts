import { type ShellCommand, shellSteps } from '../../../harness/tool-output/shell-syntax.js';

/** Programs that end with 1 if they find nothing. */
const SEARCHES: ReadonlySet<string> = new Set(['rg', 'grep', 'egrep', 'fgrep', 'ag', 'ack']);

const isSearch = ({ name, words }: ShellCommand): boolean =>
  SEARCHES.has(name) || (name === 'git' && words.find((word) => word?.startsWith('-') !== true) === 'grep');

/** A message of a program or a shell, such as `rg: no such file` or `zsh:1: no matches found`. */
const COMPLAINT = /^(?:\S*\/)?[\w.-]+:(?:\d+:| line \d+:)? \S|^(?:error|fatal)\b/im;

/** Builds and tests, whose output says whether they failed. */
const BUILDS = new RegExp(
  '^(?:' +
    'go (?:build|test|vet|run|install)|cargo|make|ninja|cmake|ctest|mvn|gradle|\\S*gradlew|dotnet|tsc|jest|vitest|' +
    'mocha|pytest|tox|rspec|rake|phpunit|eslint|mise|just|gcc|clang|javac|swift|(?:npm|pnpm|yarn|bun|npx|uv) \\S+|' +
    'python3? -m (?:pytest|unittest))(?=\\s|$)',
);

const isBuild = ({ name, words }: ShellCommand): boolean =>
  BUILDS.test([name, ...words.map((word) => word ?? '')].join(' '));

/** Lines by which builds and tests report a failure. */
const BROKEN = new RegExp(
  [
    /^(?:FAIL\b|--- FAIL:|BUILD FAILED|panic: |npm (?:ERR!|error) )/,
    /^\S+\.(?:go|rs|[cm]?[jt]sx?|c|cc|cpp|h|hpp|java|swift|kt):\d+:\d+: (?!warning|note)/,
    /^\S+\.tsx?(?:\(\d+,\d+\)|:\d+:\d+)(?: -|:) error TS\d+/,
    /^error(?:\[E\d+\])?: |^make(?:\[\d+\])?: \*\*\* /,
    /^Tests?: +\d+ failed|^=+ .*\b\d+ (?:failed|errors?)\b.*=+$|^test result: FAILED/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'm',
);

/** The end of a command as a recording shows it. */
interface CommandEnd {
  /** The exit code. Undefined if it is not recorded, such as of a command that still runs. */
  readonly code: number | undefined;
  readonly output: string;
}

/**
 * Returns whether a command failed. An agent's own flag comes before this judgement.
 *
 * - An exit code other than 0 is a failure. A search at the end of the command may end with 1: it
 *   found nothing, unless the output has a complaint.
 * - Behind a pipe, and while the command still runs, there is no exit code of a build or a test.
 *   Then the output decides.
 */
export function commandFailed(script: string | undefined, { code, output }: CommandEnd): boolean {
  const steps = (script === undefined ? undefined : shellSteps(script)) ?? [];
  const last = steps.at(-1);
  const program = last?.pipeline?.at(-1);
  if (code !== undefined && code !== 0) {
    const found = code === 1 && program !== undefined && isSearch(program);
    return !found || COMPLAINT.test(output);
  }
  const isOwnCode = code === 0 && last?.sure === true && last.pipeline?.length === 1 && last.pipeline.some(isBuild);
  return !isOwnCode && steps.some(({ pipeline }) => pipeline?.some(isBuild)) && BROKEN.test(output);
}

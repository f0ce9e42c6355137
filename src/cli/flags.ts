import { type Command, InvalidArgumentError, Option } from 'commander';
import { MASK_SETTINGS } from '../host/environment.js';
import { printJson, USAGE_EXIT_CODE } from './output.js';

/** The `--data` flag, for every command that uses a data folder. */
export const dataFlag = (): Option =>
  new Option('--data <folder>', 'data folder (default: PALIMPSEST_DATA, or ~/.local/share/palimpsest)');

/** The `--mask` flag, for commands that record sessions. */
export const maskFlag = (): Option =>
  new Option(
    '--mask <secrets>',
    'secrets to mask before anything is recorded (default: PALIMPSEST_MASK, or known)',
  ).choices([...MASK_SETTINGS]);

/** The `--json` flag, for output as JSON instead of text. */
export const jsonFlag = (): Option => new Option('--json', 'print one JSON object');

/** Adds the value of a repeatable flag to the flag's earlier values. */
export function collect(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), value];
}

function numberReader(form: RegExp, what: string): (least: number, most: number) => (text: string) => number {
  return (least, most) => (text) => {
    const value = Number(text);
    if (!form.test(text) || value < least || value > most)
      throw new InvalidArgumentError(`It must be ${what} from ${least} to ${most}.`);
    return value;
  };
}

/** Returns a parser for numbers within bounds. Its error states the bounds. */
export const numberBetween = numberReader(/^\d+(\.\d+)?$/, 'a number');

/** Returns a parser for whole numbers within bounds. Its error states the bounds. */
export const wholeBetween = numberReader(/^\d+$/, 'a whole number');

/** Parses a whole number that has no upper bound. */
export function wholeNumber(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value)) throw new InvalidArgumentError('It must be a whole number.');
  return value;
}

/** Returns whether a command line has `--json`, even if it cannot be parsed. */
const wantsJson = (argv: readonly string[]): boolean =>
  argv.slice(0, argv.includes('--') ? argv.indexOf('--') : argv.length).includes('--json');

/**
 * Makes a command and its subcommands exit with code 64 if their command line cannot be parsed. The
 * error refers to `--help`. `--help` and `--version` exit with 0. With `--json`, the error is an
 * object on stdout, like every other error.
 */
export function endUsageErrors(command: Command, argv: readonly string[], names: readonly string[] = []): void {
  const path = [...names, command.name()];
  const help = `See ${path.join(' ')} --help`;
  command.exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : USAGE_EXIT_CODE));
  if (wantsJson(argv)) {
    const told = (text: string): void =>
      printJson({
        error: {
          code: 'usage',
          message: `${text
            .replace(/^error: /, '')
            .trim()
            .replace(/\.$/, '')}. ${help}`,
        },
      });
    command.configureOutput({ outputError: told });
  } else command.showHelpAfterError(help);
  for (const below of command.commands) endUsageErrors(below, argv, path);
}

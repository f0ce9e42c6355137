import { type Command, InvalidArgumentError, Option } from 'commander';
import { printJson, USAGE_EXIT_CODE } from './output.js';

/** The flag of every command that works on a data folder. */
export const dataFlag = (): Option =>
  new Option('--data <folder>', 'data folder (default: PALIMPSEST_DATA, else ~/.local/share/palimpsest)');

/** The flag that asks for JSON instead of text for people. */
export const jsonFlag = (): Option => new Option('--json', 'print one JSON object');

/** Adds a value of a flag that may be given several times to those before it. */
export function collect(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), value];
}

function numberReader(form: RegExp, what: string): (least: number, most: number) => (text: string) => number {
  return (least, most) => (text) => {
    const value = Number(text);
    if (!form.test(text) || value < least || value > most) throw new InvalidArgumentError(`It must be ${what} from ${least} to ${most}.`);
    return value;
  };
}

/** Makes the reader of a number within bounds; a usage error names the bounds. */
export const numberBetween = numberReader(/^\d+(\.\d+)?$/, 'a number');

/** Makes the reader of a count within bounds; a usage error names the bounds. */
export const wholeBetween = numberReader(/^\d+$/, 'a whole number');

/** Reads a count without an upper bound. */
export function wholeNumber(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value)) throw new InvalidArgumentError('It must be a whole number.');
  return value;
}

/** Whether an answer in JSON is asked for, as far as a command line says that cannot be read. */
const wantsJson = (argv: readonly string[]): boolean =>
  argv.slice(0, argv.includes('--') ? argv.indexOf('--') : argv.length).includes('--json');

/**
 * Lets a command and all commands below it end with exit code 64 and a pointer to `--help` when their command line cannot be read; `--help` and
 * `--version` end with 0. With `--json` the error is one object on stdout, as every other error.
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

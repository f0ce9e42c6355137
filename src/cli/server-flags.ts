import { type Command, InvalidArgumentError, Option } from 'commander';

/** Flags of the commands that serve agents, as commander hands them over. */
export interface ServerFlags {
  readonly root?: readonly string[];
  readonly mount?: readonly string[];
  readonly data?: string;
  readonly profile?: string;
  readonly session?: string;
  readonly takeOver?: boolean;
  readonly durability: 'process' | 'power';
  readonly strict?: boolean;
  readonly shortIds?: boolean;
  readonly allowBash?: boolean;
  readonly readOnly?: boolean;
  readonly maxOutputChars?: number;
  readonly turnPause?: number;
  readonly window?: { readonly perTurn: number; readonly turns: number };
  readonly logLevel: 'silent' | 'error' | 'warn' | 'info' | 'debug';
}

/** Flags of `serve` beside the shared ones. */
export interface ServeFlags extends ServerFlags {
  readonly port: number;
  readonly tokenFile?: string;
  /** False with `--no-token`. */
  readonly token: boolean;
}

function collect(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), value];
}

/** Reads a number within bounds. */
export function numberBetween(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+(\.\d+)?$/.test(text) || value < least || value > most)
      throw new InvalidArgumentError(`It must be a number from ${least} to ${most}.`);
    return value;
  };
}

/** Reads a count; a usage error names the limits. */
export function wholeBetween(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < least || value > most)
      throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
    return value;
  };
}

function windowSize(text: string): { readonly perTurn: number; readonly turns: number } {
  const [, perTurn, turns] = /^(\d{1,4})x(\d{1,4})$/.exec(text) ?? [];
  if (perTurn === undefined || turns === undefined) throw new InvalidArgumentError('It must look like 5x3: results per turn, times turns.');
  return { perTurn: Number(perTurn), turns: Number(turns) };
}

/** Adds the flags that `mcp` and `serve` share. */
export function withServerFlags(command: Command): Command {
  return command
    .addOption(new Option('--root <folder>', 'folder that agents may use; repeatable (default: the working folder)').argParser(collect))
    .addOption(
      new Option('--mount <mapping>', 'AGENT=CANONICAL[,FILESYSTEM-ID]: how agents in a sandbox see a folder; repeatable').argParser(
        collect,
      ),
    )
    .addOption(new Option('--data <folder>', 'data folder (default: PALIMPSEST_DATA, else ~/.local/share/palimpsest)'))
    .addOption(new Option('--profile <name>', 'memory (forgets everything when it stops) or rocksdb (the default)'))
    .addOption(new Option('--session <id>', 'session that all calls belong to (default: as the client says, else a new one)'))
    .addOption(new Option('--take-over', 'move a session here that another process has open'))
    .addOption(
      new Option('--durability <level>', 'what an answered call survives: the death of every process, or the loss of power too')
        .choices(['process', 'power'])
        .default('process'),
    )
    .addOption(new Option('--strict', 'behave by the letter of the specification wherever this program departs from it'))
    .addOption(new Option('--short-ids', 'show the shortest unique prefixes of ids'))
    .addOption(new Option('--allow-bash', 'offer the tool bash, which runs any command'))
    .addOption(new Option('--read-only', 'leave out write, edit and bash'))
    .addOption(
      new Option('--max-output-chars <count>', 'longest answer of a tool (default: 40000)').argParser(wholeBetween(1_000, 1_000_000)),
    )
    .addOption(
      new Option('--turn-pause <seconds>', 'pause after which a call begins a new turn (default: 60)').argParser(numberBetween(0.001, 1e6)),
    )
    .addOption(new Option('--window <size>', 'tool results that stay active: per turn, times turns (default: 5x3)').argParser(windowSize))
    .addOption(
      new Option('--log-level <level>', 'what is logged to stderr').choices(['silent', 'error', 'warn', 'info', 'debug']).default('warn'),
    );
}

import { Argument, Command, Option } from 'commander';
import type { MaskSetting } from '../host/environment.js';
import { ownMember } from '../values/own-member.js';
import type { Contract, ContractImport, Written } from './contract.js';
import { dataFlag, jsonFlag, maskFlag } from './flags.js';

interface ImportFlags {
  readonly data?: string;
  readonly mask?: MaskSetting;
  readonly finish?: string;
  readonly json?: boolean;
  readonly format?: string;
  /** The flags of the formats. */
  readonly [flag: string]: unknown;
}

/** All formats, by name. */
type Formats = Readonly<Record<string, ContractImport>>;

/** Returns the names of a format's flags, as parsed flags have them. */
const flagsOf = ({ options }: ContractImport): readonly string[] => options().map((option) => option.attributeName());

/** Returns the format that `--format` names, or the one that recognises the file or folder. */
async function formatOf(
  formats: Formats,
  { file, flags }: { readonly file: string; readonly flags: ImportFlags },
): Promise<ContractImport> {
  const { UsageError } = await import('../host/settings.js');
  let name = flags.format;
  for (const [one, { recognises }] of Object.entries(formats))
    if (name === undefined && (await recognises?.(file)) === true) name = one;
  name ??= Object.keys(formats).find((one) => formats[one]?.recognises === undefined) ?? '';
  const format = ownMember(formats, name);
  if (format === undefined) throw new UsageError(`unknown format ${JSON.stringify(name)}`);
  const others = Object.values(formats).flatMap((one) => (one === format ? [] : flagsOf(one)));
  const wrong = others.find((flag) => flags[flag] !== undefined);
  if (wrong !== undefined)
    throw new UsageError(
      `${file} has the format ${name}, which does not support --${wrong}. Leave it out, or set another --format`,
    );
  return format;
}

/**
 * Imports a file, or finishes an interrupted import.
 *
 * @throws {UsageError}
 */
async function imported(
  contracts: readonly Contract[],
  file: string | undefined,
  asked: ImportFlags,
): Promise<Written> {
  const formats = formatsOf(contracts);
  const { finish: session, ...flags } = asked;
  const { UsageError } = await import('../host/settings.js');
  if (session === undefined) {
    if (file === undefined) throw new UsageError('nothing to import: give a file or --finish SESSION');
    return (await formatOf(formats, { file, flags })).run({ file, flags }, contracts);
  }
  const others = [...Object.values(formats).flatMap(flagsOf), 'format'].filter((flag) => asked[flag] !== undefined);
  if (file !== undefined || others.length > 0)
    throw new UsageError(
      `--finish takes only the session: leave out ${file === undefined ? `--${others[0]}` : JSON.stringify(file)}`,
    );
  const finishing = Object.values(formats).find(({ finish }) => finish !== undefined);
  if (finishing?.finish === undefined) throw new UsageError('no format of this program can finish an import');
  return finishing.finish(session, flags);
}

const formatsOf = (contracts: readonly Contract[]): Formats =>
  Object.assign({}, ...contracts.map(({ imports }) => imports));

/** `palimpsest import`: imports a session from another database or another program. */
export function importCommand(contracts: readonly Contract[]): Command {
  const formats = formatsOf(contracts);
  const importAction = async (file: string | undefined, flags: ImportFlags): Promise<void> => {
    const { printJson, printLines, reportFailure } = await import('./output.js');
    await reportFailure(flags, async () => {
      const { lines, json } = await imported(contracts, file, flags);
      if (flags.json === true) printJson(json);
      else printLines(lines);
    });
  };
  const abouts = Object.entries(formats).map(([name, { about }]) => `  ${name.padEnd(14)} ${about}`);
  const command = new Command('import')
    .description('import a session: check it first, then take all of it or nothing; a repeated import changes nothing')
    .addArgument(new Argument('[file]', "file from palimpsest export, or another program's session folder"))
    .addOption(new Option('--finish <session>', 'finish an interrupted import of a session, without its file'))
    .addOption(new Option('--format <format>', 'input format (default: detected)').choices(Object.keys(formats)));
  for (const { options } of Object.values(formats)) for (const option of options()) command.addOption(option);
  return command
    .addOption(maskFlag())
    .addOption(dataFlag())
    .addOption(jsonFlag())
    .addHelpText('after', `\nFormats:\n${abouts.join('\n')}`)
    .action(importAction);
}

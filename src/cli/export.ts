import { Argument, Command, Option } from 'commander';
import { withMoment } from '../cli/review/moment-flags.js';
import { defined } from '../values/defined.js';
import { ownMember } from '../values/own-member.js';
import { type ContractExport, hiddenBy, type ProgramParts } from './contract.js';
import type { ReviewFlags } from './review/answer.js';

interface ExportFlags extends ReviewFlags {
  readonly format: string;
  /** The flags of the formats. */
  readonly [flag: string]: unknown;
}

/** All formats, by name. */
type Formats = Readonly<Record<string, ContractExport>>;

/** A flag that one or more formats have. */
interface FormatFlag {
  readonly option: Option;
  readonly formats: readonly string[];
}

/** Returns the flags of all formats, each once. */
function flagsOf(formats: Formats): readonly FormatFlag[] {
  const found = new Map<string, FormatFlag>();
  for (const [name, { options }] of Object.entries(formats))
    for (const option of options?.() ?? []) {
      const known = found.get(option.attributeName());
      found.set(option.attributeName(), { option, formats: [...(known?.formats ?? []), name] });
    }
  return [...found.values()];
}

/**
 * Returns the format and the destination that path and flags select.
 *
 * @throws {UsageError}
 */
async function wantedExport(
  path: string | undefined,
  flags: ExportFlags,
  formats: Formats,
): Promise<{ readonly format: ContractExport; readonly folder: string }> {
  const { UsageError } = await import('../host/settings.js');
  const fileFlags = Object.entries(formats).flatMap(([name, { fileFlag }]) => {
    const flag = fileFlag?.();
    return flag === undefined ? [] : [{ name, long: flag.long, file: flags[flag.attributeName()] }];
  });
  const named = fileFlags.find(({ file }) => file !== undefined);
  if (named !== undefined && path !== undefined)
    throw new UsageError(`${named.long} already names the file. Leave out ${JSON.stringify(path)}`);
  const folder = named === undefined ? path : String(named.file);
  if (folder === undefined)
    throw new UsageError(`missing destination: give a path${fileFlags.map(({ long }) => ` or ${long} FILE`).join('')}`);
  const name = named?.name ?? flags.format;
  const format = ownMember(formats, name);
  if (format === undefined) throw new Error(`unknown format ${JSON.stringify(name)}`);
  const wrong = flagsOf(formats).find(
    (flag) => flags[flag.option.attributeName()] !== undefined && !flag.formats.includes(name),
  );
  if (wrong !== undefined)
    throw new UsageError(
      `${wrong.option.long} needs --format ${wrong.formats.join(' or ')}; the format here is ${name}`,
    );
  return { folder, format };
}

/** The facts about the program that exports need. */
type ExportParts = Pick<ProgramParts, 'home' | 'contracts'>;

const formatsOf = ({ contracts }: ExportParts): Formats =>
  Object.assign({}, ...contracts.map((contract) => contract.exports));

async function runExport(
  { home, contracts }: ExportParts,
  {
    reference,
    path,
    flags,
  }: { readonly reference: string; readonly path: string | undefined; readonly flags: ExportFlags },
): Promise<void> {
  const formats = formatsOf({ home, contracts });
  const { folder, format } = await wantedExport(path, flags, formats);
  const loading = format.load();
  loading.catch(() => undefined);
  const { answerSession } = await import('./review/session-answer.js');
  await answerSession(reference, { ...flags, ...defined({ at: flags.at ?? flags.asOf }) }, async (asked) => {
    const run = await loading;
    const { lines, json } = await run({
      ...asked,
      folder,
      flags,
      home,
      hiddenTexts: hiddenBy(contracts),
      applyRules: Object.keys(formats).filter((name) => formats[name]?.appliesRules === true),
    });
    return { lines: () => lines, json: () => json };
  });
}

/**
 * `palimpsest export`: writes a session in a form for another database, a browser or another
 * program. It changes nothing in the database.
 */
export function exportCommand(parts: ExportParts): Command {
  const exportAction = async (reference: string, path: string | undefined, flags: ExportFlags): Promise<void> => {
    const { reportFailure } = await import('./output.js');
    await reportFailure(flags, () => runExport(parts, { reference, path, flags }));
  };
  const formats = formatsOf(parts);
  const abouts = Object.entries(formats).map(([name, { about }]) => `  ${name.padEnd(14)} ${about}`);
  const command = withMoment(new Command('export'))
    .description(
      "write a session as one file for other databases, as a page for the browser, or in another program's format",
    )
    .argument('<session>', 'session id or prefix, optionally with @MOMENT, such as @turn:7')
    .addArgument(new Argument('[path]', 'destination: a file for a bundle or a page, otherwise a folder'))
    .addOption(
      new Option('--format <format>', 'output format').choices(Object.keys(formats)).default(Object.keys(formats)[0]),
    );
  for (const { fileFlag } of Object.values(formats)) if (fileFlag !== undefined) command.addOption(fileFlag());
  command.addOption(new Option('--as-of <moment>', 'the same as --at'));
  for (const { option, formats: names } of flagsOf(formats)) {
    option.description = `${names.join(', ')}: ${option.description}`;
    command.addOption(option);
  }
  return command.addHelpText('after', `\nFormats:\n${abouts.join('\n')}`).action(exportAction);
}

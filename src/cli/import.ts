import { Argument, Command, Option } from 'commander';
import { ownMember } from '../values/own-member.js';
import type { Contract, ContractImport, ImportSource, Written } from './contract.js';
import { collect, dataFlag, jsonFlag } from './flags.js';

interface ImportFlags {
  readonly data?: string;
  readonly finish?: string;
  readonly json?: boolean;
  readonly format?: string;
  readonly map?: readonly string[];
  readonly filesystem?: readonly string[];
  /** Flags of contracts. */
  readonly [flag: string]: unknown;
}

/** A requested import. */
interface AskedImport extends ImportSource {
  readonly flags: ImportFlags;
}

/** An import format. Without `recognises` it is the fallback. */
interface ImportFormat extends Omit<ContractImport, 'recognises' | 'run'> {
  readonly recognises?: ContractImport['recognises'];
  run(asked: AskedImport): Promise<Written>;
}

async function importBundleFile({ file, flags }: AskedImport) {
  const [{ importBundle }, { readMoved, readRenamed }, { withImportStore }] = await Promise.all([
    import('../bundle/import-bundle.js'),
    import('../host/settings.js'),
    import('./import-target.js'),
  ]);
  const folders = readMoved(flags.map);
  const filesystems = readRenamed(flags.filesystem);
  return withImportStore(flags, async ({ store, clientDir, onProgress }) => {
    const { session, turn, step, sessions, isNew, isRemapped, bundle } = await importBundle(store, file, {
      clientDir,
      folders,
      filesystems,
      onProgress,
    });
    const { documents, texts, transactions } = bundle.manifest;
    const held =
      `session ${session}, turn ${turn}, step ${step}: ${documents} versions and parts of ` +
      `${transactions} transactions, ${texts} texts`;
    return {
      lines: [
        isNew ? held : `${held}: already complete${isRemapped ? ', and its files now use the given folders' : ''}`,
        ...(isNew ? [`check it with: palimpsest verify ${session}`] : []),
      ],
      json: { format: 'bundle', session, turn, step, sessions, imported: isNew, manifest: bundle.manifest },
    };
  });
}

/** Finishes an interrupted import. */
async function finishCutShort(name: string, flags: ImportFlags) {
  const [{ finishImport }, { sessionId }, { withImportStore }] = await Promise.all([
    import('../bundle/import-bundle.js'),
    import('../objects/ids.js'),
    import('./import-target.js'),
  ]);
  return withImportStore(flags, async ({ store, clientDir, onProgress }) => {
    const finished = await finishImport(store, sessionId(name), { clientDir, onProgress });
    const { session, turn, step, transactions } = finished;
    return {
      lines: [
        `session ${session}, turn ${turn}, step ${step}: all ${transactions} transactions are present`,
        `check it with: palimpsest verify ${session}`,
      ],
      json: { format: 'bundle', ...finished, imported: true },
    };
  });
}

/** The flags of the bundle format. */
const bundleOptions = (): readonly Option[] => [
  new Option('--map <old=new>', 'bundle: map a recorded folder to its place here; repeatable').argParser(collect),
  new Option('--filesystem <old=new>', 'bundle: map a recorded filesystem id to the one here; repeatable').argParser(
    collect,
  ),
];

/** Returns every format by name. */
function formatsOf(contracts: readonly Contract[]): Readonly<Record<string, ImportFormat>> {
  return {
    bundle: {
      about: 'a file from palimpsest export, imported whole or not at all (docs/bundle.md)',
      options: bundleOptions,
      run: async (asked) => {
        await requireFile(asked.file, contracts);
        return importBundleFile(asked);
      },
    },
    ...Object.assign({}, ...contracts.map(({ imports }) => imports)),
  };
}

/**
 * Rejects a folder that no format recognises, before a database is opened.
 * @throws {BundleError} `unusable-file`; it names the formats that can be imported
 */
async function requireFile(path: string, contracts: readonly Contract[]): Promise<void> {
  const { stat } = await import('node:fs/promises');
  const stats = await stat(path).catch(() => undefined);
  if (stats === undefined || stats.isFile()) return;
  const importable = new Set(contracts.flatMap(({ imports = {} }) => Object.keys(imports)));
  const written = contracts.flatMap(({ exports = {} }) => Object.keys(exports));
  const both = written.filter((name) => importable.has(name));
  const others = written.filter((name) => !importable.has(name));
  const { BundleError } = await import('../bundle/bundle-error.js');
  throw new BundleError(
    'unusable-file',
    `${path} is no file. Import a bundle, which is one file` +
      both.map((name) => `, or a directory of export --format ${name}`).join('') +
      others.map((name) => `. Palimpsest cannot import what --format ${name} wrote`).join(''),
  );
}

/** Returns the names of the flags of one format, as the parsed flags have them. */
const flagsOf = ({ options }: ImportFormat): readonly string[] => options().map((option) => option.attributeName());

/** Returns the named format, or the one that recognises the file or folder. */
async function formatOf(
  formats: Readonly<Record<string, ImportFormat>>,
  { file, flags }: AskedImport,
): Promise<ImportFormat> {
  const { UsageError } = await import('../host/settings.js');
  let name = flags.format;
  for (const [one, { recognises }] of Object.entries(formats))
    if (name === undefined && (await recognises?.(file)) === true) name = one;
  const format = ownMember(formats, name ?? 'bundle');
  if (format === undefined) throw new UsageError(`unknown format ${JSON.stringify(name)}`);
  const others = Object.values(formats).flatMap((one) => (one === format ? [] : flagsOf(one)));
  const wrong = others.find((flag) => flags[flag] !== undefined);
  if (wrong !== undefined)
    throw new UsageError(
      `${file} has the format ${name ?? 'bundle'}, which does not support --${wrong}: leave it out, or set ` +
        'another --format',
    );
  return format;
}

/** Imports a file, or finishes an interrupted import. @throws {UsageError} */
async function imported(
  formats: Readonly<Record<string, ImportFormat>>,
  file: string | undefined,
  asked: ImportFlags,
): Promise<Written> {
  const { finish, ...flags } = asked;
  const { UsageError } = await import('../host/settings.js');
  if (finish === undefined) {
    if (file === undefined) throw new UsageError('nothing to import: give a file or --finish SESSION');
    return (await formatOf(formats, { file, flags })).run({ file, flags });
  }
  const others = [...Object.values(formats).flatMap(flagsOf), 'format'].filter((flag) => asked[flag] !== undefined);
  if (file !== undefined || others.length > 0)
    throw new UsageError(
      `--finish takes only the session: leave out ${file === undefined ? `--${others[0]}` : JSON.stringify(file)}`,
    );
  return finishCutShort(finish, flags);
}

/** `palimpsest import`: imports a session from another database or another program. */
export function importCommand(contracts: readonly Contract[]): Command {
  const formats = formatsOf(contracts);
  const importAction = async (file: string | undefined, flags: ImportFlags): Promise<void> => {
    const { printJson, printLines, reportFailure } = await import('./output.js');
    await reportFailure(flags, async () => {
      const { lines, json } = await imported(formats, file, flags);
      if (flags.json === true) printJson(json);
      else printLines(lines);
    });
  };
  const { bundle, ...foreign } = formats;
  const abouts = Object.entries(formats).map(([name, { about }]) => `  ${name.padEnd(14)} ${about}`);
  const command = new Command('import')
    .description('import a session: check it first, then take all of it or nothing; a repeated import changes nothing')
    .addArgument(new Argument('[file]', "file from palimpsest export, or another program's session folder"))
    .addOption(new Option('--finish <session>', 'finish an interrupted import of a session, without its file'))
    .addOption(new Option('--format <format>', 'input format (default: detected)').choices(Object.keys(formats)));
  for (const { options } of [...Object.values(foreign), ...(bundle === undefined ? [] : [bundle])])
    for (const option of options()) command.addOption(option);
  return command
    .addOption(dataFlag())
    .addOption(jsonFlag())
    .addHelpText('after', `\nFormats:\n${abouts.join('\n')}`)
    .action(importAction);
}

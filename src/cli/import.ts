import { Argument, Command, Option } from 'commander';
import type { ObjectStore } from '../store/object-store.js';
import { ownMember } from '../values/own-member.js';
import { collect, dataFlag, jsonFlag } from './flags.js';

/** A requested import. */
interface AskedImport {
  readonly file: string;
  readonly flags: ImportFlags;
}

/** An import format. Its module loads on demand. */
interface ImportFormat {
  readonly about: string;
  /**
   * Whether the file or folder at a path looks like this format. Without this function, the format
   * is the fallback.
   */
  readonly recognises?: (path: string) => Promise<boolean>;
  /** The flags that belong to this format only. */
  readonly flags: readonly (keyof ImportFlags)[];
  run(asked: AskedImport): Promise<{ readonly lines: readonly string[]; readonly json: object }>;
}

interface ImportFlags {
  readonly data?: string;
  readonly finish?: string;
  readonly json?: boolean;
  readonly format?: string;
  readonly map?: readonly string[];
  readonly filesystem?: readonly string[];
  readonly session?: string;
  readonly plan?: boolean;
  readonly root?: readonly string[];
}

/** The store and progress output that an import uses. */
interface ImportWork {
  readonly store: ObjectStore;
  readonly clientDir: string;
  readonly onProgress: (done: number, total: number) => void;
}

/** Runs one stage of an import on the data folder's database and shows its progress. */
async function withImportStore<T>(flags: ImportFlags, work: (of: ImportWork) => Promise<T>): Promise<T> {
  const [
    { openStore },
    { readSettings },
    { clientFolder },
    { protectDataFolder },
    { runningProfile },
    { progressLine },
  ] = await Promise.all([
    import('../host/open-store.js'),
    import('../host/settings.js'),
    import('../process/data-folder.js'),
    import('../node/data-folder.js'),
    import('../node/node-status.js'),
    import('./output.js'),
  ]);
  const { defined } = await import('../values/defined.js');
  const settings = readSettings(process.env, defined({ data: flags.data }));
  const { dataDir } = settings.node;
  await protectDataFolder(dataDir);
  const profile = settings.nodeUrl === undefined ? await runningProfile(dataDir) : undefined;
  const line = progressLine();
  const { store, close } = await openStore(
    { ...settings, node: { ...settings.node, ...defined({ profile }) } },
    (said) => line.show(said),
  );
  try {
    return await work({
      store,
      clientDir: clientFolder(dataDir, settings.nodeUrl),
      onProgress: (done, total) => line.show(`${done} of ${total} transactions`),
    });
  } finally {
    line.end();
    await close();
  }
}

async function importBundleFile({ file, flags }: AskedImport) {
  const [{ importBundle }, { readMoved, readRenamed }] = await Promise.all([
    import('../bundle/import-bundle.js'),
    import('../host/settings.js'),
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
  const [{ finishImport }, { sessionId }] = await Promise.all([
    import('../bundle/import-bundle.js'),
    import('../objects/ids.js'),
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

async function importSessionDirectory({ file, flags }: AskedImport) {
  const [{ importDirectory }, { ImportClock }, { readSettings }, { openClient }, { runningProfile }, { defined }] =
    await Promise.all([
      import('../contracts/cortexfs/import-session.js'),
      import('../contracts/cortexfs/import-clock.js'),
      import('../host/settings.js'),
      import('../host/open-client.js'),
      import('../node/node-status.js'),
      import('../values/defined.js'),
    ]);
  const settings = readSettings(process.env, defined({ data: flags.data }));
  const profile = settings.nodeUrl === undefined ? await runningProfile(settings.node.dataDir) : undefined;
  const clock = new ImportClock();
  const { plan: planOnly = false, session } = flags;
  const cwd = process.cwd();
  const { client, close } = await openClient(
    { ...settings, node: { ...settings.node, ...defined({ profile }) } },
    { roots: flags.root ?? [cwd], cwd, track: false, what: 'palimpsest import', clock: clock.now },
  );
  try {
    const { leftOut, ...done } = await importDirectory(client, file, { clock, session, planOnly });
    const { outcome, steps, messages, calls, records } = done;
    const would = planOnly ? 'would be ' : '';
    const words = { created: `${would}created from`, extended: `${would}extended from`, unchanged: 'has all of' };
    return {
      lines: [
        `session ${done.session} ${words[outcome]} ${file}`,
        ...(outcome === 'unchanged'
          ? []
          : [`${steps} steps: ${messages} messages, ${calls} calls; ${records} records`]),
        ...leftOut.map((path) => `left out ${path}: not a text file`),
      ],
      json: { format: 'cortexfs', source: file, plan: planOnly, ...done, left_out: leftOut },
    };
  } finally {
    await close();
  }
}

/** Every import format. */
const FORMATS: Readonly<Record<string, ImportFormat>> = {
  bundle: {
    about: 'a file from palimpsest export, imported whole or not at all (docs/bundle.md)',
    flags: ['map', 'filesystem'],
    run: importBundleFile,
  },
  cortexfs: {
    about: 'a CortexFS session directory, written by Palimpsest or another program (docs/cortexfs.md)',
    recognises: async (path) => (await import('../contracts/cortexfs/read-directory.js')).isSessionDirectory(path),
    flags: ['session', 'plan', 'root'],
    run: importSessionDirectory,
  },
};

/** Returns the named format, or the one that recognises the file or folder. */
async function formatOf(file: string, flags: ImportFlags): Promise<ImportFormat> {
  const { UsageError } = await import('../host/settings.js');
  let name = flags.format;
  for (const [one, { recognises }] of Object.entries(FORMATS))
    if (name === undefined && (await recognises?.(file)) === true) name = one;
  const format = ownMember(FORMATS, name ?? 'bundle');
  if (format === undefined) throw new UsageError(`unknown format ${JSON.stringify(name)}`);
  const others = Object.values(FORMATS).flatMap((one) => (one === format ? [] : one.flags));
  const wrong = others.find((flag) => flags[flag] !== undefined);
  if (wrong !== undefined)
    throw new UsageError(
      `${file} has the format ${name ?? 'bundle'}, which does not support --${wrong}: leave it out, or set ` +
        'another --format',
    );
  return format;
}

/** Imports a file, or finishes an interrupted import. @throws {UsageError} */
async function imported(file: string | undefined, asked: ImportFlags) {
  const { finish, ...flags } = asked;
  const { UsageError } = await import('../host/settings.js');
  if (finish === undefined) {
    if (file === undefined) throw new UsageError('nothing to import: give a file or --finish SESSION');
    return (await formatOf(file, flags)).run({ file, flags });
  }
  const others = [...Object.values(FORMATS).flatMap((one) => one.flags), 'format' as const].filter(
    (flag) => asked[flag] !== undefined,
  );
  if (file !== undefined || others.length > 0)
    throw new UsageError(
      `--finish takes only the session: leave out ${file === undefined ? `--${others[0]}` : JSON.stringify(file)}`,
    );
  return finishCutShort(finish, flags);
}

async function importAction(file: string | undefined, flags: ImportFlags): Promise<void> {
  const { printJson, printLines, reportFailure } = await import('./output.js');
  await reportFailure(flags, async () => {
    const { lines, json } = await imported(file, flags);
    if (flags.json === true) printJson(json);
    else printLines(lines);
  });
}

/** `palimpsest import`: imports a session from another database or another program. */
export function importCommand(): Command {
  const abouts = Object.entries(FORMATS).map(([name, { about }]) => `  ${name.padEnd(14)} ${about}`);
  return new Command('import')
    .description('import a session: check it first, then take all of it or nothing; a repeated import changes nothing')
    .addArgument(new Argument('[file]', "file from palimpsest export, or another program's session folder"))
    .addOption(new Option('--finish <session>', 'finish an interrupted import of a session, without its file'))
    .addOption(new Option('--format <format>', 'input format (default: detected)').choices(Object.keys(FORMATS)))
    .addOption(new Option('--session <id>', 'cortexfs: id of the imported session (default: its own name)'))
    .addOption(new Option('--plan', 'cortexfs: show the changes without making them'))
    .addOption(
      new Option(
        '--root <folder>',
        'cortexfs: folder that the session belongs to; repeatable (default: the working folder)',
      ).argParser(collect),
    )
    .addOption(
      new Option('--map <old=new>', 'bundle: map a recorded folder to its place here; repeatable').argParser(collect),
    )
    .addOption(
      new Option(
        '--filesystem <old=new>',
        'bundle: map a recorded filesystem id to the one here; repeatable',
      ).argParser(collect),
    )
    .addOption(dataFlag())
    .addOption(jsonFlag())
    .addHelpText('after', `\nFormats:\n${abouts.join('\n')}`)
    .action(importAction);
}

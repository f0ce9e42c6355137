import { Argument, Command, Option } from 'commander';
import { collect, dataFlag, jsonFlag } from './flags.js';

/** What is to be taken in. */
interface AskedImport {
  readonly file: string;
  readonly flags: ImportFlags;
}

/** A format that can be taken in; its work is loaded when it is asked for. */
interface ImportFormat {
  readonly about: string;
  run(asked: AskedImport): Promise<{ readonly lines: readonly string[]; readonly json: object }>;
}

interface ImportFlags {
  readonly data?: string;
  readonly json?: boolean;
  readonly format: string;
  readonly map?: readonly string[];
  readonly filesystem?: readonly string[];
}

async function importBundleFile({ file, flags }: AskedImport) {
  const [
    { importBundle },
    { openStore },
    { readMoved, readRenamed, readSettings },
    { clientFolder },
    { protectDataFolder },
    { runningProfile },
    { progressLine },
  ] = await Promise.all([
    import('../bundle/import-bundle.js'),
    import('../host/open-store.js'),
    import('../host/settings.js'),
    import('../process/data-folder.js'),
    import('../node/data-folder.js'),
    import('../node/node-status.js'),
    import('./output.js'),
  ]);
  const { defined } = await import('../values/defined.js');
  const folders = readMoved(flags.map).map(({ from, to }) => ({ from, to }));
  const filesystems = readRenamed(flags.filesystem);
  const settings = readSettings(process.env, defined({ data: flags.data }));
  const { dataDir } = settings.node;
  await protectDataFolder(dataDir);
  const profile = settings.nodeUrl === undefined ? await runningProfile(dataDir) : undefined;
  const line = progressLine();
  const { store, close } = await openStore({ ...settings, node: { ...settings.node, ...defined({ profile }) } }, (said) => line.show(said));
  try {
    const clientDir = clientFolder(dataDir, settings.nodeUrl);
    const onProgress = (done: number, total: number): void => line.show(`${done} of ${total} transactions`);
    const { session, turn, step, sessions, isNew, bundle } = await importBundle(store, file, {
      clientDir,
      folders,
      filesystems,
      onProgress,
    });
    const { documents, texts, transactions } = bundle.manifest;
    const held = `session ${session}, turn ${turn}, step ${step}: ${documents} versions and parts of ${transactions} transactions, ${texts} texts`;
    return {
      lines: [isNew ? held : `${held}: all of it was there already`, ...(isNew ? [`check it with: palimpsest verify ${session}`] : [])],
      json: { format: 'bundle', session, turn, step, sessions, imported: isNew, manifest: bundle.manifest },
    };
  } finally {
    line.end();
    await close();
  }
}

/** Every format that can be taken in. */
const FORMATS: Readonly<Record<string, ImportFormat>> = {
  bundle: { about: 'a file that palimpsest export wrote, whole or not at all (docs/bundle.md)', run: importBundleFile },
};

async function importAction(file: string, flags: ImportFlags): Promise<void> {
  const { escapedJson, escapedLine, reportFailure } = await import('./output.js');
  await reportFailure(flags, async () => {
    const format = FORMATS[flags.format];
    if (format === undefined) throw new Error(`there is no format ${JSON.stringify(flags.format)}`);
    const { lines, json } = await format.run({ file, flags });
    console.log(flags.json === true ? escapedJson(json) : lines.map(escapedLine).join('\n'));
  });
}

/** `palimpsest import`: takes a session from another database into this one. */
export function importCommand(): Command {
  const abouts = Object.entries(FORMATS).map(([name, { about }]) => `  ${name.padEnd(14)} ${about}`);
  return new Command('import')
    .description('take a session that was exported into this database: checked first, then all of it or nothing')
    .addArgument(new Argument('<file>', 'what was exported'))
    .addOption(new Option('--format <format>', 'what it is').choices(Object.keys(FORMATS)).default('bundle'))
    .addOption(new Option('--map <old=new>', 'a recorded folder that lies elsewhere here; repeatable').argParser(collect))
    .addOption(new Option('--filesystem <old=new>', 'a recorded filesystem id that is another one here; repeatable').argParser(collect))
    .addOption(dataFlag())
    .addOption(jsonFlag())
    .addHelpText('after', `\nFormats:\n${abouts.join('\n')}`)
    .action(importAction);
}

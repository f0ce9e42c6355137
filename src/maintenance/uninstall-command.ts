import { Command } from 'commander';
import { jsonFlag } from '../cli/flags.js';
import { printJson, printLines, reportFailure } from '../cli/output.js';
import type { Leftover } from './uninstall.js';

/** Removes what one part of the program wrote elsewhere, and returns a line for each change. */
export type UndoSetup = () => Promise<readonly string[]>;

interface UninstallFlags {
  readonly data?: boolean;
  readonly json?: boolean;
}

const sizeText = (bytes: number): string =>
  bytes < 1_000_000 ? `${Math.ceil(bytes / 1_000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;

const KINDS: Readonly<Record<Leftover['kind'], string>> = {
  data: 'recorded sessions',
  cache: 'built nodes, rebuilt when needed',
  socket: "the node's socket",
};

const leftoverLine = ({ path, kind, bytes }: Leftover): string => `  ${path}  ${sizeText(bytes)}  ${KINDS[kind]}`;

async function uninstall(undos: readonly UndoSetup[], flags: UninstallFlags): Promise<void> {
  const [
    { readSettings },
    { leftovers, ownFolders, removeLeftovers, stopAll },
    { platformPackageFolder, removalCommand },
  ] = await Promise.all([
    import('../host/settings.js'),
    import('./uninstall.js'),
    import('../process/platform-package.js'),
  ]);
  const folders = await ownFolders(readSettings(process.env, {}).node);
  const undone: string[] = [];
  // Restore settings first, so that no agent starts a server again.
  for (const undo of undos) undone.push(...(await undo()));
  const { stopped, node } = await stopAll(folders);
  const found = await leftovers(folders);
  const removes = flags.data === true;
  if (!flags.json) {
    const others = stopped.length === 1 ? '1 other process' : `${stopped.length} other processes`;
    const ended = [...(node ? ['the node'] : []), ...(stopped.length > 0 ? [others] : [])].join(' and ');
    const head = removes ? 'These folders are removed:' : 'These folders stay:';
    printLines([
      ...undone,
      ended === '' ? 'Nothing ran.' : `Stopped ${ended}.`,
      ...(found.length === 0 ? ['No data is left.'] : [head, ...found.map(leftoverLine)]),
    ]);
  }
  const kept = removes ? await removeLeftovers(found) : [];
  if (flags.json) {
    printJson({ undone, stopped, node, leftovers: found, removed: removes, kept });
    return;
  }
  printLines([
    ...(kept.length === 0
      ? []
      : [
          'These stay, as files of other programs or backups of settings that were not restored:',
          ...kept.map((path) => `  ${path}`),
        ]),
    ...(removes || found.length === 0 ? [] : ['To remove them too, run: palimpsest uninstall --data']),
    `Now remove the program: ${removalCommand(platformPackageFolder())}`,
  ]);
}

/**
 * `palimpsest uninstall`: stops our processes, restores settings and lists what it leaves. `undos`
 * remove what other commands wrote into the settings of agents.
 */
export function uninstallCommand(undos: readonly UndoSetup[] = []): Command {
  return new Command('uninstall')
    .description(
      'stop the node and servers of the data folder, restore the settings of agents, and list the folders that ' +
        'stay. The data folder is PALIMPSEST_DATA, or ~/.local/share/palimpsest',
    )
    .option('--data', 'also remove these folders, with every recorded session; this cannot be undone')
    .addOption(jsonFlag())
    .action((flags: UninstallFlags) => reportFailure(flags, () => uninstall(undos, flags)));
}

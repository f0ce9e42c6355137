import { Argument, Command, Option } from 'commander';
import { jsonFlag } from './flags.js';

interface GcFlags {
  readonly apply?: boolean;
  readonly archive?: string;
  readonly json?: boolean;
}

async function gcAction(folder: string, { apply = false, archive, json }: GcFlags): Promise<void> {
  const [{ collectGarbage }, { printJson, printLines, reportFailure }] = await Promise.all([
    import('../contracts/cortexfs/collect-garbage.js'),
    import('./output.js'),
  ]);
  await reportFailure({ json: json === true }, async () => {
    const { collected, kept, archived } = await collectGarbage(folder, { now: Date.now(), apply, archive });
    if (json === true)
      return printJson({ folder, applied: archived !== undefined, archived: archived ?? null, collected, kept });
    const what = archived === undefined ? 'would archive' : 'archived';
    const lines = [
      ...collected.map(({ path, bytes, reason }) => `${what} ${path}, ${bytes} bytes: ${reason}`),
      ...kept.map(({ path, reason }) => `keeps ${path}: ${reason}`),
      collected.length === 0
        ? 'nothing to archive'
        : archived === undefined
          ? `${collected.length} files; nothing was changed: archive them with --apply`
          : `${collected.length} files are in ${archived}`,
    ];
    printLines(lines);
  });
}

/**
 * `palimpsest gc`: moves derived files of a session directory to an archive. Without `--apply` it
 * only lists them. Uses no database.
 */
export function gcCommand(): Command {
  return new Command('gc')
    .description(
      'list the derived files of a CortexFS session directory; with --apply archive them; never touches raw history',
    )
    .addArgument(new Argument('<folder>', 'the session directory; its context/gc.policy says what may go'))
    .addOption(new Option('--apply', 'move the files to the archive'))
    .addOption(new Option('--archive <folder>', 'archive folder (default: FOLDER.archive)'))
    .addOption(jsonFlag())
    .action(gcAction);
}

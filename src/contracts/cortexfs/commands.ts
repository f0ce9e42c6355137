import { Argument, Command, Option } from 'commander';
import { jsonFlag, wholeBetween } from '../../cli/flags.js';
import type { ReviewFlags } from '../../cli/review/answer.js';
import { withMoment } from '../../cli/review/moment-flags.js';

interface PackFlags extends ReviewFlags {
  readonly budget: number;
  readonly out: string;
}

async function packAction(reference: string, flags: PackFlags): Promise<void> {
  const [{ answerSession }, { packInto }] = await Promise.all([
    import('../../cli/review/session-answer.js'),
    import('./export-session.js'),
  ]);
  const { budget, out } = flags;
  await answerSession(reference, flags, async ({ timeline, session, when }) => {
    const { pack, paths } = await packInto(timeline, out, { session, when, budget });
    const { items, leftOut, tokens } = pack;
    return {
      lines: () => [
        `${tokens} of ${budget} tokens: ${paths.join(', ')}`,
        ...items.map(({ kind, source, range = '', tokens: own }) => `  ${own}  ${kind}  ${source} ${range}`.trimEnd()),
        ...leftOut.map(({ kind, source, tokens: own }) => `  left out, ${own} tokens: ${kind} ${source}`),
      ],
      json: () => ({ session, paths, budget, tokens, items, left_out: leftOut }),
    };
  });
}

/**
 * `palimpsest pack`: writes a CortexFS pack of a session. Its two files hold the session's context
 * within a token budget. The database stays unchanged.
 */
export function packCommand(): Command {
  return withMoment(new Command('pack'))
    .description('write the context of a session within a token budget, as pack.json and pack.md')
    .argument('<session>', 'session id or prefix, optionally with @MOMENT')
    .addOption(
      new Option('--budget <tokens>', 'maximum tokens of pack.md')
        .argParser(wholeBetween(1, 100_000_000))
        .makeOptionMandatory(),
    )
    .addOption(
      new Option('--out <folder>', 'destination folder; for an exported session, its folder context').default('.'),
    )
    .action(packAction);
}

interface GcFlags {
  readonly apply?: boolean;
  readonly archive?: string;
  readonly json?: boolean;
}

async function gcAction(folder: string, { apply = false, archive, json }: GcFlags): Promise<void> {
  const [{ collectGarbage }, { printJson, printLines, reportFailure }] = await Promise.all([
    import('./collect-garbage.js'),
    import('../../cli/output.js'),
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
 * only lists them. Needs no database.
 */
export function gcCommand(): Command {
  return new Command('gc')
    .description(
      'list the derived files of a CortexFS session directory; with --apply archive them; never touches raw history',
    )
    .addArgument(
      new Argument('<folder>', 'the session directory; its context/gc.policy says which files may be archived'),
    )
    .addOption(new Option('--apply', 'move the files to the archive'))
    .addOption(new Option('--archive <folder>', 'archive folder (default: FOLDER.archive)'))
    .addOption(jsonFlag())
    .action(gcAction);
}

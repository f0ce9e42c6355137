import { Command, Option } from 'commander';
import { wholeBetween } from './flags.js';
import type { ReviewFlags } from './review/answer.js';
import { withMoment } from './review/commands.js';

interface PackFlags extends ReviewFlags {
  readonly budget: number;
  readonly out: string;
}

async function packAction(reference: string, flags: PackFlags): Promise<void> {
  const [{ answerSession }, { packInto }] = await Promise.all([
    import('./review/session-answer.js'),
    import('../contracts/cortexfs/export-session.js'),
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
 * `palimpsest pack`: writes the context of a session within a token budget, as the two files of a
 * CortexFS pack. Changes nothing in the database.
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
      new Option('--out <folder>', 'where to; an exported session takes them in its context folder').default('.'),
    )
    .action(packAction);
}

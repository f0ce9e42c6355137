import { Argument, Command, Option } from 'commander';
import type { ProgramParts } from '../cli/contract.js';
import { dataFlag, jsonFlag, wholeBetween } from '../cli/flags.js';
import type { CostsFlags } from './costs-action.js';
import type { OpenFlags } from './open-action.js';
import type { SavingsFlags } from './savings.js';

/** `palimpsest costs`: adds up the costs of the sessions that this user's agents recorded. */
export function costsCommand(): Command {
  return new Command('costs')
    .description(
      "sum up what this user's recorded sessions cost, where the provider's cache was lost, and what of the context " +
        'no answer used',
    )
    .addOption(
      new Option('--by <key>', 'what the rows stand for').choices(['day', 'agent', 'model', 'project']).default('day'),
    )
    .addOption(
      new Option(
        '--since <day>',
        'only calls since then: a local day or a time, or 7d (today and six days before), 2w, 24h',
      ),
    )
    .addOption(new Option('--policies', 'also compare context policies on the three largest sessions; takes longer'))
    .addOption(dataFlag())
    .addOption(jsonFlag())
    .addOption(new Option('--no-pager', 'write long output straight to the terminal'))
    .action(async (flags: CostsFlags) => (await import('./costs-action.js')).costsAction(flags));
}

/** `palimpsest report savings`: compares steered sessions with those of the control arm. */
export function savingsCommand(): Command {
  return new Command('savings')
    .description(
      'compare sessions that a gateway steered with those that it forwarded unchanged: tokens, cache, cost, length',
    )
    .addOption(dataFlag())
    .addOption(jsonFlag())
    .action(async (flags: SavingsFlags) => (await import('./savings.js')).savingsAction(flags));
}

/** `palimpsest open`: imports a recorded session and shows it in the browser. */
export function openCommand(program: ProgramParts): Command {
  return new Command('open')
    .description(
      "import an agent's recorded session, from its transcript, and show it on the review page; a session that " +
        'has grown since is continued',
    )
    .addArgument(
      new Argument(
        '[session]',
        'LAST, a number of the list that palimpsest shows, a path, or the beginning of an id',
      ).default('LAST'),
    )
    .addOption(dataFlag())
    .addOption(new Option('--port <number>', 'port; 0 picks a free one').argParser(wholeBetween(0, 65_535)).default(0))
    .addOption(new Option('--no-browser', 'print the address without opening it'))
    .addOption(new Option('--no-page', 'import only, without the review page'))
    .addOption(new Option('--json', 'print one JSON object on the import, without the review page'))
    .action(async (session: string, flags: OpenFlags) =>
      (await import('./open-action.js')).openAction(session, flags, program),
    );
}

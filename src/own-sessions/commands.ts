import { Command, Option } from 'commander';
import { dataFlag, jsonFlag } from '../cli/flags.js';
import type { CostsFlags } from './costs-action.js';

/** `palimpsest costs`: sums up what the recorded sessions of this user's agents cost. */
export function costsCommand(): Command {
  return new Command('costs')
    .description(
      "sum up what this user's recorded sessions cost, where the provider's cache was lost, and what of the context " +
        'no answer used',
    )
    .addOption(
      new Option('--by <key>', 'what the rows stand for').choices(['day', 'agent', 'model', 'project']).default('day'),
    )
    .addOption(new Option('--since <day>', 'first day, such as 2026-11-01, or 7d for the last seven days'))
    .addOption(dataFlag())
    .addOption(jsonFlag())
    .addOption(new Option('--no-pager', 'write long output straight to the terminal'))
    .action(async (flags: CostsFlags) => (await import('./costs-action.js')).costsAction(flags));
}

import { Command, Option } from 'commander';
import { dataFlag, jsonFlag } from '../cli/flags.js';
import type { Companion } from './followed.js';
import type { WatchFlags } from './watch-action.js';

/** `palimpsest watch`: records the sessions of this user's agents while they run. */
export function watchCommand(companions: readonly Companion[]): Command {
  return new Command('watch')
    .description(
      "record the sessions of this user's agents while they run, from the files that the agents write; a file whose " +
        'last change was more than a minute before the first start is ignored until it changes',
    )
    .addOption(new Option('--background', 'run in the background; return once it is ready'))
    .addOption(new Option('--status', 'show the followed sessions and the failures').conflicts(['background', 'stop']))
    .addOption(new Option('--stop', 'end the running process').conflicts('background'))
    .addOption(dataFlag())
    .addOption(jsonFlag())
    .action(async (flags: WatchFlags) => (await import('./watch-action.js')).watchAction(flags, companions));
}

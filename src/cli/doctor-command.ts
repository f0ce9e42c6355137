import { Command, Option } from 'commander';
import type { DoctorFlags } from './doctor-flags.js';

/** `palimpsest doctor`: what is waiting, held or broken in a data folder. Changes nothing. */
export function doctorCommand(): Command {
  return new Command('doctor')
    .description('tell what is waiting, held or broken in a data folder; changes nothing, exit code 1 when something needs a hand')
    .addOption(new Option('--data <folder>', 'data folder (default: PALIMPSEST_DATA, else ~/.local/share/palimpsest)'))
    .addOption(new Option('--json', 'print one JSON object'))
    .action(async (flags: DoctorFlags) => (await import('./doctor-action.js')).doctorAction(flags));
}

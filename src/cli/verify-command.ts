import { Command, Option } from 'commander';
import type { VerifyFlags } from './verify-flags.js';

/** `palimpsest verify`: whether what was handed out of sessions can be made again, byte for byte. Changes nothing. */
export function verifyCommand(): Command {
  return new Command('verify')
    .description('make what was handed out of sessions again from the database and compare it; exit code 1 when something is not the same')
    .argument('[sessions...]', 'their ids or the beginnings of them')
    .addOption(new Option('--all', 'every session of the database'))
    .addOption(new Option('--data <folder>', 'data folder (default: PALIMPSEST_DATA, else ~/.local/share/palimpsest)'))
    .addOption(new Option('--json', 'print one JSON object'))
    .action(async (sessions: readonly string[], flags: VerifyFlags) => (await import('./verify-action.js')).verifyAction(sessions, flags));
}

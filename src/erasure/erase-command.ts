import { Command, Option } from 'commander';
import { collect, dataFlag, jsonFlag, wholeNumber } from '../cli/flags.js';
import { reportFailure } from '../cli/output.js';
import type { Forgetter } from '../objects/forgotten.js';
import type { DiskFlags } from './disk-action.js';
import type { EraseFlags } from './erase-action.js';
import type { RetainFlags } from './retention.js';

/**
 * `palimpsest erase`: erases recorded content at the request of the data folder's owner.
 * `forgetters` returns a `Forgetter` for each part of the program that keeps copies.
 */
export function eraseCommand(forgetters: () => Promise<readonly Forgetter[]>): Command {
  return new Command('erase')
    .description(
      'erase a session, an object or a text from the database, the journals and every copy in the data folder. ' +
        'Run it with --plan first. This cannot be undone. A tombstone says what was erased, when, by whom and why',
    )
    .addOption(new Option('--session <id>', 'a whole session, with the files and texts that no other session needs'))
    .addOption(new Option('--object <id>', 'a file or tool call, and every full copy of its content'))
    .addOption(new Option('--text <text>', 'every occurrence of a text; - reads the text from standard input'))
    .addOption(new Option('--before <date>', 'every session without a step since this day, such as 2026-03-31'))
    .addOption(new Option('--retention', 'every session that is older than the rules of palimpsest retain allow'))
    .addOption(new Option('--shared', 'allow that several sessions lose the object or text from their contexts'))
    .addOption(new Option('--plan', 'show what would be erased, and store that as the limit for --apply'))
    .addOption(new Option('--apply', 'erase what the stored plan lists, and no more'))
    .addOption(new Option('--reason <text>', 'reason for the tombstones; required with --apply'))
    .addOption(new Option('--resume', 'resume an interrupted erasure'))
    .addOption(new Option('--sweep', "only rewrite the files of this host's node, after an erasure on another host"))
    .addOption(dataFlag())
    .addOption(jsonFlag())
    .action((flags: EraseFlags) =>
      reportFailure(flags, async () => (await import('./erase-action.js')).eraseAction(flags, await forgetters())),
    );
}

/** `palimpsest retain`: shows and sets how long sessions are kept. */
export function retainCommand(): Command {
  return new Command('retain')
    .description(
      'show or set how many days sessions are kept after their last step. Nothing is erased automatically: ' +
        'palimpsest erase --retention --plan shows what is due, and --apply erases it',
    )
    .addOption(
      new Option(
        '--rule <pattern=days>',
        "session id, or its beginning and *, such as 'ci-*=30' or '*=365'; 'ci-*=always' keeps them. " +
          'Repeatable; replaces all rules',
      ).argParser(collect),
    )
    .addOption(new Option('--none', 'remove all rules'))
    .addOption(dataFlag())
    .addOption(jsonFlag())
    .action((flags: RetainFlags) =>
      reportFailure(flags, async () => (await import('./retention.js')).retainAction(flags)),
    );
}

/** `palimpsest disk`: shows disk use, and what each measure would free. */
export function diskCommand(): Command {
  return new Command('disk')
    .description(
      'show disk use by place, kind, age and session, its limits, and what each measure would free. ' +
        'Changes nothing',
    )
    .addOption(
      new Option('--limit <number>', 'maximum number of sessions, largest first (default: 15)').argParser(wholeNumber),
    )
    .addOption(dataFlag())
    .addOption(jsonFlag())
    .addOption(new Option('--no-pager', 'write long output straight to the terminal'))
    .action((flags: DiskFlags) =>
      reportFailure(flags, async () => (await import('./disk-action.js')).diskAction(flags)),
    );
}

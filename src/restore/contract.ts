import { Command, Option } from 'commander';
import type { Contract } from '../cli/contract.js';
import { collect, dataFlag, jsonFlag } from '../cli/flags.js';
import type { RestoreFlags } from './restore-action.js';

/**
 * `palimpsest restore`: compares a session's files with those its agent had at a moment. Can write
 * them to a folder, or restore them in place, which can be undone.
 */
export function restoreCommand(): Command {
  return new Command('restore')
    .description("compare a session's files with those its agent had at a moment, or restore them")
    .argument('[session]', 'session id or prefix, optionally with @MOMENT, such as @turn:7')
    .addOption(new Option('--plan', 'list the files that differ, and how; changes nothing (the default)'))
    .addOption(new Option('--apply', "write the agent's files: --to a folder, or --in-place"))
    .addOption(new Option('--to <folder>', 'a new or empty folder'))
    .addOption(
      new Option(
        '--in-place',
        'overwrite the original files, unless one is in the way (see --plan); replaced files are kept',
      ),
    )
    .addOption(new Option('--undo <id>', 'undo an in-place restore'))
    .addOption(new Option('--list', 'list the in-place restores that can be undone'))
    .addOption(
      new Option(
        '--root <folder>',
        'folder to compare and write in; repeatable (default: the current folder)',
      ).argParser(collect),
    )
    .addOption(
      new Option('--moved <old=new>', 'map a recorded folder to its present place; repeatable').argParser(collect),
    )
    .addOption(new Option('--at <moment>', 'the moment, if the session has no @MOMENT'))
    .addOption(
      new Option(
        '--mount <mapping>',
        'AGENT=CANONICAL[,FILESYSTEM-ID]: show paths as that agent saw them; repeatable',
      ).argParser(collect),
    )
    .addOption(dataFlag())
    .addOption(jsonFlag())
    .addOption(new Option('--no-pager', 'write long output straight to the terminal'))
    .action(async (session: string | undefined, flags: RestoreFlags) =>
      (await import('./restore-action.js')).restoreAction(session, flags),
    );
}

/** The files that an agent had: compares them with the disk, copies and restores them. */
export const RESTORE: Contract = {
  http: async () => (await import('./restore-http.js')).RESTORE_HTTP,
  commands: () => [restoreCommand()],
};

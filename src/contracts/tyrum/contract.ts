import { Command, Option } from 'commander';
import type { Contract } from '../../cli/contract.js';
import type { ReviewFlags } from '../../cli/review/answer.js';
import { limitFlag, withData, withMoment } from '../../cli/review/moment-flags.js';
import { compactCommand } from './compact-command.js';

/** The commands `report state` and `report memory`. */
function reportCommands(): readonly Command[] {
  return [
    withMoment(new Command('state'))
      .description("show a conversation's state in Tyrum's JSON: its checkpoint, pending items, and later messages")
      .argument('<session>', 'session id or prefix, optionally with @MOMENT')
      .action(async (session: string, flags: ReviewFlags) =>
        (await import('./reports.js')).tyrumStateAction(session, flags),
      ),
    withData(new Command('memory'))
      .description("show an agent's memory across sessions, with forgotten items, as Tyrum does; JSON with --json")
      .argument('<agent>', 'name of the agent')
      .addOption(new Option('--query <words>', 'show only items with these words, best match first'))
      .addOption(limitFlag('maximum number of items (default: 20)'))
      .action(async (agent: string, flags: ReviewFlags) =>
        (await import('./reports.js')).tyrumMemoryAction(agent, flags),
      ),
  ];
}

/** Tyrum: conversations with checkpoints, memory and reports, over HTTP and as commands. */
export const TYRUM: Contract = {
  http: async () => (await import('./http.js')).TYRUM_HTTP,
  commands: () => [compactCommand()],
  reports: {
    format: 'tyrum',
    about: "the JSON of Tyrum's gateway",
    load: async () => {
      const { tyrumListAction, tyrumDetailAction } = await import('./reports.js');
      return { list: tyrumListAction, detail: tyrumDetailAction };
    },
    commands: reportCommands,
  },
};

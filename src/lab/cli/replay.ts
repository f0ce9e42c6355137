import { Command, Option } from 'commander';
import { wholeBetween } from '../../cli/flags.js';
import type { ReplayFlags } from './run-replay.js';

/**
 * Creates the command `palimpsest replay FILE…`, which runs recorded sessions through the real
 * client on an isolated database.
 */
export function replayCommand(): Command {
  return new Command('replay')
    .description(
      'replay recorded sessions of agents (Claude Code, Codex, pi, SWE-agent, OpenHands, Gemini CLI, Cline and ' +
        'others) and report the results',
    )
    .argument('<file...>', 'recordings, or folders of them; formats are recognised by content')
    .addOption(new Option('--into <session>', 'session to replay into (default: derived from the recording)'))
    .addOption(new Option('--config <file>', 'JSON: window, shortIds, strict, tools, tokens'))
    .addOption(new Option('--out <folder>', 'folder for a JSON and a Markdown report per recording'))
    .addOption(
      new Option(
        '--data <folder>',
        'data folder to keep the replay in, where an interrupted replay resumes. To replay with another --config, ' +
          'name another session with --into (default: a temporary in-memory node)',
      ),
    )
    .addOption(
      new Option('--jobs <n>', 'recordings to replay in parallel (default: one per core)').argParser(
        wholeBetween(1, 1_024),
      ),
    )
    .addOption(new Option('--dry-run', 'only import the recordings and list their contents, without a database'))
    .addOption(new Option('--json', 'print one line of JSON per recording'))
    .action(async (files: readonly string[], flags: ReplayFlags) =>
      (await import('./run-replay.js')).replayAction(files, flags),
    );
}

import { Command, Option } from 'commander';
import { wholeBetween } from '../../cli/flags.js';
import type { ReplayFlags } from './run-replay.js';

/** `palimpsest replay FILE…`: runs recorded sessions of agents through the real client, on an isolated database. */
export function replayCommand(): Command {
  return new Command('replay')
    .description(
      'replay recorded sessions of agents (Claude Code, Codex, pi, SWE-agent, OpenHands, Gemini CLI, Cline and others) and report what came of them',
    )
    .argument('<file...>', 'recordings, or folders of them; the format is recognised by their content')
    .addOption(new Option('--into <session>', 'session to replay into (default: one derived from the recording)'))
    .addOption(new Option('--config <file>', 'JSON: window, shortIds, strict, tools, tokens'))
    .addOption(new Option('--out <folder>', 'folder for a JSON and a Markdown report of each recording'))
    .addOption(
      new Option(
        '--data-dir <folder>',
        'data folder that keeps what is replayed; an interrupted replay goes on there, another --config needs --into (default: an in-memory node, gone afterwards)',
      ),
    )
    .addOption(
      new Option('--jobs <n>', 'recordings replayed at the same time (default: one for each core)').argParser(wholeBetween(1, 1_024)),
    )
    .addOption(new Option('--dry-run', 'only import the recordings and list what they hold; no database'))
    .addOption(new Option('--json', 'print one JSON object for each recording, a line each'))
    .action(async (files: readonly string[], flags: ReplayFlags) => (await import('./run-replay.js')).replayAction(files, flags));
}

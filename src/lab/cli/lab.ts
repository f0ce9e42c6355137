import { Command, Option } from 'commander';
import { wholeBetween } from '../../cli/flags.js';
import type { LabFlags } from './run-lab.js';

/**
 * Creates the command `palimpsest lab FILE…`, which compares context policies on recorded sessions
 * without a model.
 */
export function labCommand(): Command {
  return new Command('lab')
    .description(
      'compare context policies on recorded sessions, without a model: their costs, and what they keep and lose',
    )
    .argument(
      '[file...]',
      'recordings, or folders of them such as ~/.claude/projects/NAME; formats are recognised by content',
    )
    .addOption(
      new Option('--config <file>', 'JSON: policies with their parameters, sweep, least, window (docs/laboratory.md)'),
    )
    .addOption(
      new Option('--least <n>', 'minimum number of model calls in a session (default: 30)').argParser(
        wholeBetween(1, 1_000_000),
      ),
    )
    .addOption(
      new Option(
        '--out <folder>',
        'folder for laboratory.md, laboratory.json, laboratory.html (one page with plots) and times.json',
      ),
    )
    .addOption(
      new Option('--jobs <n>', 'threads, each with one recording at a time (default: one per core)').argParser(
        wholeBetween(1, 1_024),
      ),
    )
    .addOption(
      new Option(
        '--sweep',
        'many settings of every policy, also with all that our policies may do; takes many times longer',
      ),
    )
    .addOption(
      new Option('--train <path...>', 'recordings on which settings are chosen (default: half of the projects)'),
    )
    .addOption(new Option('--test <path...>', 'recordings on which they are reported'))
    .addOption(new Option('--json', 'print the report as JSON'))
    .action(async (files: readonly string[], flags: LabFlags) =>
      (await import('./run-lab.js')).labAction(files, flags),
    );
}

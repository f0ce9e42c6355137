import { Command, InvalidArgumentError, Option } from 'commander';
import type { NodeFlags } from './node-flags.js';

function wholeNumber(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value)) throw new InvalidArgumentError('It must be a whole number.');
  return value;
}

const dataFlag = (): Option => new Option('--data <folder>', 'data folder (default: PALIMPSEST_DATA, else ~/.local/share/palimpsest)');
const jsonFlag = (): Option => new Option('--json', 'print one JSON object');

/** `palimpsest node …`: starts, shows and stops the database node of a data folder. The actions are loaded when one runs. */
export function nodeCommand(): Command {
  const node = new Command('node').description('start, look at and stop the database node of a data folder');
  node
    .command('start')
    .description('start the node in the background, or find the one that runs, and wait until it answers')
    .addOption(dataFlag())
    .addOption(new Option('--profile <name>', 'memory (forgets everything when it stops) or rocksdb (the default)'))
    .addOption(
      new Option('--idle-exit <seconds>', 'stop after so long without a request; 0 is never (default: 1800)').argParser(wholeNumber),
    )
    .addOption(new Option('--ready-timeout <seconds>', 'how long to wait until it answers (default: 60)').argParser(wholeNumber))
    .addOption(new Option('--heap <megabytes>', 'most memory for its heap (default: 1024)').argParser(wholeNumber))
    .addOption(new Option('--tcp', 'listen on a port of 127.0.0.1 with a bearer token, not on a unix socket'))
    .addOption(jsonFlag())
    .action(async (flags: NodeFlags) => (await import('./node-actions.js')).startAction(flags));
  node
    .command('status')
    .description('tell whether the node runs and answers')
    .addOption(dataFlag())
    .addOption(jsonFlag())
    .action(async (flags: NodeFlags) => (await import('./node-actions.js')).statusAction(flags));
  node
    .command('stop')
    .description('stop the node')
    .addOption(dataFlag())
    .addOption(jsonFlag())
    .action(async (flags: NodeFlags) => (await import('./node-actions.js')).stopAction(flags));
  node
    .command('logs')
    .description("print the last lines of the node's log")
    .addOption(dataFlag())
    .addOption(new Option('--lines <count>', 'how many').argParser(wholeNumber).default(100))
    .addOption(jsonFlag())
    .action(async (flags: NodeFlags) => (await import('./node-actions.js')).logsAction(flags));
  node
    .command('supervise', { hidden: true })
    .requiredOption('--plan <json>')
    .action(async (flags: { readonly plan: string }) => (await import('./supervise-action.js')).superviseAction(flags.plan));
  return node;
}

import { Argument, Command, Option } from 'commander';
import { collect, dataFlag, wholeBetween } from '../cli/flags.js';
import type { GatewayFlags } from './gateway-action.js';
import type { RunFlags } from './run-action.js';

const upstreamFlag = (): Option =>
  new Option(
    '--upstream <name=url>',
    'forward anthropic, openai, codex, gemini or code-assist to this base address; repeatable',
  ).argParser(collect);

/** `palimpsest gateway`: forwards the model calls of agents unchanged and logs them. */
export function gatewayCommand(): Command {
  return new Command('gateway')
    .description(
      'forward the model calls of agents to their providers on 127.0.0.1, unchanged, and log each request in the ' +
        'data folder; credentials pass and are not stored',
    )
    .addOption(
      new Option('--port <number>', 'port; 0 picks a free one').argParser(wholeBetween(0, 65_535)).default(7_391),
    )
    .addOption(upstreamFlag())
    .addOption(dataFlag())
    .action(async (flags: GatewayFlags) => (await import('./gateway-action.js')).gatewayAction(flags));
}

/** `palimpsest run`: starts an agent whose model calls go over a gateway of its own. */
export function runCommand(): Command {
  return new Command('run')
    .description(
      'start an agent whose model calls are forwarded unchanged and logged in the data folder; flags of this ' +
        "command stand before the agent's name, and everything after it goes to the agent",
    )
    .addArgument(new Argument('<agent>', 'the agent: claude, codex or gemini'))
    .addArgument(new Argument('[args...]', "the agent's own arguments"))
    .addOption(upstreamFlag())
    .addOption(dataFlag())
    .passThroughOptions()
    .allowUnknownOption()
    .action(async (agent: string, args: readonly string[], flags: RunFlags) =>
      (await import('./run-action.js')).runAction({ agent, args, flags }),
    );
}

import { Argument, Command, Option } from 'commander';
import { collect, dataFlag, jsonFlag, numberBetween, wholeBetween } from '../cli/flags.js';
import type { GatewayFlags } from './gateway-action.js';
import type { RunFlags } from './run-action.js';
import type { SteerChange, SteerFlags } from './steer/steer-action.js';

const upstreamFlag = (): Option =>
  new Option(
    '--upstream <name=url>',
    'forward anthropic, openai, codex, gemini or code-assist to this base address; repeatable',
  ).argParser(collect);

const withSteering = (command: Command): Command =>
  command
    .addOption(
      new Option(
        '--steer',
        "change each request of Claude Code and Codex: old results become lines, and the provider's cache stays " +
          'valid; docs/gateway.md describes the requests',
      ),
    )
    .addOption(
      new Option('--control <share>', 'leave this share of sessions unchanged, for comparison; 0 to 1').argParser(
        numberBetween(0, 1),
      ),
    )
    .addOption(
      new Option(
        '--steer-limit <ms>',
        'maximum wait for the context of a model call (default: 250); a late context is not used',
      ).argParser(wholeBetween(1, 60_000)),
    );

/** `palimpsest steer`: lists the sessions that a gateway steers, and switches or tidies one. */
export function steerCommand(): Command {
  return new Command('steer')
    .description('show the sessions that a gateway steers, or change one while it runs')
    .addArgument(
      new Argument('<change>', 'list; on or off; tidy starts a new context with the next message of the user').choices([
        'list',
        'on',
        'off',
        'tidy',
      ]),
    )
    .addArgument(new Argument('[session]', "the agent's own id of the session"))
    .addOption(dataFlag())
    .addOption(jsonFlag())
    .action(async (change: SteerChange | 'list', session: string | undefined, flags: SteerFlags) =>
      (await import('./steer/steer-action.js')).steerAction(change, session, flags),
    );
}

/** `palimpsest gateway`: forwards the model calls of agents unchanged and logs them. */
export function gatewayCommand(): Command {
  return withSteering(
    new Command('gateway').description(
      'listen on 127.0.0.1, forward the model calls of agents to their providers, unchanged unless it steers, and ' +
        'log each request in the data folder; credentials are forwarded and not stored',
    ),
  )
    .addOption(
      new Option('--port <number>', 'port; 0 picks a free one').argParser(wholeBetween(0, 65_535)).default(7_391),
    )
    .addOption(upstreamFlag())
    .addOption(dataFlag())
    .action(async (flags: GatewayFlags) => (await import('./gateway-action.js')).gatewayAction(flags));
}

/** `palimpsest run`: starts an agent whose model calls go through its own gateway. */
export function runCommand(): Command {
  return withSteering(
    new Command('run').description(
      'start an agent whose model calls are forwarded, unchanged unless it steers, and logged in the data folder; ' +
        "give flags of this command before the agent's name; everything after it goes to the agent",
    ),
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

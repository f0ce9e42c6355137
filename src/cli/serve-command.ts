import { Command, Option } from 'commander';
import { type ServeFlags, wholeBetween, withServerFlags } from './server-flags.js';

/** `palimpsest serve`: serves several agents over HTTP on this machine. What it runs is loaded when it runs. */
export function serveCommand(version: string): Command {
  const command = new Command('serve')
    .description('serve several agents over HTTP on 127.0.0.1, as an MCP server')
    .addOption(new Option('--port <number>', 'port; 0 picks a free one').argParser(wholeBetween(0, 65_535)).default(7_390))
    .addOption(new Option('--token-file <file>', 'file with the bearer token (default: one is made up and shown once)'))
    .addOption(new Option('--no-token', 'ask for no token: any program on this machine may connect'));
  return withServerFlags(command).action(async (flags: ServeFlags) => (await import('./serve-actions.js')).serveAction(version, flags));
}

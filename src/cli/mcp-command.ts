import { Command } from 'commander';
import { type ServerFlags, withServerFlags } from './server-flags.js';

/** `palimpsest mcp`: serves one agent over stdin and stdout. What it runs is loaded when it runs. */
export function mcpCommand(version: string): Command {
  const command = new Command('mcp').description('serve one agent over stdio, as an MCP server');
  return withServerFlags(command).action(async (flags: ServerFlags) => (await import('./serve-actions.js')).mcpAction(version, flags));
}

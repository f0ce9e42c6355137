#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { addCompletion } from './cli/completion-command.js';
import { doctorCommand } from './cli/doctor-command.js';
import { mcpCommand } from './cli/mcp-command.js';
import { nodeCommand } from './cli/node-command.js';
import { reviewCommands } from './cli/review-command.js';
import { serveCommand } from './cli/serve-command.js';
import { endUsageErrors } from './cli/usage-error.js';
import { verifyCommand } from './cli/verify-command.js';
import { replayCommand } from './lab/cli/replay-command.js';
import { refuseBeyondFileSizeLimit } from './process/system-error.js';

/** The version in package.json, which lies above the built program. */
function packageVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  return typeof manifest === 'object' && manifest !== null && 'version' in manifest ? String(manifest.version) : 'unknown';
}

refuseBeyondFileSizeLimit();
// Each command is declared in a light file of its own and loads its work when it runs: `palimpsest mcp` must answer at once.
const version = packageVersion();
const program = new Command('palimpsest')
  .description('A bitemporal context service for LLM agents, on XTDB 1.24')
  .version(version)
  .addCommand(mcpCommand(version))
  .addCommand(serveCommand(version))
  .addCommand(nodeCommand())
  .addCommand(doctorCommand())
  .addCommand(verifyCommand())
  .addCommand(replayCommand());

for (const command of reviewCommands()) program.addCommand(command);
await addCompletion(program, process.argv);
endUsageErrors(program);

await program.parseAsync();

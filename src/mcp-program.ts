import { Command } from 'commander';
import { endUsageErrors } from './cli/flags.js';
import { packageVersion } from './cli/package-version.js';
import { mcpCommand } from './cli/serve.js';

/**
 * Runs a command line that begins with `mcp`, without loading the declarations of other commands.
 * An agent waits for the start of this server. `home` is the folder of package.json.
 */
export async function runMcp(argv: readonly string[], home: URL): Promise<void> {
  const program = new Command('palimpsest').addCommand(mcpCommand(packageVersion(home)));
  endUsageErrors(program, argv.slice(2));
  await program.parseAsync([...argv]);
}

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Argument, Command } from 'commander';
import { compactCommand } from './cli/compact.js';
import { doctorCommand } from './cli/doctor.js';
import { exportCommand } from './cli/export.js';
import { endUsageErrors } from './cli/flags.js';
import { forkCommand } from './cli/fork.js';
import { gcCommand } from './cli/gc.js';
import { importCommand } from './cli/import.js';
import { journalCommand } from './cli/journal.js';
import { nodeCommand } from './cli/node.js';
import { packCommand } from './cli/pack.js';
import { noteCommand, restoreCommand, reviewCommands, verifyCommand } from './cli/review/commands.js';
import { reviewPageCommand } from './cli/review-page.js';
import { mcpCommand, serveCommand } from './cli/serve.js';
import { undoCommand } from './cli/undo.js';
import { labCommand } from './lab/cli/lab.js';
import { replayCommand } from './lab/cli/replay.js';

/** The commands that a shell runs to complete a line, and that print the completion script. */
const COMPLETION_CALLS: ReadonlySet<string> = new Set(['completion', 'complete']);

/** The version in package.json. */
function packageVersion(home: URL): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('package.json', home), 'utf8'));
  return typeof manifest === 'object' && manifest !== null && 'version' in manifest
    ? String(manifest.version)
    : 'unknown';
}

/** Adds `palimpsest completion <shell>`. Its library loads only when a shell calls it. */
async function addCompletion(program: Command, call: string | undefined): Promise<void> {
  if (COMPLETION_CALLS.has(call ?? '')) {
    const { default: addTo } = await import('@bomb.sh/tab/commander');
    addTo(program, { completionCommandName: 'completion' });
    return;
  }
  program.addCommand(
    new Command('completion')
      .description('print the completion script of a shell')
      .addArgument(new Argument('<shell>', 'the shell').choices(['bash', 'zsh', 'fish', 'powershell'])),
  );
}

/** Runs the whole program. `home` is the folder of package.json and the built program. */
export async function runProgram(home: URL): Promise<void> {
  // A command's declaration is light and its work loads when it runs, because `palimpsest mcp` must
  // answer at once.
  const version = packageVersion(home);
  /** The built review page, beside the built program. */
  const web = fileURLToPath(new URL('dist/web/', home));
  const program = new Command('palimpsest')
    .description('A bitemporal context service for LLM agents, on XTDB 1.24')
    .version(version)
    .addCommand(mcpCommand(version))
    .addCommand(serveCommand(version, web))
    .addCommand(reviewPageCommand(version, web))
    .addCommand(nodeCommand())
    .addCommand(doctorCommand())
    .addCommand(journalCommand())
    .addCommand(verifyCommand())
    .addCommand(forkCommand())
    .addCommand(restoreCommand())
    .addCommand(undoCommand())
    .addCommand(noteCommand())
    .addCommand(exportCommand(fileURLToPath(new URL('dist/page/', home))))
    .addCommand(importCommand())
    .addCommand(packCommand())
    .addCommand(gcCommand())
    .addCommand(compactCommand())
    .addCommand(replayCommand())
    .addCommand(labCommand());

  for (const command of reviewCommands()) program.addCommand(command);
  await addCompletion(program, process.argv[2]);
  endUsageErrors(program, process.argv.slice(2));

  await program.parseAsync();
}

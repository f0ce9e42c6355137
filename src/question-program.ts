import { Command } from 'commander';
import { endUsageErrors } from './cli/flags.js';
import { CONTRACTS } from './contract-list.js';
import { savingsCommand } from './own-sessions/commands.js';
import { restoreCommand } from './restore/contract.js';
import { noteCommand, reviewCommands, verifyCommand } from './review/cli/commands.js';

/**
 * Runs a command line that begins with a question about the past, without loading the whole
 * program.
 */
export async function answerOnly(argv: readonly string[]): Promise<void> {
  const program = new Command('palimpsest');
  const review = reviewCommands(CONTRACTS, [savingsCommand()]);
  for (const command of [...review, verifyCommand(), restoreCommand(), noteCommand()]) program.addCommand(command);
  endUsageErrors(program, argv.slice(2));
  await program.parseAsync([...argv]);
}

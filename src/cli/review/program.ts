import { Command } from 'commander';
import { endUsageErrors } from '../flags.js';
import { noteCommand, restoreCommand, reviewCommands, verifyCommand } from './commands.js';

/** Runs a command line whose first word is a question about the past, as the whole program would. */
export async function answerOnly(argv: readonly string[]): Promise<void> {
  const program = new Command('palimpsest');
  for (const command of [...reviewCommands(), verifyCommand(), restoreCommand(), noteCommand()]) program.addCommand(command);
  endUsageErrors(program, argv.slice(2));
  await program.parseAsync([...argv]);
}

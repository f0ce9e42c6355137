import { Command } from 'commander';
import { endUsageErrors } from '../flags.js';
import { reviewCommands } from './commands.js';

/** Runs a command line whose first word is a question about the past, as the whole program would. `counter` is the built program of the thread that counts tokens. */
export async function answerOnly(argv: readonly string[], counter: string): Promise<void> {
  const program = new Command('palimpsest');
  for (const command of reviewCommands(counter)) program.addCommand(command);
  endUsageErrors(program, argv.slice(2));
  await program.parseAsync([...argv]);
}

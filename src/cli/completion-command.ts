import { Argument, Command } from 'commander';

/** Calls that a shell makes, or that print what makes it call. */
const CALLS: ReadonlySet<string> = new Set(['completion', 'complete']);

/** Adds `palimpsest completion <shell>`; what it needs is loaded only when a shell asks. */
export async function addCompletion(program: Command, argv: readonly string[]): Promise<void> {
  if (CALLS.has(argv[2] ?? '')) {
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

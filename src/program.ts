import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Argument, Command } from 'commander';
import { setupCommand, takeBackSetups } from './agents/setup-command.js';
import { addInGroups } from './cli/command-groups.js';
import { exportCommand } from './cli/export.js';
import { endUsageErrors } from './cli/flags.js';
import { forkCommand } from './cli/fork.js';
import { importCommand } from './cli/import.js';
import { nodeCommand } from './cli/node.js';
import { standardOutput } from './cli/output.js';
import { packageVersion } from './cli/package-version.js';
import { mcpCommand, serveCommand } from './cli/serve.js';
import { CONTRACTS } from './contract-list.js';
import { diskCommand, eraseCommand, retainCommand } from './erasure/erase-command.js';
import { gatewayCommand, runCommand, steerCommand } from './gateway/commands.js';
import { labCommand } from './lab/cli/lab.js';
import { replayCommand } from './lab/cli/replay.js';
import { doctorCommand } from './maintenance/doctor.js';
import { journalCommand } from './maintenance/journal.js';
import { type UndoSetup, uninstallCommand } from './maintenance/uninstall-command.js';
import type { Forgetter } from './objects/forgotten.js';
import { costsCommand, openCommand, savingsCommand } from './own-sessions/commands.js';
import { noteCommand, reviewCommands, verifyCommand } from './review/cli/commands.js';
import { undoCommand } from './review/cli/undo.js';
import { watchCommand } from './watch/commands.js';
import type { Companion } from './watch/followed.js';

/** The commands that a shell runs to complete a line, and that print the completion script. */
const COMPLETION_CALLS: ReadonlySet<string> = new Set(['completion', 'complete']);

/** Each restores settings of agents that this program changed. `palimpsest uninstall` runs them. */
const UNDOS: readonly UndoSetup[] = [takeBackSetups];

/** Each runs in the process of `palimpsest watch`, beside the transcripts. */
const companionsOf = (packageFolder: string): readonly Companion[] => [
  async (followed, host) => {
    const at = { env: process.env, home: homedir(), platform: process.platform, cwd: process.cwd() };
    return (await import('./hooks/serve-hooks.js')).hookCompanion({ packageFolder, at })(followed, host);
  },
  async (followed, host) => (await import('./watch/gateway-contexts.js')).gatewayCompanion(followed, host),
];

/** The parts of the program that keep copies of recorded content. `palimpsest erase` uses them. */
const forgetters = async (): Promise<readonly Forgetter[]> => [
  ...(await import('./erasure/forget-files.js')).FORGET_FILES,
  (await import('./lab/replay/forget-replays.js')).FORGET_REPLAYS,
  (await import('./restore/forget-restores.js')).FORGET_RESTORES,
  (await import('./gateway/forget-requests.js')).FORGET_REQUESTS,
  (await import('./text-index/forget-index.js')).FORGET_INDEX,
];

/** Returns `palimpsest completion <shell>`. Its library replaces it when a shell calls it. */
function completionCommand(): Command {
  return new Command('completion')
    .description('print the completion script of a shell')
    .addArgument(new Argument('<shell>', 'the shell').choices(['bash', 'zsh', 'fish', 'powershell']));
}

/** Runs the whole program. `home` is the folder of package.json and the built program. */
export async function runProgram(home: URL): Promise<void> {
  // Declarations of commands are small, and their code loads when they run, because `palimpsest
  // mcp` must start fast.
  const version = packageVersion(home);
  const parts = { version, home, contracts: CONTRACTS };
  const packageFolder = resolve(fileURLToPath(home));
  const argv = process.argv.slice(2);
  const isCompletion = COMPLETION_CALLS.has(argv[0] ?? '');
  const program = new Command('palimpsest')
    .description('See, steer and compare what your coding agents send to their models')
    .version(version)
    // The arguments of `palimpsest run` belong to the agent.
    .enablePositionalOptions();
  const commands = [
    openCommand(parts),
    costsCommand(),
    ...reviewCommands(CONTRACTS, [savingsCommand()]),
    setupCommand(packageFolder),
    watchCommand(companionsOf(packageFolder)),
    mcpCommand(version),
    runCommand(),
    gatewayCommand(),
    steerCommand(),
    serveCommand(parts),
    forkCommand(),
    undoCommand(),
    labCommand(),
    replayCommand(),
    exportCommand(parts),
    importCommand(CONTRACTS),
    doctorCommand(packageFolder),
    nodeCommand(),
    verifyCommand(),
    journalCommand(),
    diskCommand(),
    eraseCommand(forgetters),
    retainCommand(),
    uninstallCommand(UNDOS),
    noteCommand(),
    ...CONTRACTS.flatMap((contract) => contract.commands?.(parts) ?? []),
    ...(isCompletion ? [] : [completionCommand()]),
  ];
  const asksForAll = argv[0] === 'help' && argv[1] === 'all' && argv.length === 2;
  addInGroups(program, commands, { all: asksForAll || isCompletion });
  if (isCompletion) {
    const { default: addTo } = await import('@bomb.sh/tab/commander');
    addTo(program, { completionCommandName: 'completion' });
  }
  endUsageErrors(program, argv);
  if (asksForAll) program.help();
  if (argv.length === 0 && standardOutput({}).isTerminal) {
    await (await import('./own-sessions/home-action.js')).homeAction(version);
    return;
  }
  await program.parseAsync();
}

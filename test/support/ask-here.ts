import { jest } from '@jest/globals';
import { Command } from 'commander';
// Imports what the commands load lazily: Jest does not link all of it on a first import during a
// test.
import '../../src/review/cli/context.js';
import '../../src/bundle/export-bundle.js';
import '../../src/review/ask/review-notes.js';
import '../../src/bundle/import-bundle.js';
import '../../src/host/open-store.js';
import '../../src/node/data-folder.js';
import '../../src/client/session/fork-at.js';
import '../../src/restore/kept-replacements.js';
import '../../src/restore/write-copies.js';
import '../../src/restore/restore-plan.js';
import '../../src/client/session/open-session.js';
import '../../src/contracts/agent-context/export-bundle.js';
import '../../src/contracts/projection/hidden-texts.js';
import '../../src/review/ask/prefix-diff.js';
import '../../src/review/ask/token-count.js';
import '../../src/review/cli/prefix.js';
import '../../src/review/cli/log.js';
import '../../src/review/cli/object.js';
import '../../src/contracts/tyrum/reports.js';
import '../../src/host/open-client.js';
import '../../src/contracts/cortexfs/session-formats.js';
import '../../src/contracts/cortexfs/read-directory.js';
import '../../src/contracts/tyrum/compact-conversation.js';
import '../../src/contracts/tyrum/agent-memory.js';
import '../../src/contracts/tyrum/recall-memory.js';
import '../../src/contracts/tyrum/conversation.js';
import '../../src/page/server/write-page.js';
import { exportCommand } from '../../src/cli/export.js';
import { forkCommand } from '../../src/cli/fork.js';
import '../../src/contracts/cortexfs/collect-garbage.js';
import { importCommand } from '../../src/cli/import.js';
import { CONTRACTS } from '../../src/contract-list.js';
import { costsCommand, openCommand } from '../../src/own-sessions/commands.js';
import '../../src/own-sessions/costs-action.js';
import '../../src/own-sessions/open-action.js';
import { noteCommand, reviewCommands } from '../../src/review/cli/commands.js';
import '../../src/review/cli/note.js';
import '../../src/restore/restore-action.js';
import { PARTS } from './contracts.js';
import type { CliResult } from './run-cli.js';

/**
 * Runs a reviewing command of the source in this process. `runCli` runs the built program in its
 * own process and takes far more CPU time. Standard output is not a terminal. Run one at a time: it
 * replaces the output streams of the process.
 */
export async function askHere(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>> = {},
): Promise<CliResult> {
  const program = new Command('palimpsest').exitOverride();
  for (const command of [
    ...reviewCommands(CONTRACTS),
    exportCommand(PARTS),
    forkCommand(),
    importCommand(CONTRACTS),
    noteCommand(),
    costsCommand(),
    openCommand(PARTS),
    ...CONTRACTS.flatMap(({ commands }) => commands?.(PARTS) ?? []),
  ])
    program.addCommand(command.exitOverride());
  const said = { stdout: '', stderr: '' };
  const kept = { env: process.env, isTTY: process.stdout.isTTY, exitCode: process.exitCode };
  const written = (stream: keyof typeof said) => (text: unknown, done?: unknown) => {
    said[stream] += String(text);
    if (typeof done === 'function') done();
    return true;
  };
  const logged = (stream: keyof typeof said) => (line: unknown) => {
    said[stream] += `${line}\n`;
  };
  const spies = [
    jest.spyOn(process.stdout, 'write').mockImplementation(written('stdout')),
    jest.spyOn(process.stderr, 'write').mockImplementation(written('stderr')),
    jest.spyOn(console, 'log').mockImplementation(logged('stdout')),
    jest.spyOn(console, 'error').mockImplementation(logged('stderr')),
  ];
  process.env = { ...kept.env, ...env };
  process.stdout.isTTY = false;
  process.exitCode = 0;
  try {
    await program.parseAsync(args, { from: 'user' });
    return { code: Number(process.exitCode ?? 0), ...said };
  } finally {
    for (const spy of spies) spy.mockRestore();
    process.env = kept.env;
    process.stdout.isTTY = kept.isTTY;
    process.exitCode = kept.exitCode;
  }
}

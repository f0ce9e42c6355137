import type { Command } from 'commander';
import { CodedError } from '../values/coded-error.js';

/** Exit code of a command line, setting or question that is at fault itself (EX_USAGE of sysexits). */
export const USAGE_EXIT_CODE = 64;

/** A flag or an environment variable cannot be used; the message names it and says what can. */
export class UsageError extends CodedError<'usage'> {
  override readonly name = 'UsageError';

  constructor(message: string, options?: { readonly cause?: unknown }) {
    super('usage', message, options);
  }

  override get isUsage(): boolean {
    return true;
  }
}

/** What a reader makes of a flag or variable; what it throws becomes a UsageError. */
export function readGiven<T>(read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw new UsageError(cause instanceof Error ? cause.message : String(cause), { cause });
  }
}

/** Ends a command line that cannot be read with exit code 64 and a word on where help is; `--help` and `--version` end with 0. Holds for all commands below. */
export function endUsageErrors(command: Command, names: readonly string[] = []): void {
  const path = [...names, command.name()];
  command
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : USAGE_EXIT_CODE))
    .showHelpAfterError(`See ${path.join(' ')} --help`);
  for (const below of command.commands) endUsageErrors(below, path);
}

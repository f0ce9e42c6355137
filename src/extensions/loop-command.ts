import type { Rendering } from './loop/loop-context.js';

/** A request that the user makes with the command `/palimpsest` in a session. */
export interface LoopCommand extends Rendering {
  /** Whether to use our context for model calls. */
  readonly on?: boolean;
  /** Whether the user's next message should begin an epoch of contexts (layout `epoch`). */
  readonly tidy?: boolean;
}

const COMMANDS: ReadonlyMap<string, LoopCommand> = new Map([
  ['on', { on: true }],
  ['off', { on: false }],
  ['tidy', { tidy: true }],
  ['strict on', { strict: true, shortIds: false }],
  ['strict off', { strict: false, shortIds: true }],
  ['short-ids on', { shortIds: true }],
  ['short-ids off', { shortIds: false }],
]);

/** The command's description, which lists its subcommands. */
export const COMMAND_TEXT = `Palimpsest in this session: ${[...COMMANDS.keys()].join(', ')}`;

/**
 * Parses the words after the command.
 * @throws {RangeError} unknown words; the error lists the known ones
 */
export function loopCommand(words: string): LoopCommand {
  const asked = COMMANDS.get(words.trim().split(/\s+/).join(' '));
  if (asked !== undefined) return asked;
  throw new RangeError(
    `/palimpsest has no subcommand ${JSON.stringify(words.trim())}. Use one of: ${[...COMMANDS.keys()].join(', ')}`,
  );
}

import type { Rendering } from '../harness/loop-session.js';

/** What the command `/palimpsest` can be asked for in a session. */
export interface LoopCommand extends Rendering {
  /** Whether the context of its model calls is ours. */
  readonly on?: boolean;
  /** Its next message of the user begins an epoch (layout `epoch`). */
  readonly tidy?: boolean;
}

const COMMANDS: ReadonlyMap<string, LoopCommand> = new Map([
  ['on', { on: true }],
  ['off', { on: false }],
  ['tidy', { tidy: true }],
  ['strict on', { strict: true }],
  ['strict off', { strict: false }],
  ['short-ids on', { shortIds: true }],
  ['short-ids off', { shortIds: false }],
]);

/** The description of the command, with everything that it can be asked for. */
export const COMMAND_TEXT = `Palimpsest in this session: ${[...COMMANDS.keys()].join(', ')}`;

/** What the words after the command ask for. @throws {RangeError} for words that mean nothing, naming those that do */
export function loopCommand(words: string): LoopCommand {
  const asked = COMMANDS.get(words.trim().split(/\s+/).join(' '));
  if (asked !== undefined) return asked;
  throw new RangeError(`/palimpsest does not know ${JSON.stringify(words.trim())}; it knows: ${[...COMMANDS.keys()].join(', ')}`);
}

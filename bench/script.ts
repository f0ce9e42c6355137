import { dirname } from 'node:path';

/** One event of a scripted session. */
export type Action =
  | { readonly kind: 'message'; readonly role: 'user' | 'assistant'; readonly text: string }
  | {
      readonly kind: 'call';
      readonly tool: 'read' | 'ls' | 'grep';
      readonly args: Readonly<Record<string, string>>;
      readonly turn: number;
    };

const CALLS_A_TURN = 10;

/** Returns a call. Three of five calls read, mostly unseen files; one lists, one searches. */
function call(
  folders: readonly (readonly string[])[],
  n: number,
): Pick<Extract<Action, { kind: 'call' }>, 'tool' | 'args'> {
  const files = folders.flat();
  const folder = dirname(folders[n % folders.length]?.[0] ?? '');
  if (n % 5 === 1) return { tool: 'ls', args: { path: folder } };
  if (n % 5 === 3) return { tool: 'grep', args: { pattern: `needle${n % 40}\\b`, path: folder } };
  // Every fourth call reads a file that was read a little earlier.
  const at = n % 4 === 0 && n > 20 ? n - 20 : n;
  return { tool: 'read', args: { path: files[(at * 7) % files.length] ?? '' } };
}

/**
 * Yields a session of `calls` calls: turns of a user's message, ten calls and an answer.
 * Deterministic.
 */
export function* script(folders: readonly (readonly string[])[], calls: number): Generator<Action> {
  for (let n = 0; n < calls; n++) {
    const turn = Math.floor(n / CALLS_A_TURN);
    if (n % CALLS_A_TURN === 0)
      yield { kind: 'message', role: 'user', text: `Turn ${turn}: ${'please look into this part of it. '.repeat(6)}` };
    yield { kind: 'call', turn, ...call(folders, n) };
    if (n % CALLS_A_TURN === CALLS_A_TURN - 1)
      yield {
        kind: 'message',
        role: 'assistant',
        text: `Turn ${turn}: ${'this is what I found and what it means. '.repeat(12)}`,
      };
  }
}

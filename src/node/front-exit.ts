import { NodeError, type NodeErrorCode } from './errors.js';
import { lastLines } from './run-process.js';

/** How the JVM ended and what it said last. */
export interface FrontExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The last lines of its log. */
  readonly tail: string;
}

/** What the supervisor does after the JVM ended. */
export type ExitVerdict =
  | { readonly kind: 'clean' }
  | { readonly kind: 'crashed'; readonly reason: string }
  | { readonly kind: 'failed'; readonly error: NodeError };

const FRONT_CODES: Readonly<Record<string, { readonly code: NodeErrorCode; readonly nextStep: string }>> = {
  'corrupt-data': {
    code: 'data-corrupt',
    nextStep:
      'Restore the data folder from a backup. If only its index is damaged, remove the folder `index` in it: the node rebuilds that from the log.',
  },
  'newer-data': { code: 'data-newer', nextStep: 'Use the newer version that wrote it, or name another folder with --data.' },
  'no-space': { code: 'no-space', nextStep: 'Free some space on that disk, then start the node again.' },
  'bind-failed': { code: 'start-failed', nextStep: 'Check that the folder of the socket is writable and belongs to you.' },
  'config-invalid': { code: 'start-failed', nextStep: 'Install the package again.' },
  'start-failed': { code: 'start-failed', nextStep: 'The log says more: palimpsest node logs' },
};

function failure(code: NodeErrorCode, dataDir: string, said: string, nextStep: string): ExitVerdict {
  return { kind: 'failed', error: new NodeError(code, `The node of ${dataDir} did not start: ${said.trim()}. ${nextStep}`) };
}

/**
 * Judges the end of a JVM: clean (asked to, or idle), crashed (worth another start), or failed (the next start would fail alike).
 * One that ends abnormally before it was ever ready has failed, except by a signal, which says nothing about the next start.
 */
export function judgeFrontExit(exit: FrontExit, context: { readonly wasReady: boolean; readonly dataDir: string }): ExitVerdict {
  if (exit.code === 0) return { kind: 'clean' };
  const said = [...exit.tail.matchAll(/^front: ([a-z-]+): (.*)$/gm)].at(-1);
  const known = said?.[1] === undefined ? undefined : FRONT_CODES[said[1]];
  if (exit.code === 70 && known !== undefined) return failure(known.code, context.dataDir, said?.[2] ?? '', known.nextStep);
  if (exit.code === 75) {
    return failure(
      'locked',
      context.dataDir,
      'another process has its database open',
      'Stop that node (palimpsest node stop), or name another folder with --data.',
    );
  }
  if (/No space left on device/.test(exit.tail) && !context.wasReady) {
    return failure('no-space', context.dataDir, 'no space left on device', 'Free some space on that disk, then start the node again.');
  }
  const how = exit.signal === null ? `exit code ${exit.code}` : `signal ${exit.signal}`;
  if (exit.code === 3) {
    const reason = 'out of memory';
    return context.wasReady
      ? { kind: 'crashed', reason }
      : failure('out-of-memory', context.dataDir, 'it ran out of memory', 'Free some memory, or give the node more with --heap.');
  }
  if (context.wasReady || exit.signal !== null) return { kind: 'crashed', reason: how };
  return failure(
    'start-failed',
    context.dataDir,
    `${how}; it said last:\n${lastLines(exit.tail, 8)}\n`,
    'The log says more: palimpsest node logs',
  );
}

/** How long to wait before the n-th start in a row (n from 1): at once after a first crash, then doubling up to 30 s. */
export function restartDelayMs(crashesInARow: number): number {
  return crashesInARow <= 1 ? 0 : Math.min(30_000, 500 * 2 ** (crashesInARow - 2));
}

import { spawn } from 'node:child_process';
import picocolors from 'picocolors';

/** What a stream is, as far as it matters for what is written to it. */
export interface Target {
  readonly isTerminal: boolean;
  readonly rows: number;
  readonly env: NodeJS.ProcessEnv;
  /** Whether a pager may be used. */
  readonly pager: boolean;
}

/** The colours of human output; each leaves the text as it is where there are none. */
export type Colours = ReturnType<typeof picocolors.createColors>;

/** Standard output as it is now. */
export function standardOutput(flags: { readonly pager?: boolean }): Target {
  const { isTTY = false, rows = 24 } = process.stdout;
  return { isTerminal: isTTY, rows, env: process.env, pager: flags.pager ?? true };
}

const isSet = (value: string | undefined): boolean => value !== undefined && value !== '';

/** Colours on a terminal only; NO_COLOR takes them away, FORCE_COLOR gives them. */
export function coloursFor({ isTerminal, env }: Pick<Target, 'isTerminal' | 'env'>): Colours {
  if (isSet(env.NO_COLOR)) return picocolors.createColors(false);
  if (isSet(env.FORCE_COLOR)) return picocolors.createColors(env.FORCE_COLOR !== '0');
  return picocolors.createColors(isTerminal && env.TERM !== 'dumb');
}

/** The command that shows long output, as git chooses it; undefined for none. */
export function pagerCommand({ isTerminal, pager, env }: Target): string | undefined {
  if (!isTerminal || !pager) return undefined;
  const command = env.PALIMPSEST_PAGER ?? env.PAGER ?? 'less';
  return command === '' || command === 'cat' ? undefined : command;
}

function writeAll(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.once('error', (error: NodeJS.ErrnoException) => (error.code === 'EPIPE' ? resolve() : reject(error)));
    process.stdout.write(text, () => resolve());
  });
}

/**
 * Resolves to false when the pager could not be started. Ctrl-C reaches the pager too, which knows what to do with it: were this process gone before it, the
 * pager would be left with a terminal that the shell reads as well.
 */
function page(command: string, text: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  const leaveToPager = (): void => undefined;
  process.on('SIGINT', leaveToPager);
  return new Promise<boolean>((resolve) => {
    const child = spawn(command, { shell: true, stdio: ['pipe', 'inherit', 'inherit'], env: { LESS: 'FRX', ...env } });
    child.once('error', () => resolve(false));
    child.once('close', (code) => resolve(code !== 126 && code !== 127));
    // Whoever leaves the pager early does not want the rest.
    child.stdin.on('error', () => undefined);
    child.stdin.end(text);
  }).finally(() => process.removeListener('SIGINT', leaveToPager));
}

/** Writes text for people: through the pager where it is longer than the terminal. */
export async function writeOutput(text: string, target: Target): Promise<void> {
  const whole = text === '' || text.endsWith('\n') ? text : `${text}\n`;
  const command = pagerCommand(target);
  const isLong = command !== undefined && whole.split('\n').length > target.rows;
  if (isLong && (await page(command, whole, target.env))) return;
  await writeAll(whole);
}

/** Writes text as it is: no line end is added and nothing is escaped. */
export function writeExactly(text: string): Promise<void> {
  return writeAll(text);
}

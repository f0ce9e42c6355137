import picocolors from 'picocolors';
import { CodedError } from '../values/coded-error.js';
import { codeOf, messageOf } from '../values/thrown.js';

/** Exit code when the command line, a setting or the question itself is at fault (EX_USAGE of sysexits). */
export const USAGE_EXIT_CODE = 64;

/** What decides how a stream is written to. */
export interface Target {
  readonly isTerminal: boolean;
  readonly rows: number;
  readonly env: NodeJS.ProcessEnv;
  /** Whether a pager may be used. */
  readonly pager: boolean;
}

/** The colours of human output; without colours each returns its text unchanged. */
export type Colours = ReturnType<typeof picocolors.createColors>;

/** Standard output as it is now. */
export function standardOutput(flags: { readonly pager?: boolean }): Target {
  const { isTTY = false, rows = 24 } = process.stdout;
  return { isTerminal: isTTY, rows, env: process.env, pager: flags.pager ?? true };
}

const isSet = (value: string | undefined): boolean => value !== undefined && value !== '';

/** The colours for a stream: on a terminal only. NO_COLOR turns them off, FORCE_COLOR turns them on. */
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

/** Lets a program end with 1 and a line on stderr where its output could not be written, by whatever means; a reader who has gone is no failure. Only entries call it. */
export function endOnLostOutput(): void {
  process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    if (code === 'EPIPE') return;
    // Whoever waited for the write may say it first.
    setImmediate(() => {
      if ((process.exitCode ?? 0) !== 0) return;
      process.exitCode = 1;
      console.error(`palimpsest: ${escapedText(message)}`);
    });
  });
}

/** Writes text as it is: no line end is added and nothing is escaped. Resolves when it is written, or when the reader has gone; rejects where it could not be written, as on a full disk. */
export function writeExactly(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const ended = (error?: NodeJS.ErrnoException | null): void => {
      if (error === undefined || error === null || error.code === 'EPIPE') resolve();
      else reject(error);
    };
    process.stdout.once('error', ended);
    process.stdout.write(text, (error) => {
      // An error comes as an event too, which somebody has to take.
      if (error === undefined || error === null) process.stdout.off('error', ended);
      ended(error);
    });
  });
}

/**
 * Shows text in a pager; resolves to false when the pager could not be started. This process ignores Ctrl-C meanwhile: the pager gets it too, and if this
 * process ended first, the pager and the shell would read from the terminal together.
 */
async function page(command: string, text: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  const { spawn } = await import('node:child_process');
  const leaveToPager = (): void => undefined;
  process.on('SIGINT', leaveToPager);
  return new Promise<boolean>((resolve) => {
    const child = spawn(command, { shell: true, stdio: ['pipe', 'inherit', 'inherit'], env: { LESS: 'FRX', ...env } });
    child.once('error', () => resolve(false));
    child.once('close', (code) => resolve(code !== 126 && code !== 127));
    // A reader who leaves the pager early does not want the rest.
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
  await writeExactly(whole);
}

const REPORT_EVERY_MS = 100;

/** One line of standard error for the progress of long work: `show` writes it anew, at most ten times a second, `end` removes it. Nothing where nobody looks. */
export interface ProgressLine {
  show(text: string): void;
  end(): void;
}

/** The progress line of this process: of a terminal only. */
export function progressLine(): ProgressLine {
  const { stderr } = process;
  if (!stderr.isTTY) return { show: () => undefined, end: () => undefined };
  let last = 0;
  return {
    show: (text) => {
      if (Date.now() - last < REPORT_EVERY_MS) return;
      last = Date.now();
      stderr.write(`\r\u001b[K${escapedLine(text)}`);
    },
    end: () => {
      stderr.write('\r\u001b[K');
    },
  };
}

/** A whole number with commas between its thousands; the engine's own formats take a hundredth of a second to load. */
export const grouped = (whole: number): string => String(whole).replace(/\B(?=(?:\d{3})+$)/g, ',');

const WIDEST = 80;
/** Rows that the width of a column is taken from: one wide cell far below must not fill the whole table with spaces. */
const MEASURED_ROWS = 1_000;

/** Rows below their headings. A column is as wide as the widest of its first cells, up to 80 characters; the last column is never padded. */
export function columns(headings: readonly string[], rows: readonly (readonly string[])[], colours: Colours): readonly string[] {
  const measured = rows.slice(0, MEASURED_ROWS);
  const widths = headings.map((heading, i) => {
    const widest = measured.reduce((most, row) => Math.max(most, row[i]?.length ?? 0), heading.length);
    return Math.min(WIDEST, widest);
  });
  const line = (cells: readonly string[]): string =>
    cells.map((cell, i) => (i === cells.length - 1 ? cell : cell.padEnd(widths[i] ?? 0))).join('  ');
  return [colours.bold(line(headings)), ...rows.map(line)];
}

/** Characters that a terminal acts on or that hide others: C0 and C1 controls, writing direction marks, line and paragraph separators. */
const CONTROL = /(?![\n\t])[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}\ufeff]/gu;

function escaped(char: string): string {
  if (char === '\r') return '\\r';
  const code = char.charCodeAt(0);
  return code <= 0xff ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
}

/** Text for a terminal: control characters become escapes; line ends and tabs stay. */
export function escapedText(text: string): string {
  return text.toWellFormed().replace(CONTROL, escaped);
}

/** Text for one line of a terminal: line ends and tabs become escapes too. */
export function escapedLine(text: string): string {
  return escapedText(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t');
}

/** The first line of a text, cut to a length, with a mark where there is more. */
export function firstLine(text: string, most: number): string {
  const [line = ''] = text.trimStart().split('\n', 1);
  const cut = line.length > most ? line.slice(0, most).replace(/[\ud800-\udbff]$/, '') : line;
  return `${escapedLine(cut)}${cut.length < text.trim().length ? ' …' : ''}`;
}

/** JSON of a value in one line, with control characters as JSON escapes: a terminal does not act on it, and it parses to the same value. */
export function escapedJson(value: object): string {
  return JSON.stringify(value).replace(CONTROL, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/**
 * Runs the action of a command. If it throws, one line goes to stderr (with `--json` one object to stdout) and the exit code becomes 1, or 64 where the flags,
 * the settings or the question are at fault. What a message quotes of a recording or the database is escaped.
 */
export async function reportFailure(flags: { readonly json?: boolean }, action: () => Promise<void>): Promise<void> {
  try {
    await action();
  } catch (error) {
    const message = messageOf(error);
    const code = codeOf(error) ?? 'error';
    const tell = (): void => console.error(`palimpsest: ${escapedText(message)}`);
    // Where standard output cannot be written to, which may be the failure itself, the other one has it.
    if (flags.json) await writeExactly(`${escapedJson({ error: { code, message } })}\n`).catch(tell);
    else tell();
    process.exitCode = error instanceof CodedError && error.isUsage ? USAGE_EXIT_CODE : 1;
  }
}

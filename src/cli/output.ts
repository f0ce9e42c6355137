import picocolors from 'picocolors';
import { CodedError } from '../values/coded-error.js';
import { codeOf, messageOf } from '../values/thrown.js';

/**
 * Exit code when the command line, a setting or the question itself is at fault (EX_USAGE of
 * sysexits).
 */
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

/**
 * The colours for a stream: on a terminal only. NO_COLOR turns them off, FORCE_COLOR turns them on.
 */
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

/**
 * Lets a program end with 1 and a line on stderr where its output could not be written, by whatever
 * means; a reader who has gone is no failure. Only entries call it.
 */
export function endOnLostOutput(): void {
  process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    if (code === 'EPIPE') return;
    // Whoever waited for the write may say it first.
    setImmediate(() => {
      if ((process.exitCode ?? 0) !== 0) return;
      process.exitCode = 1;
      tell(`palimpsest: ${message}`);
    });
  });
}

/**
 * Resolves when a text is written, or when the reader has gone; rejects where it could not be
 * written, as on a full disk.
 */
function written(text: string): Promise<void> {
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
 * Writes text as it is, to a terminal with its control characters as escapes; no line end is added.
 * Resolves and rejects as the writing does.
 */
export function writeExactly(text: string): Promise<void> {
  return written(process.stdout.isTTY ? escapedText(text) : text);
}

/**
 * Shows text in a pager; resolves to false when the pager could not be started. This process
 * ignores Ctrl-C meanwhile: the pager gets it too, and if this
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

/** The styles that `coloursFor` makes; one that hides text is not among them. */
const STYLE = new RegExp(String.raw`^${String.fromCharCode(0x1b)}\[(?:[0-79]|2[2-79]|3[0-79]|4[0-79]|9[0-7]|10[0-7])m`);

/**
 * Writes lines for people: through the pager where they are longer than the terminal. Whatever a
 * line holds stays in it: its controls become escapes, but for styles of `coloursFor`.
 */
export async function writeOutput(lines: readonly string[], target: Target): Promise<void> {
  const style = coloursFor(target).isColorSupported ? STYLE : undefined;
  const text = lines.map((line) => escapedText(line, style).replaceAll('\n', '\\n')).join('\n');
  const whole = text === '' || text.endsWith('\n') ? text : `${text}\n`;
  const command = pagerCommand(target);
  const isLong = command !== undefined && whole.split('\n').length > target.rows;
  if (isLong && (await page(command, whole, target.env))) return;
  await written(whole);
}

const REPORT_EVERY_MS = 100;

/**
 * One line of standard error for the progress of long work: `show` writes it anew, at most ten
 * times a second, `end` removes it. Nothing where nobody looks.
 */
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

/**
 * A whole number with commas between its thousands; the engine's own formats take a hundredth of a
 * second to load.
 */
export const grouped = (whole: number): string => String(whole).replace(/\B(?=(?:\d{3})+$)/g, ',');

const WIDEST = 80;
/**
 * Rows that the width of a column is taken from: one wide cell far below must not fill the whole
 * table with spaces.
 */
const MEASURED_ROWS = 1_000;

/**
 * Rows below their headings. A column is as wide as the widest of its first cells, up to 80
 * characters; the last column is never padded.
 */
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

/**
 * Characters that a terminal acts on or that hide others: C0 and C1 controls, writing direction
 * marks, line and paragraph separators.
 */
const CONTROL = /(?![\n\t])[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}\ufeff]/gu;

function escaped(char: string): string {
  if (char === '\r') return '\\r';
  const code = char.charCodeAt(0);
  return code <= 0xff ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
}

/**
 * Text for a terminal: control characters become escapes; line ends, tabs and what `kept` matches
 * stay.
 */
export function escapedText(text: string, kept?: RegExp): string {
  return text
    .toWellFormed()
    .replace(CONTROL, (char, at: number, whole: string) => (kept?.test(whole.slice(at, at + 8)) === true ? char : escaped(char)));
}

/** The lines of a recorded text for a terminal, without styles of its own. */
export function textLines(text: string): readonly string[] {
  return escapedText(text).split('\n');
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

/**
 * JSON of a value in one line, with control characters as JSON escapes: a terminal does not act on
 * it, and it parses to the same value.
 */
export function escapedJson(value: object): string {
  return JSON.stringify(value).replace(CONTROL, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Writes a value as one line of JSON; resolves once it is written. */
export const writeJson = (value: object): Promise<void> => writeExactly(`${escapedJson(value)}\n`);

/** Prints lines to standard output; whatever a line holds stays in it. */
export function printLines(lines: readonly string[]): void {
  console.log(lines.map(escapedLine).join('\n'));
}

/** Prints a text of several lines to standard output. */
export function printText(text: string): void {
  console.log(escapedText(text));
}

/** Prints a value to standard output as one line of JSON. */
export function printJson(value: object): void {
  console.log(escapedJson(value));
}

/** Prints a message to standard error; it may have several lines. */
export function tell(message: string): void {
  console.error(escapedText(message));
}

/** What was asked for is not there to be shown, though nothing failed. */
const NOT_THERE_EXIT_CODE = 3;

/**
 * Runs the action of a command. If it throws, one line goes to stderr (with `--json` one object to
 * stdout) and the exit code becomes 1, or 64 where the flags,
 * the settings or the question are at fault, or 3 where a context was not seen by Palimpsest. What a
 * message quotes of a recording or the database is escaped.
 */
export async function reportFailure(flags: { readonly json?: boolean }, action: () => Promise<void>): Promise<void> {
  try {
    await action();
  } catch (error) {
    const message = messageOf(error);
    const code = codeOf(error) ?? 'error';
    const say = (): void => tell(`palimpsest: ${message}`);
    // Where standard output cannot be written to, which may be the failure itself, the other one
    // has it.
    if (flags.json) await writeJson({ error: { code, message } }).catch(say);
    else say();
    const isUsage = error instanceof CodedError && error.isUsage;
    process.exitCode = isUsage ? USAGE_EXIT_CODE : code === 'not-seen' ? NOT_THERE_EXIT_CODE : 1;
  }
}

import picocolors from 'picocolors';
import { CodedError } from '../values/coded-error.js';
import { codeOf, messageOf } from '../values/thrown.js';

/** Exit code for an invalid command line, setting or question (EX_USAGE of sysexits). */
export const USAGE_EXIT_CODE = 64;

/** An output stream, and how text may be written to it. */
export interface Target {
  readonly isTerminal: boolean;
  readonly rows: number;
  /** The terminal's width in characters. Undefined if the output is not a terminal. */
  readonly width?: number | undefined;
  readonly env: NodeJS.ProcessEnv;
  /** Whether a pager may be used. */
  readonly pager: boolean;
}

/**
 * The colours of output for people. If colours are off, each function returns its text unchanged.
 */
export type Colours = ReturnType<typeof picocolors.createColors>;

/** Returns what standard output currently is. */
export function standardOutput(flags: { readonly pager?: boolean }): Target {
  const { isTTY = false, rows = 24, columns = 0 } = process.stdout;
  // A terminal whose size is unknown reports 0 columns.
  const width = isTTY && columns > 0 ? { width: columns } : {};
  return { isTerminal: isTTY, rows, env: process.env, pager: flags.pager ?? true, ...width };
}

const isSet = (value: string | undefined): boolean => value !== undefined && value !== '';

/**
 * Returns the colours for a stream. Only terminals get colours, unless NO_COLOR or FORCE_COLOR
 * decides otherwise.
 */
export function coloursFor({ isTerminal, env }: Pick<Target, 'isTerminal' | 'env'>): Colours {
  if (isSet(env.NO_COLOR)) return picocolors.createColors(false);
  if (isSet(env.FORCE_COLOR)) return picocolors.createColors(env.FORCE_COLOR !== '0');
  return picocolors.createColors(isTerminal && env.TERM !== 'dumb');
}

/** Returns the command of a pager for long output, by the rules of git. Undefined for no pager. */
export function pagerCommand({ isTerminal, pager, env }: Target): string | undefined {
  if (!isTerminal || !pager) return undefined;
  const command = env.PALIMPSEST_PAGER ?? env.PAGER ?? 'less';
  return command === '' || command === 'cat' ? undefined : command;
}

/**
 * Makes the program exit with 1 and a line on stderr if its output cannot be written. If the reader
 * has closed the pipe, that is not an error. Only entry points call this.
 */
export function endOnLostOutput(): void {
  process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    if (code === 'EPIPE') return;
    // Code that waits for the write gets the chance to report the error first.
    setImmediate(() => {
      if ((process.exitCode ?? 0) !== 0) return;
      process.exitCode = 1;
      tell(`palimpsest: ${message}`);
    });
  });
}

/**
 * Resolves once a text has been written, or the reader has closed the pipe. Rejects if the text
 * cannot be written, for example to a full disk.
 */
function written(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const ended = (error?: NodeJS.ErrnoException | null): void => {
      if (error === undefined || error === null || error.code === 'EPIPE') resolve();
      else reject(error);
    };
    process.stdout.once('error', ended);
    process.stdout.write(text, (error) => {
      // The stream also emits the error as an event, for which it needs a listener.
      if (error === undefined || error === null) process.stdout.off('error', ended);
      ended(error);
    });
  });
}

/**
 * Writes a text as it is, without adding a line end. On a terminal, control characters are escaped.
 * Resolves or rejects when the write does.
 */
export function writeExactly(text: string): Promise<void> {
  return written(process.stdout.isTTY ? escapedText(text) : text);
}

/**
 * Shows a text in a pager. Resolves to false if the pager cannot be started. While the pager runs,
 * this process ignores Ctrl-C. The pager gets the key, too. If this process ended first, pager and
 * shell would both read from the terminal.
 */
async function page(command: string, text: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  const { spawn } = await import('node:child_process');
  const leaveToPager = (): void => undefined;
  process.on('SIGINT', leaveToPager);
  return new Promise<boolean>((resolve) => {
    const child = spawn(command, { shell: true, stdio: ['pipe', 'inherit', 'inherit'], env: { LESS: 'FRX', ...env } });
    child.once('error', () => resolve(false));
    child.once('close', (code) => resolve(code !== 126 && code !== 127));
    // The user may quit the pager before it has read everything.
    child.stdin.on('error', () => undefined);
    child.stdin.end(text);
  }).finally(() => process.removeListener('SIGINT', leaveToPager));
}

/** Matches the styles of `coloursFor`. Styles that hide text are not matched. */
const STYLE = new RegExp(String.raw`^${String.fromCharCode(0x1b)}\[(?:[0-79]|2[2-79]|3[0-79]|4[0-79]|9[0-7]|10[0-7])m`);

/**
 * Writes lines for people, in a pager if they do not fit the terminal. Control characters are
 * escaped, except in the styles of `coloursFor`.
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

/**
 * Asks a question on the terminal. Returns true only if the answer is yes. Undefined if stdin or
 * stdout is not a terminal.
 */
export async function askYes(question: string): Promise<boolean | undefined> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return undefined;
  const { createInterface } = await import('node:readline/promises');
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  // Ctrl-D and Ctrl-C end the question, which counts as an empty answer.
  const ended = new Promise<string>((resolve) => terminal.once('close', () => resolve('')));
  try {
    const answer = await Promise.race([terminal.question(`${escapedLine(question)} [y/N] `), ended]);
    return /^\s*y(?:es)?\s*$/i.test(answer);
  } finally {
    terminal.close();
  }
}

const REPORT_EVERY_MS = 100;

/**
 * A progress line on stderr. `show` writes it at most ten times a second, and `end` removes it.
 * Without a terminal, nothing is shown.
 */
export interface ProgressLine {
  show(text: string): void;
  end(): void;
}

/** Returns the progress line of this process. It shows nothing unless stderr is a terminal. */
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

/** Formats a whole number with thousands separators. Node's own formatter takes 10 ms to load. */
export const grouped = (whole: number): string => String(whole).replace(/\B(?=(?:\d{3})+$)/g, ',');

const WIDEST = 80;
/**
 * Number of rows that determine a column's width. A wide cell further down must not widen the whole
 * table.
 */
const MEASURED_ROWS = 1_000;

/**
 * Formats rows below their headings. A column is as wide as the widest of its first cells, and at
 * most 80 characters. The last column is not padded.
 */
export function columns(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  colours: Colours,
): readonly string[] {
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
 * Matches characters that control a terminal or hide other characters: C0 and C1 controls, marks of
 * writing direction, and separators of lines and paragraphs.
 */
const CONTROL = /(?![\n\t])[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}\ufeff]/gu;

function escaped(char: string): string {
  if (char === '\r') return '\\r';
  const code = char.charCodeAt(0);
  return code <= 0xff ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
}

/**
 * Escapes the control characters in a text for a terminal. Line endings, tabs and matches of `kept`
 * are not escaped.
 */
export function escapedText(text: string, kept?: RegExp): string {
  return text
    .toWellFormed()
    .replace(CONTROL, (char, at: number, whole: string) =>
      kept?.test(whole.slice(at, at + 8)) === true ? char : escaped(char),
    );
}

/** Returns the lines of a recorded text for a terminal. The text's own styles are escaped. */
export function textLines(text: string): readonly string[] {
  return escapedText(text).split('\n');
}

/** Escapes a text for a single line of a terminal. Line endings and tabs are escaped, too. */
export function escapedLine(text: string): string {
  return escapedText(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t');
}

/** Returns the first line of a text, cut to a maximum length. A mark shows that more follows. */
export function firstLine(text: string, most: number): string {
  const [line = ''] = text.trimStart().split('\n', 1);
  const cut = line.length > most ? line.slice(0, most).replace(/[\ud800-\udbff]$/, '') : line;
  return `${escapedLine(cut)}${cut.length < text.trim().length ? ' …' : ''}`;
}

/**
 * Formats a value as one line of JSON with escaped control characters. A terminal does not
 * interpret it, and it parses to the same value.
 */
export function escapedJson(value: object): string {
  return JSON.stringify(value).replace(CONTROL, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Writes a value as one line of JSON. Resolves once it has been written. */
export const writeJson = (value: object): Promise<void> => writeExactly(`${escapedJson(value)}\n`);

/** Prints lines to stdout with escaped control characters. */
export function printLines(lines: readonly string[]): void {
  console.log(lines.map(escapedLine).join('\n'));
}

/** Prints a text of several lines to stdout. */
export function printText(text: string): void {
  console.log(escapedText(text));
}

/** Prints a value to stdout as one line of JSON. */
export function printJson(value: object): void {
  console.log(escapedJson(value));
}

/** Prints a message of one or more lines to stderr. */
export function tell(message: string): void {
  console.error(escapedText(message));
}

/** Exit code if what the user asked for does not exist. */
const NOT_THERE_EXIT_CODE = 3;

/**
 * Runs the action of a command. If it throws, writes one line to stderr, or with `--json` one
 * object to stdout. The exit code is then 64 for invalid flags, settings or questions. It is 3 for
 * a context that Palimpsest did not see, and otherwise 1. Text from recordings or the database is
 * escaped.
 */
export async function reportFailure(flags: { readonly json?: boolean }, action: () => Promise<void>): Promise<void> {
  try {
    await action();
  } catch (error) {
    const message = messageOf(error);
    const code = codeOf(error) ?? 'error';
    const say = (): void => tell(`palimpsest: ${message}`);
    // The failure may be that stdout cannot be written. Then the message goes to stderr.
    if (flags.json) await writeJson({ error: { code, message } }).catch(say);
    else say();
    const isUsage = error instanceof CodedError && error.isUsage;
    process.exitCode = isUsage ? USAGE_EXIT_CODE : code === 'not-seen' ? NOT_THERE_EXIT_CODE : 1;
  }
}

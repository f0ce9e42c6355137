import { type LineGutter, type NumberedLines, numberedLines, outputLines } from '../../../foreign-tools/numbered-lines.js';
import { defined } from '../../../values/defined.js';
import type { ShownFile } from '../neutral-session.js';

type Moment = ShownFile['moment'];

/**
 * Lines of a file as evidence. They are the whole file where they go from its first line to its last; then every line has its end, the last one too, which
 * no numbered view tells.
 */
export function shownLines(path: string, { lines, first }: NumberedLines, moment: Moment, total: number | undefined): ShownFile {
  const whole = first === 1 && total !== undefined && lines.length === total;
  return {
    path,
    moment,
    text: whole ? lines.map((line) => `${line}\n`).join('') : lines.join('\n'),
    whole,
    start_line: first,
    ...defined({ total_lines: total }),
  };
}

/** All of a file as evidence. */
export function wholeFile(path: string, text: string, moment: Moment): ShownFile {
  return { path, moment, text, whole: true };
}

const WINDOW = /^\[File: (.+) \((\d+) lines total(?: after edit)?\)\]$/;
const ABOVE = /^\((\d+) more lines? above\)$|^\(this is the beginning of the file\)$/;
/** How many lines in front of a window are looked at for what it is of. */
const LEAD_LINES = 3;

/**
 * The windows on files (`[File: P (N lines total)]`, a line number on each line) in the output of SWE-agent's commands and of their descendants. The window
 * of an edit that was not made is none; the one of the file as it was before is told by its moment.
 */
export function fileWindows(output: string): readonly ShownFile[] {
  const lines = outputLines(output);
  const windows: ShownFile[] = [];
  for (const [at, line] of lines.entries()) {
    const header = WINDOW.exec(line);
    if (header?.[1] === undefined) continue;
    const lead = lines.slice(Math.max(0, at - LEAD_LINES), at).join('\n');
    if (/would have looked/.test(lead)) continue;
    const from = at + (ABOVE.test(lines[at + 1] ?? '') ? 2 : 1);
    const shown = numberedLines(lines, from, 'colon') ?? numberedLines(lines, from, 'bar');
    if (shown === undefined) continue;
    windows.push(shownLines(header[1], shown, /original code before/.test(lead) ? 'before' : 'after', Number(header[2])));
  }
  return windows;
}

const NUMBERED_RESULT = /running `cat -n` on (?:a snippet of )?(.+?)(?:, excluding hidden items)?:$/;

/**
 * What an editor's answer shows of a file with `cat -n`: of a `view` all of it, unless lines were asked for or the answer was cut; of an edit the lines around
 * it, afterwards.
 */
export function numberedAnswer(
  output: string,
  asked: { readonly path?: string | undefined; readonly whole: boolean },
): readonly ShownFile[] {
  const lines = outputLines(output);
  const at = lines.findIndex((line) => NUMBERED_RESULT.test(line));
  if (at < 0) return [];
  const path = asked.path ?? NUMBERED_RESULT.exec(lines[at] ?? '')?.[1];
  const shown = numberedLines(lines, at + 1, 'tab');
  if (shown === undefined || path === undefined || path === '') return [];
  const cut = /<response clipped>|<NOTE>|\[\.\.\.? ?\d+ (?:characters|lines)/i.test(lines.slice(at + 1 + shown.lines.length).join('\n'));
  const trimmed = asked.whole ? withoutPhantomLine(shown) : shown;
  return [shownLines(path, trimmed, 'after', asked.whole && !cut ? trimmed.lines.length : undefined)];
}

/** The editor splits a text at its line ends, so that a whole text with a last line end has one empty line more. */
function withoutPhantomLine(shown: NumberedLines): NumberedLines {
  return shown.lines.length > 1 && shown.lines.at(-1) === '' ? { ...shown, lines: shown.lines.slice(0, -1) } : shown;
}

const FOLDER_VIEW = /^Here's the files and directories up to \d+ levels deep in (.+?)(?:, excluding hidden items)?:$/;

/** Whether a name of a listing without marks is certainly not the folder of another one, and looks like a file's. */
const looksLikeFile = (path: string, all: readonly string[]): boolean =>
  /[^/\\]\.[^/\\]+$/.test(path) && !all.some((other) => other.startsWith(`${path}/`));

/**
 * The paths that an editor lists of a folder. Where it marks folders by a slash at the end, all of them with their marks; where it does not, those that are
 * files by their names.
 */
export function listedByEditor(output: string): readonly string[] | undefined {
  const lines = outputLines(output);
  const at = lines.findIndex((line) => FOLDER_VIEW.test(line));
  if (at < 0) return undefined;
  const end = lines.findIndex((line, index) => index > at && line.trim() === '');
  const names = lines.slice(at + 1, end < 0 ? undefined : end).filter((line) => line.startsWith('/') || /^[A-Za-z]:[\\/]/.test(line));
  return names.some((name) => name.endsWith('/')) ? names : names.filter((name) => looksLikeFile(name, names));
}

/** A gutter's view of a piece of text that is nothing else: every line of it numbered. */
export function numberedText(text: string, gutter: LineGutter): NumberedLines | undefined {
  const ended = text.endsWith('\n') ? text.slice(0, -1) : text;
  const lines = outputLines(ended);
  const shown = numberedLines(lines, 0, gutter);
  return shown !== undefined && shown.lines.length === lines.length ? shown : undefined;
}

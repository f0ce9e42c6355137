import { posix } from 'node:path';
import {
  type LineGutter,
  type NumberedLines,
  numberedLines,
  outputLines,
} from '../../../harness/tool-output/numbered-lines.js';
import type { EntryOf, ShownFile } from '../neutral-session.js';

type Moment = ShownFile['moment'];

/** Returns evidence of a whole file. */
export function wholeFile(path: string, text: string, moment: Moment): ShownFile {
  return { path, moment, text, whole: true };
}

/** Returns evidence that a file exists after a call, without its text. */
export function namedFile(path: string): ShownFile {
  return { path, moment: 'after', whole: false };
}

/** The part of a file that a text shows: its first line, and whether it is the whole file. */
export interface TextRange {
  readonly start: number;
  readonly whole: boolean;
  readonly total?: number | undefined;
}

/** Returns evidence of a part of a file. */
export function fileText(path: string, text: string, { start, whole, total }: TextRange): ShownFile {
  return { path, moment: 'after', text, whole, start_line: start, total_lines: total };
}

/** The evidence about files in a result or an event. Fields without evidence are absent. */
export type FileEvidence = Pick<EntryOf<'result'>, 'files' | 'listed' | 'truncated'>;

/** Returns files and listed paths as fields of an entry. Fields without content are absent. */
export function fileEvidence(files: readonly ShownFile[], listed?: readonly string[]): FileEvidence {
  return {
    ...(files.length === 0 ? {} : { files: [...files] }),
    ...(listed === undefined ? {} : { listed: [...listed] }),
  };
}

/**
 * A hunk of a patch: lines with the prefix ` `, `-` or `+`, and the numbers of its first line
 * before and after the patch.
 */
export interface PatchHunk {
  readonly oldStart: number;
  readonly newStart: number;
  readonly lines: readonly string[];
}

/**
 * Returns the parts of a file that a hunk shows, from before and after the patch. `movedTo` is the
 * file's path after the patch.
 */
export function hunkPieces(
  path: string,
  { oldStart, newStart, lines }: PatchHunk,
  movedTo = path,
): readonly ShownFile[] {
  const textWithout = (mark: string): string | undefined => {
    const kept = lines.filter((line) => /^[-+ ]/.test(line) && !line.startsWith(mark)).map((line) => line.slice(1));
    return kept.length === 0 ? undefined : kept.join('\n');
  };
  const pieces = [
    { path, moment: 'before' as const, start_line: oldStart, text: textWithout('+') },
    { path: movedTo, moment: 'after' as const, start_line: newStart, text: textWithout('-') },
  ];
  return pieces.flatMap(({ text, ...piece }) =>
    text === undefined || piece.start_line < 1 ? [] : [{ ...piece, whole: false, text }],
  );
}

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;

/** Returns the hunks of a unified diff of one file. */
export function unifiedHunks(diff: string): readonly PatchHunk[] {
  const hunks: { oldStart: number; newStart: number; lines: string[] }[] = [];
  for (const line of diff.split('\n')) {
    const header = HUNK.exec(line);
    if (header !== null) hunks.push({ oldStart: Number(header[1]), newStart: Number(header[2]), lines: [] });
    else hunks.at(-1)?.lines.push(line);
  }
  return hunks;
}

/**
 * Returns numbered lines as evidence of a file. They are the whole file if they reach from its
 * first to its last line. Then every line gets a line end, because a numbered view does not show
 * whether the last line has one.
 */
export function shownLines(
  path: string,
  { lines, first }: NumberedLines,
  { moment = 'after', total }: { readonly moment?: ShownFile['moment']; readonly total?: number | undefined },
): ShownFile {
  const whole = first === 1 && lines.length === total;
  const text = whole ? lines.map((line) => `${line}\n`).join('') : lines.join('\n');
  return { ...fileText(path, text, { start: first, whole, total }), moment };
}

const WINDOW = /^\[File: (.+) \((\d+) lines total(?: after edit)?\)\]$/;
const ABOVE = /^\((\d+) more lines? above\)$|^\(this is the beginning of the file\)$/;
/** Number of lines above a window that are searched for its description. */
const LEAD_LINES = 3;

/**
 * Returns the file windows in the output of SWE-agent's commands, and of commands derived from
 * them. A window begins with `[File: P (N lines total)]` and has numbered lines.
 *
 * Skips the preview of a refused edit. The window below the preview shows the original text and has
 * the moment `before`.
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
    const moment = /original code before/.test(lead) ? 'before' : 'after';
    windows.push(shownLines(header[1], shown, { moment, total: Number(header[2]) }));
  }
  return windows;
}

const NUMBERED_RESULT = /running `cat -n` on (?:a snippet of )?(.+?)(?:, excluding hidden items)?:$/;

/**
 * Returns the lines of a file that an editor shows like `cat -n`. A `view` shows the whole file
 * unless a range was given or the output was cut. An edit shows the lines around the change, as
 * they are after the change.
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
  const cut = /<response clipped>|<NOTE>|\[\.\.\.? ?\d+ (?:characters|lines)/i.test(
    lines.slice(at + 1 + shown.lines.length).join('\n'),
  );
  const trimmed = asked.whole ? withoutPhantomLine(shown) : shown;
  return [shownLines(path, trimmed, { total: asked.whole && !cut ? trimmed.lines.length : undefined })];
}

/**
 * Removes an empty last line that is not in the file. The editor splits a text at its line ends and
 * so shows an empty line after the last one.
 */
function withoutPhantomLine(shown: NumberedLines): NumberedLines {
  return shown.lines.length > 1 && shown.lines.at(-1) === '' ? { ...shown, lines: shown.lines.slice(0, -1) } : shown;
}

const FOLDER_VIEW = /^Here's the files and directories up to \d+ levels deep in (.+?)(?:, excluding hidden items)?:$/;

/**
 * Returns whether a listed path looks like a file: it has an extension, and no other path is below
 * it. For listings that do not mark folders.
 */
const looksLikeFile = (path: string, all: readonly string[]): boolean =>
  /[^/\\]\.[^/\\]+$/.test(path) && !all.some((other) => other.startsWith(`${path}/`));

/**
 * Returns the paths in an editor's listing of a folder. Undefined if the output is not a listing.
 *
 * If the listing marks folders with a slash, all its paths are returned. Otherwise only paths that
 * look like files are.
 */
export function listedByEditor(output: string): readonly string[] | undefined {
  const lines = outputLines(output);
  const at = lines.findIndex((line) => FOLDER_VIEW.test(line));
  if (at < 0) return undefined;
  const end = lines.findIndex((line, index) => index > at && line.trim() === '');
  const names = lines
    .slice(at + 1, end < 0 ? undefined : end)
    .filter((line) => line.startsWith('/') || /^[A-Za-z]:[\\/]/.test(line));
  return names.some((name) => name.endsWith('/')) ? names : names.filter((name) => looksLikeFile(name, names));
}

/** Returns the lines of a text without their numbers. Undefined if a line has no number. */
export function numberedText(text: string, gutter: LineGutter): NumberedLines | undefined {
  const ended = text.endsWith('\n') ? text.slice(0, -1) : text;
  const lines = outputLines(ended);
  const shown = numberedLines(lines, 0, gutter);
  return shown !== undefined && shown.lines.length === lines.length ? shown : undefined;
}

const PATH = String.raw`(?:'([^']+)'|"([^"$\`\\]+)"|([^\s'"$\`\\|&;<>()*?[\]{}!#~-][^\s'"$\`\\|&;<>()*?[\]{}!]*))`;
const PRINTS = new RegExp(
  String.raw`^(?:cd ([^\s'"$\`\\|&;<>()*?]+) && )?(cat|sed -n '?(\d+),(\d+)p'?|head -n ?(\d+)) ${PATH}$`,
);

/**
 * Returns the file that a command printed, if `output` is its whole output. Knows only `cat P`,
 * `sed -n 'A,Bp' P` and `head -n N P`, also after a `cd`. Undefined for all other commands.
 */
export function printedFile(command: string, output: string): ShownFile | undefined {
  const [, dir, tool, from, , count, single, double, bare] = PRINTS.exec(command.trim()) ?? [];
  const path = single ?? double ?? bare;
  if (tool === undefined || path === undefined) return undefined;
  const lines = output.split('\n').length - 1;
  const whole = tool === 'cat' || (count !== undefined && lines < Number(count));
  const start = Math.max(1, Number(from ?? 1));
  return fileText(dir === undefined ? path : posix.join(dir, path), output, { start, whole });
}

// The character code keeps the invisible escape character out of the source.
const ANSI = new RegExp(`${String.fromCharCode(27)}(?:\\[[0-9;?]*[ -/]*[@-~]|[@-Z\\\\-_])`, 'g');
const PROMPT = /\r?\n?[\w.-]+@[\w.-]+:(\S+) [#$] ?$/;

/**
 * Returns a terminal's output without control sequences and without the final prompt. `promptDir`
 * is the folder that the prompt shows.
 */
export function terminalText(output: string): { readonly text: string; readonly promptDir: string | undefined } {
  const plain = output.replace(ANSI, '');
  const prompt = PROMPT.exec(plain);
  const body = prompt === null ? plain : `${plain.slice(0, prompt.index)}\n`;
  return { text: body.replace(/\r\n/g, '\n'), promptDir: prompt?.[1] };
}

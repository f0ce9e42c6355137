import { asksForPart, firstLineAsked, type ToolArguments } from '../../foreign-tools/tool-arguments.js';
import { numberedLines, withoutGutter } from './numbered-lines.js';

/** A read that has finished. */
export interface ReadCall {
  readonly args: ToolArguments;
  readonly output: string;
  /** Whether the recording says that the output is incomplete. */
  readonly truncated: boolean;
}

/** The lines of a file that a read shows. */
interface ReadText {
  readonly text: string;
  readonly startLine: number;
  readonly whole: boolean;
  /** Number of lines in the file, if the output states it. */
  readonly total?: number;
}

/** Matches notes about missing lines that only tools write, at the start or end of an output. */
const CUT = new RegExp(
  [
    /\[(?:showing lines|\d+ more lines|truncated|output truncated|file truncated)/,
    /\.\.\. ?\(?\d+ (?:more )?lines|use offset=|lines? omitted/,
    /exceeds maximum|<response clipped>|\[file content truncated/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'i',
);
/**
 * Matches notes about missing lines that a file may contain, too. They only count if the file is
 * known and does not contain them.
 */
const PERHAPS_CUT = new RegExp(
  [
    /truncated|more lines?\b|characters omitted|showing (?:lines|first|the first)/,
    /use (?:offset|`?start_line)|continue (?:with|reading)|file (?:has|is) too|output limit/,
    /\[\s*\d+ (?:more|remaining)/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'i',
);

const NOTES = /(?:\n*<system-reminder>[\s\S]*?<\/system-reminder>\s*)+$/;
const EMPTY = /^(?:<system-reminder>)?\s*Warning: the file exists but (?:the contents are|is) empty/i;
const NOT_TEXT = /^\[(?:image|document|audio|file|binary|part)\b[^\n]*\]\s*$/;
const EDGE_CHARS = 400;
/** Matches OpenCode's envelope around the numbered lines of a file that was shown to its end. */
const ENVELOPE = new RegExp(
  /^<path>[^\n]*<\/path>\n<type>file<\/type>\n<content>\n([\s\S]*)\n\n/.source +
    /\(End of file - total \d+ lines\)\n<\/content>\s*$/.source,
);

/** Returns the lines in OpenCode's envelope. Undefined for other outputs. */
function enveloped(output: string): { readonly text: string; readonly startLine: number } | undefined {
  const lines = ENVELOPE.exec(output)?.[1]?.split('\n');
  const numbered = lines === undefined ? undefined : numberedLines(lines, 0, 'spacedColon');
  return numbered === undefined || numbered.lines.length !== lines?.length
    ? undefined
    : { text: numbered.lines.join('\n'), startLine: numbered.first };
}

/** Matches the first line of an output of our own `read`, called by an agent over MCP. */
const OWN_HEAD = /^\[file id=\S+ path=(?:"(?:[^"\\]|\\.)*"|\S+) lines=(?:0|(\d+)-(\d+)\/(\d+)) chars=(\d+)\]\n/;

/** Matches the last line of that output if it says that a line of the file was cut. */
const LINE_CUT = /\n\[line \d+ goes on\. Continue: [^\n]*\]$/;

/** Returns the lines in an output of our own `read`. Undefined for other outputs. */
function ownAnswer(output: string): ReadText | undefined {
  const head = OWN_HEAD.exec(output);
  if (head === null) return undefined;
  const [first = 1, last = 0, total = 0, chars = 0] = head.slice(1).map((number) => Number(number ?? 0));
  if (total === 0) return { text: '', startLine: 1, whole: true, total };
  const body = output.slice(head[0].length);
  // Some agents remove the last line end.
  const text = [body, `${body}\n`].find(({ length }) => length === chars);
  if (first === 1 && last === total && text !== undefined) return { text, startLine: 1, whole: true, total };
  const lines = body.split('\n').slice(0, last - first + 1);
  return { text: lines.join('\n'), startLine: first, whole: false, total };
}

/**
 * Returns the lines of a file in the output of a tool that reads files. They are the whole file if
 * no part was requested and no note says that lines are missing. Line numbers and a harness's notes
 * at the end are removed. Undefined if the output shows no text of the file.
 */
export function readText({ args, output, truncated }: ReadCall): ReadText | undefined {
  if (EMPTY.test(output)) return { text: '', startLine: 1, whole: true, total: 0 };
  const body = output.replace(NOTES, '');
  const edges = `${body.slice(0, EDGE_CHARS)}\n${body.slice(-EDGE_CHARS)}`;
  const own = truncated ? undefined : ownAnswer(body);
  if (own !== undefined) return LINE_CUT.test(body) ? undefined : own;
  if (NOT_TEXT.test(body) || truncated || CUT.test(edges)) return undefined;
  const { text, startLine = firstLineAsked(args) } = enveloped(body) ?? withoutGutter(body);
  return { text, startLine, whole: !asksForPart(args) && startLine === 1 };
}

/**
 * Returns the number of characters that are not white space. Trimming and other line endings do not
 * change this number, and line numbers only increase it.
 */
function visible(text: string): number {
  let count = 0;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 32) count++;
  return count;
}

/**
 * Returns whether the first or last lines of an output say that lines are missing. Lines of the
 * file itself are ignored.
 */
function saysCut(output: string, content: string): boolean {
  const lines = output.trimEnd().split('\n');
  const own = new Set(content.split('\n').map((line) => line.trim()));
  const isOwn = (line: string): boolean =>
    own.has(line.trim()) || own.has(line.replace(/^\s*\d+\s*[\t|:→]\s?/, '').trim());
  return [...lines.slice(0, 3), ...lines.slice(-4)].some(
    (line) => (CUT.test(line) || PERHAPS_CUT.test(line)) && !isOwn(line),
  );
}

/**
 * Returns whether a read showed the whole file (decision D8), given the file's content. The output
 * must be at least as long, without a note about missing lines. If a part was requested, the output
 * must contain the whole content.
 */
export function isWholeRead({ args, output }: Pick<ReadCall, 'args' | 'output'>, content: string): boolean {
  if (visible(output) < visible(content)) return false;
  if (asksForPart(args)) return output.includes(content.trimEnd()) && content.trimEnd() !== '';
  return !saysCut(output, content);
}

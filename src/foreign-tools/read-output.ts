import { numberedLines, withoutGutter } from './numbered-lines.js';
import { asksForPart, firstLineAsked, type ToolArguments } from './tool-arguments.js';

/** A finished read. */
export interface ReadCall {
  readonly args: ToolArguments;
  readonly output: string;
  /** Whether the recording itself says that the output is not all. */
  readonly truncated: boolean;
}

/** The lines of a file that a read shows. */
interface ReadText {
  readonly text: string;
  readonly startLine: number;
  readonly whole: boolean;
  /** How many lines the file has, where the output says it. */
  readonly total?: number;
}

/** What tools alone say at the beginning or end of a read that is not all of the file. */
const CUT =
  /\[(?:showing lines|\d+ more lines|truncated|output truncated|file truncated)|\.\.\. ?\(?\d+ (?:more )?lines|use offset=|lines? omitted|exceeds maximum|<response clipped>|\[file content truncated/i;
/** What a file may say of itself as well: it counts where the file is at hand and does not have the line. */
const PERHAPS_CUT =
  /truncated|more lines?\b|characters omitted|showing (?:lines|first|the first)|use (?:offset|`?start_line)|continue (?:with|reading)|file (?:has|is) too|output limit|\[\s*\d+ (?:more|remaining)/i;

const NOTES = /(?:\n*<system-reminder>[\s\S]*?<\/system-reminder>\s*)+$/;
const EMPTY = /^(?:<system-reminder>)?\s*Warning: the file exists but (?:the contents are|is) empty/i;
const NOT_TEXT = /^\[(?:image|document|audio|file|binary|part)\b[^\n]*\]\s*$/;
const EDGE_CHARS = 400;
/** What OpenCode puts around the numbered lines of a file that it shows to its end. */
const ENVELOPE = /^<path>[^\n]*<\/path>\n<type>file<\/type>\n<content>\n([\s\S]*)\n\n\(End of file - total \d+ lines\)\n<\/content>\s*$/;

/** The lines in such an envelope; undefined for any other output. */
function enveloped(output: string): { readonly text: string; readonly startLine: number } | undefined {
  const lines = ENVELOPE.exec(output)?.[1]?.split('\n');
  const numbered = lines === undefined ? undefined : numberedLines(lines, 0, 'spacedColon');
  return numbered === undefined || numbered.lines.length !== lines?.length
    ? undefined
    : { text: numbered.lines.join('\n'), startLine: numbered.first };
}

/**
 * What the output of a reading tool shows of its file, judged by the output alone: all of it where no part was asked for and nothing says that something is
 * missing. Line numbers and the notes that a harness puts behind are taken off. Undefined where it shows no more than that the file exists.
 */
export function readText({ args, output, truncated }: ReadCall): ReadText | undefined {
  if (EMPTY.test(output)) return { text: '', startLine: 1, whole: true, total: 0 };
  const body = output.replace(NOTES, '');
  const edges = `${body.slice(0, EDGE_CHARS)}\n${body.slice(-EDGE_CHARS)}`;
  if (NOT_TEXT.test(body) || truncated || CUT.test(edges)) return undefined;
  const { text, startLine = firstLineAsked(args) } = enveloped(body) ?? withoutGutter(body);
  return { text, startLine, whole: !asksForPart(args) && startLine === 1 };
}

/** How many characters of a text are not white space: numbering, trimming and line ends only add to them. */
function visible(text: string): number {
  let count = 0;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 32) count++;
  return count;
}

/** Whether the first or last lines of an output, as far as they are not the file's own, say that something is missing. */
function saysCut(output: string, content: string): boolean {
  const lines = output.trimEnd().split('\n');
  const own = new Set(content.split('\n').map((line) => line.trim()));
  const isOwn = (line: string): boolean => own.has(line.trim()) || own.has(line.replace(/^\s*\d+\s*[\t|:→]\s?/, '').trim());
  return [...lines.slice(0, 3), ...lines.slice(-4)].some((line) => (CUT.test(line) || PERHAPS_CUT.test(line)) && !isOwn(line));
}

/**
 * Whether a read showed its whole file (decision D8), judged by the file's own content: the output holds at least as much and does not say that something
 * is missing. A call that asks for a part is a part unless its output proves, character by character, to be everything.
 */
export function isWholeRead({ args, output }: Pick<ReadCall, 'args' | 'output'>, content: string): boolean {
  if (visible(output) < visible(content)) return false;
  if (asksForPart(args)) return output.includes(content.trimEnd()) && content.trimEnd() !== '';
  return !saysCut(output, content);
}

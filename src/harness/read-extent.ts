import type { Json } from '../objects/canonical-json.js';
import { normalArgs } from './call-paths.js';

/** Arguments that ask for a part of a file. */
const PART_ARGS = [
  'limit',
  'view_range',
  'viewRange',
  'range',
  'ranges',
  'lines',
  'line_count',
  'pages',
  'head',
  'tail',
  'max_lines',
  'max_bytes',
];
/** What tools say at the beginning or end of an output that is not all. */
const TRUNCATED =
  /truncated|more lines?\b|lines? omitted|characters omitted|showing (?:lines|first|the first)|use (?:offset|`?start_line)|continue (?:with|reading)|file (?:has|is) too|output limit|\[\s*\d+ (?:more|remaining)/i;

/** How many characters of a text are not white space: numbering, trimming and line ends change nothing about them but add. */
function visible(text: string): number {
  let count = 0;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 32) count++;
  return count;
}

function asksForPart(args: { readonly [key: string]: Json }): boolean {
  const given = normalArgs(args);
  const offset = Number(given.offset ?? 0);
  if (offset > 1) return true;
  return PART_ARGS.some((name) => given[name] !== undefined && given[name] !== null && given[name] !== false);
}

/** Whether the first or last lines of an output, as far as they are not the file's own, say that something is missing. */
function saysTruncated(output: string, content: string): boolean {
  const lines = output.trimEnd().split('\n');
  const own = new Set(content.split('\n').map((line) => line.trim()));
  const isOwn = (line: string): boolean => own.has(line.trim()) || own.has(line.replace(/^\s*\d+\s*[\t|:→]\s?/, '').trim());
  return [...lines.slice(0, 3), ...lines.slice(-4)].some((line) => TRUNCATED.test(line) && !isOwn(line));
}

/**
 * Whether a reported read showed its whole file (decision D8): the output holds at least as much as the file and does not say that something is
 * missing. A call that asks for a part is a part unless its output proves, character by character, to be everything.
 */
export function isWholeRead(args: { readonly [key: string]: Json }, output: string, content: string): boolean {
  if (visible(output) < visible(content)) return false;
  if (asksForPart(args)) return output.includes(content.trimEnd()) && content.trimEnd() !== '';
  return !saysTruncated(output, content);
}

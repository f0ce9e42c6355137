import type { FileAct } from './file-act.js';
import { withoutGutter } from './gutter.js';

/** What is known of a read when its answer is looked at. */
interface ReadCall {
  readonly args: Readonly<Record<string, unknown>>;
  readonly output: string;
  readonly truncated: boolean;
}

/** What tools say at the end or the beginning of a read that is not all. */
const CUT =
  /\[(?:showing lines|\d+ more lines|truncated|output truncated|file truncated)|\.\.\. ?\(?\d+ (?:more )?lines|use offset=|lines? omitted|exceeds maximum|<response clipped>|\[file content truncated/i;
const NOTES = /(?:\n*<system-reminder>[\s\S]*?<\/system-reminder>\s*)+$/;
const EMPTY = /^(?:<system-reminder>)?\s*Warning: the file exists but (?:the contents are|is) empty/i;
const NOT_TEXT = /^\[(?:image|document|audio|file|binary|part)\b[^\n]*\]\s*$/;

const PART_ARGS = ['limit', 'view_range', 'viewRange', 'end_line', 'endLine', 'line_count', 'pages', 'max_lines'] as const;

function asksForPart(args: ReadCall['args']): boolean {
  const from = Number(args.offset ?? args.start_line ?? args.startLine ?? args.line_start ?? 0);
  return from > 1 || PART_ARGS.some((name) => args[name] !== undefined && args[name] !== null);
}

function firstLine(args: ReadCall['args']): number {
  const range: unknown = args.view_range ?? args.viewRange;
  const given = Array.isArray(range) ? range[0] : (args.offset ?? args.start_line ?? args.startLine ?? 1);
  return Math.max(1, Number.isInteger(Number(given)) ? Number(given) : 1);
}

/**
 * What the answer of a reading tool shows of its file: all of it where no part was asked for and the answer does not say that something is missing. Line
 * numbers and the notes that a harness puts behind are taken off.
 */
export function readActs({ args, output, truncated }: ReadCall, path: string | undefined): readonly FileAct[] {
  if (path === undefined) return [];
  if (EMPTY.test(output)) return [{ kind: 'show', path, text: '', startLine: 1, whole: true, total: 0 }];
  const body = output.replace(NOTES, '');
  if (NOT_TEXT.test(body)) return [{ kind: 'name', path }];
  const edges = `${body.slice(0, 400)}\n${body.slice(-400)}`;
  if (truncated || CUT.test(edges)) return [{ kind: 'name', path }];
  const { text, startLine } = withoutGutter(body);
  const first = startLine ?? firstLine(args);
  const whole = !asksForPart(args) && first === 1;
  return [{ kind: 'show', path, text, startLine: first, whole }];
}

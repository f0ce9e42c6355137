import { patchedPaths } from '../../foreign-tools/patch-envelope.js';
import { patchOfWords, scriptOf } from '../../foreign-tools/shell-call.js';
import {
  argument,
  firstLineAsked,
  namedPaths,
  pathArgument,
  severalPaths,
  type ToolArguments,
  textArgument,
} from '../../foreign-tools/tool-arguments.js';
import { foreignTool, type ToolKind } from '../../foreign-tools/tool-table.js';

/** A tool call as its document has it. */
export interface NamedCall {
  readonly tool: string;
  readonly args: ToolArguments;
}

/** Lines of a file, both ends included. Without `to`, the range reaches to the end of the file. */
export interface LineRange {
  readonly from: number;
  readonly to: number | undefined;
}

/** Returns ranges in the order of the file. Ranges that overlap or touch become one. */
export function joinedRanges(ranges: readonly LineRange[]): readonly LineRange[] {
  const joined: { from: number; to: number }[] = [];
  for (const { from, to = Number.POSITIVE_INFINITY } of ranges.toSorted((a, b) => a.from - b.from)) {
    const last = joined.at(-1);
    if (last !== undefined && from <= last.to + 1) last.to = Math.max(last.to, to);
    else joined.push({ from, to });
  }
  return joined.map(({ from, to }) => ({ from, to: Number.isFinite(to) ? to : undefined }));
}

const MOST_CHARS = 72;
const MOST_SEGMENTS = 2;
const MOST_FILES = 2;

/** Returns the last two parts of a path, which identify a file better than its beginning. */
function shortPath(path: string): string {
  const parts = path.split(/[\\/]/).filter((part) => part !== '');
  return parts.length <= MOST_SEGMENTS ? path : parts.slice(-MOST_SEGMENTS).join('/');
}

/** Returns a tool's name without the prefix of its server: `mcp__fs__read_file` is `read_file`. */
function shortTool(tool: string): string {
  const last = tool.split(/__|[.:/]/).at(-1) || tool;
  return /^[A-Z][a-z]+$/.test(last) ? last.toLowerCase() : last;
}

/** Returns the lines that a reading call asks for; undefined for the whole file. */
export function linesAsked({ args }: Pick<NamedCall, 'args'>): LineRange | undefined {
  const from = firstLineAsked(args);
  const range = argument(args, 'range');
  const last = Number(Array.isArray(range) ? range[1] : argument(args, 'lastLine'));
  const limit = Number(args.limit);
  const to = last > 0 ? last : limit > 0 ? from + limit - 1 : undefined;
  return from === 1 && to === undefined ? undefined : { from, to };
}

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim();

function cut(text: string): string {
  const line = oneLine(text.slice(0, 10 * MOST_CHARS));
  return line.length <= MOST_CHARS
    ? line
    : `${line
        .slice(0, MOST_CHARS - 1)
        .toWellFormed()
        .trimEnd()}…`;
}

/** Returns the first line of a script with a command, without a leading change of folder. */
function scriptLine(script: string): string {
  const line = script.split('\n').find((one) => one.trim() !== '' && !/^\s*(?:#|set -)/.test(one)) ?? script;
  return line.replace(/^\s*cd\s+(?:"[^"]*"|'[^']*'|[^\s;&|]+)\s*(?:&&|;)\s*/, '');
}

function filesText(paths: readonly string[]): string {
  const shown = paths.slice(0, MOST_FILES).map(shortPath).join(', ');
  return paths.length > MOST_FILES ? `${shown} and ${paths.length - MOST_FILES} more` : shown;
}

function pathsOf({ args }: NamedCall): readonly string[] {
  const several = severalPaths(args);
  const named = several.length > 0 ? several : namedPaths(args);
  return named.length > 0 ? named : [pathArgument(args)].filter((path) => path !== undefined);
}

function readName(call: NamedCall): string {
  const lines = linesAsked(call);
  const range = lines === undefined ? '' : ` ${lines.from}-${lines.to ?? ''}`;
  return `${filesText(pathsOf(call))}${range}`;
}

/** Arguments that describe a call of an unknown tool, the most informative first. */
const TELLING = [
  'query',
  'url',
  'pattern',
  'description',
  'title',
  'name',
  'ids',
  'id',
  'path',
  'file_path',
  'command',
  'prompt',
  'text',
];

function otherName({ args }: NamedCall): string {
  for (const name of TELLING) {
    const value = args[name];
    if (typeof value === 'string' && value.trim() !== '') return value;
    if (Array.isArray(value) && typeof value[0] === 'string') return value.slice(0, MOST_FILES).join(', ');
  }
  const first = Object.values(args).find((value) => typeof value === 'string' && value.trim() !== '');
  return typeof first === 'string' ? first : '';
}

const patternOf = ({ args }: NamedCall): string => {
  const pattern = args.pattern ?? args.query ?? args.regex ?? args.search_term ?? args.glob;
  return typeof pattern === 'string' ? cut(pattern) : '';
};

function searchName(call: NamedCall): string {
  const folder = pathArgument(call.args, 'folder');
  const where = folder === undefined || folder === '.' ? '' : ` in ${shortPath(folder)}`;
  return `${patternOf(call)}${where}`;
}

/** Returns the patch in a call's arguments; undefined if they have none. */
export function patchText({ args }: Pick<NamedCall, 'args'>): string | undefined {
  const script = textArgument(args, 'script') ?? scriptOf(args) ?? patchOfWords(args);
  const text = script ?? (typeof args.patch === 'string' ? args.patch : '');
  const envelope = /\*\*\* Begin Patch[\s\S]*?\*\*\* End Patch/.exec(text)?.[0] ?? text;
  return patchedPaths(envelope).length === 0 ? undefined : envelope;
}

/** Returns whether a call of a shell applies a patch that its script contains. */
export const isPatch = ({ args }: Pick<NamedCall, 'args'>): boolean =>
  patchOfWords(args) !== undefined || /\bapply_?patch\b[\s\S]*\*\*\* Begin Patch/.test(scriptOf(args) ?? '');

const patchName = (call: NamedCall): string =>
  filesText(patchedPaths(patchText(call) ?? '')) || filesText(namedPaths(call.args));

const NAMES: Readonly<Record<ToolKind, (call: NamedCall) => string>> = {
  read: readName,
  write: (call) => filesText(pathsOf(call)),
  // Some recordings have a patch as a call of an editing tool.
  edit: (call) => filesText(pathsOf(call)) || patchName(call),
  patch: patchName,
  list: ({ args }) => shortPath(pathArgument(args, 'folder') ?? '.'),
  tree: ({ args }) => shortPath(pathArgument(args, 'folder') ?? '.'),
  glob: searchName,
  grep: searchName,
  shell: ({ args }) =>
    isPatch({ args })
      ? `apply_patch ${filesText(patchedPaths(patchText({ args }) ?? ''))}`
      : scriptLine(scriptOf(args) ?? otherName({ tool: '', args })),
  other: otherName,
};

/** Commands that print text of the files that they name. */
const SHOWING = /^(?:cat|head|tail|sed\s+-n|nl|less|awk)\b/;

/** Whether a call of a shell begins with a command that shows files. */
export const showsText = ({ tool, args }: NamedCall): boolean =>
  kindOfCall({ tool }) === 'shell' && SHOWING.test(scriptLine(scriptOf(args) ?? '').trim());

/** Whether a call of a shell begins with a command that prints the lines that it finds. */
export const searches = ({ tool, args }: NamedCall): boolean =>
  kindOfCall({ tool }) === 'shell' &&
  /^(?:rg|[ef]?grep|git\s+grep|ag|ack)\b/.test(scriptLine(scriptOf(args) ?? '').trim());

/** Kinds of tools that may change files. */
export const MAY_CHANGE: ReadonlySet<ToolKind> = new Set(['write', 'edit', 'patch', 'shell']);

/** Returns the kind of a call's tool. */
export const kindOfCall = ({ tool }: Pick<NamedCall, 'tool'>): ToolKind => foreignTool(tool).kind;

/**
 * Names a call for people by its tool and what it did, in one line: `read src/cart.ts 1-200`,
 * `bash npm test`.
 */
export function callName(call: NamedCall): string {
  const { form } = foreignTool(call.tool);
  if (form === 'edit-by-command' && call.args.command === 'view') return cut(`view ${readName(call)}`);
  const what = cut(NAMES[kindOfCall(call)](call) || otherName(call));
  return what === '' ? shortTool(call.tool) : `${shortTool(call.tool)} ${what}`;
}

/** Returns the name of a stored call, or only that of its tool. */
export const storedCallName = (document: Readonly<Record<string, unknown>>, plainCalls?: true): string =>
  plainCalls === true ? shortTool(String(document.tool)) : callName(namedCall(document));

/**
 * Returns the tool and arguments of a stored call. Stored arguments are always an object. An import
 * stores a command that lists files or lines as a search, with the arguments of the shell.
 */
export function namedCall(document: Readonly<Record<string, unknown>>): NamedCall {
  const { tool: stored, args: given } = document;
  const args = typeof given === 'object' && given !== null ? (given as ToolArguments) : {};
  const tool = String(stored);
  const isCommand = tool === 'grep' && patternOf({ tool, args }) === '' && scriptOf(args) !== undefined;
  return { tool: isCommand ? 'bash' : tool, args };
}

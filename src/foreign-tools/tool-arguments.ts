import { fileURLToPath } from 'node:url';

/** The arguments of a call by name, as the model gave them. */
export type ToolArguments = Readonly<Record<string, unknown>>;

const FILE = [
  'path',
  'file_path',
  'filePath',
  'filepath',
  'absolute_path',
  'file',
  'filename',
  'file_name',
  'target_file',
  'relative_path',
  'notebook_path',
  'notebookPath',
];
const FOLDER = ['dir_path', 'dirPath', 'directory', 'dir', 'target_directory'];

/** The names that tools give to each argument, in order of priority. Our own name is first. */
export const ARGUMENT_NAMES = {
  path: [...FILE, ...FOLDER],
  folder: ['path', ...FOLDER, ...FILE.slice(1)],
  source: ['source', 'old_path', 'from'],
  destination: ['destination', 'new_path', 'to'],
  offset: ['offset', 'start_line', 'startLine', 'line', 'line_start'],
  lastLine: ['end_line', 'endLine'],
  range: ['view_range', 'viewRange'],
  content: ['content', 'contents', 'text', 'file_text', 'new_str'],
  oldText: ['oldText', 'old_string', 'oldString', 'old_text', 'old_str', 'search'],
  newText: ['newText', 'new_string', 'newString', 'new_text', 'new_str', 'replace'],
  cwd: ['cwd', 'workdir', 'working_directory'],
  script: ['command', 'cmd', 'script', 'commands', 'input', 'code'],
} as const satisfies Readonly<Record<string, readonly string[]>>;
type ArgumentRole = keyof typeof ARGUMENT_NAMES;

const given = (args: ToolArguments, role: ArgumentRole): readonly unknown[] =>
  ARGUMENT_NAMES[role].map((name) => args[name]);

/**
 * Returns an argument's value, under the first of its names that is present. Undefined and null
 * count as missing.
 */
export function argument(args: ToolArguments, role: ArgumentRole): unknown {
  return given(args, role).find((value) => value !== undefined && value !== null);
}

/** Returns an argument's text. The first of its names whose value is a text counts. */
export function textArgument(args: ToolArguments, role: ArgumentRole): string | undefined {
  return given(args, role).find((value) => typeof value === 'string');
}

/** Returns the path in an argument; undefined if it is missing or empty. */
export function pathArgument(
  args: ToolArguments,
  role: 'path' | 'folder' | 'source' | 'destination' | 'cwd' = 'path',
): string | undefined {
  return given(args, role).find((value) => typeof value === 'string' && value !== '') as string | undefined;
}

const SEVERAL = ['paths', 'files', 'file_paths', 'filePaths'] as const;

/** Returns the paths in arguments that name several files, as texts or as objects with a path. */
export function severalPaths(args: ToolArguments): readonly string[] {
  const entries = SEVERAL.flatMap((name): readonly unknown[] => (Array.isArray(args[name]) ? args[name] : []));
  return entries.flatMap((entry) => (typeof entry === 'string' ? entry : pathOfEntry(entry)) ?? []);
}

const pathOfEntry = (entry: unknown): string | undefined =>
  typeof entry === 'object' && entry !== null ? pathArgument(entry as ToolArguments) : undefined;

function localPath(path: string): readonly string[] {
  if (path === '' || path.includes('\0')) return [];
  if (!path.startsWith('file://')) return [path];
  try {
    return [fileURLToPath(path)];
  } catch {
    return [];
  }
}

const FURTHER = ['notebook_path', 'notebookPath', 'uri', 'source', 'destination', 'old_path', 'new_path'] as const;

/**
 * Returns every path in a call's arguments, each once, as the agent wrote it. A `file:` URI becomes
 * a path.
 */
export function namedPaths(args: ToolArguments): readonly string[] {
  const single = [pathArgument(args), ...FURTHER.map((name) => args[name])];
  const edits: readonly unknown[] = Array.isArray(args.edits) ? args.edits : [];
  const all = [...single, ...severalPaths(args), ...edits.map(pathOfEntry)].filter((path) => typeof path === 'string');
  return [...new Set(all.flatMap(localPath))];
}

/** Arguments that select a part of a file, in addition to `range` and `lastLine`. */
const PART = [
  'limit',
  'range',
  'ranges',
  'lines',
  'line_count',
  'pages',
  'head',
  'tail',
  'max_lines',
  'max_bytes',
] as const;

/** Returns whether a read's arguments select a part of the file. */
export function asksForPart(args: ToolArguments): boolean {
  if (Number(argument(args, 'offset') ?? 0) > 1) return true;
  const asked = [argument(args, 'range'), argument(args, 'lastLine'), ...PART.map((name) => args[name])];
  return asked.some((value) => value !== undefined && value !== null && value !== false);
}

/** Returns the number of the first line that a read requests, from 1. */
export function firstLineAsked(args: ToolArguments): number {
  const range = argument(args, 'range');
  const given = Number(Array.isArray(range) ? range[0] : (argument(args, 'offset') ?? 1));
  return Math.max(1, Number.isInteger(given) ? given : 1);
}

import { argument, type ToolArguments } from './tool-arguments.js';

/**
 * Returns the script of a call, given as text, as the words of a shell command, or as a list with
 * one script. Undefined for other arguments.
 */
export function scriptOf(args: ToolArguments): string | undefined {
  const given = argument(args, 'script');
  if (typeof given === 'string') return given;
  if (!Array.isArray(given) || given.some((word) => typeof word !== 'string')) return undefined;
  const words = given as readonly string[];
  const shell = /(?:^|\/)(?:ba|z)?sh$/.test(words[0] ?? '') && /^-\w*c$/.test(words[1] ?? '');
  if (shell) return words[2];
  // Several words may be several scripts or one command. A single entry is certainly a script.
  return words.length === 1 ? words[0] : undefined;
}

/**
 * Returns the patch of a call whose words are `apply_patch` and the patch. Undefined for other
 * calls.
 */
export function patchOfWords(args: ToolArguments): string | undefined {
  const given = argument(args, 'script');
  const [command, patch, more] = Array.isArray(given) ? (given as readonly unknown[]) : [];
  const isPatch = (command === 'apply_patch' || command === 'applypatch') && more === undefined;
  return isPatch && typeof patch === 'string' ? patch : undefined;
}

/** The output of a command itself, without the additions of the shell tool. */
export interface ShellOutput {
  readonly text: string;
  readonly exitCode: number | undefined;
  /** Whether a part of the output is missing, or the command is still running. */
  readonly partial: boolean;
}

const CUT = new RegExp(
  [
    /…\d+ (?:tokens|chars|lines) truncated…|<elided_chars>|\[\.\.\. ?\d+/,
    /\.\.\. \[\d+ (?:characters|lines) truncated\]|Output truncated|output was truncated/,
    /\[\d+ lines truncated\]/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'i',
);

/** Reads output that follows `Chunk ID … Wall time … Process exited with code N … Output:`. */
function withHeader(text: string): ShellOutput | undefined {
  const header = /^(?:[A-Z][^\n]*\n){0,8}?Output:\n/.exec(text);
  if (header === null) return undefined;
  const exit = /(?:exited with code|Exit code:) (-?\d+)/.exec(header[0])?.[1];
  const running = /still running|running with session/.test(header[0]);
  const body = text.slice(header[0].length);
  const cut = /^Total output lines: \d+\n/.test(body);
  return { text: body, exitCode: exit === undefined ? undefined : Number(exit), partial: running || cut };
}

/** Reads output in the form `<returncode>N</returncode><output>…</output>`. */
function withTags(text: string): ShellOutput | undefined {
  const match = /^\s*<returncode>(-?\d+)<\/returncode>\s*(?:<output>\n?([\s\S]*?)<\/output>)?\s*/.exec(text);
  if (match === null) return undefined;
  return { text: match[2] ?? '', exitCode: Number(match[1]), partial: match[2] === undefined };
}

/** Reads output in the form `{"output": …, "metadata": {"exit_code": …}}`. */
function asJson(text: string): ShellOutput | undefined {
  if (!text.startsWith('{"output"')) return undefined;
  try {
    const value = JSON.parse(text) as {
      readonly output?: unknown;
      readonly metadata?: { readonly exit_code?: unknown };
    };
    if (typeof value.output !== 'string') return undefined;
    const exit = value.metadata?.exit_code;
    return { text: value.output, exitCode: typeof exit === 'number' ? exit : undefined, partial: false };
  } catch {
    return undefined;
  }
}

const FOOTER =
  /\n?\[(?:(?:The command completed|Command finished) with exit|Command exited with) code (-?\d+)[^\]]*\][\s\S]*$/i;

/** Reads output with a last line that gives the exit code. */
function withFooter(text: string): ShellOutput | undefined {
  const match = FOOTER.exec(text);
  if (match === null) return undefined;
  return { text: text.slice(0, match.index), exitCode: Number(match[1]), partial: false };
}

/** Separates a command's own output from the additions of the shell tool. */
export function shellOutput(text: string): ShellOutput {
  const taken = withHeader(text) ??
    withTags(text) ??
    asJson(text) ??
    withFooter(text) ?? { text, exitCode: undefined, partial: false };
  return { ...taken, partial: taken.partial || CUT.test(taken.text) };
}

import { type Command, parse, type Redirection, type Statement, type Word, type WordPart } from 'unbash';

/** A word of a command: its text, or undefined where only the shell could tell (variables, globs, substitutions). */
export type ShellWord = string | undefined;

/** A redirection of a command's output or input. */
export interface ShellRedirect {
  readonly operator: string;
  /** The stream; 1 for output where none is named. */
  readonly descriptor: number;
  readonly target: ShellWord;
  /** Text of a here-document that the shell would not change. */
  readonly text?: string;
}

/** One simple command. */
export interface ShellCommand {
  readonly name: string;
  readonly words: readonly ShellWord[];
  readonly redirects: readonly ShellRedirect[];
}

/** Commands joined by pipes. */
export type ShellPipeline = readonly ShellCommand[];

/** The longest script that is looked at. */
const LONGEST = 200_000;

const EXPANDED: ReadonlySet<WordPart['type']> = new Set([
  'Glob',
  'SimpleExpansion',
  'ParameterExpansion',
  'CommandExpansion',
  'ArithmeticExpansion',
  'ProcessSubstitution',
  'ExtendedGlob',
  'BraceExpansion',
]);

function isPlain(parts: readonly WordPart[] | undefined): boolean {
  return (parts ?? []).every((part) => !EXPANDED.has(part.type) && (part.type !== 'DoubleQuoted' || isPlain(part.parts)));
}

const wordOf = (word: Word): ShellWord => (isPlain(word.parts) ? word.value : undefined);

function redirectOf(redirect: Redirection): ShellRedirect {
  const named = redirect.descriptor;
  const descriptor = named?.type === 'FileDescriptor' ? named.value : redirect.operator.startsWith('<') ? 0 : 1;
  if (redirect.type === 'HereDoc') {
    const plain = redirect.delimiter?.quoted === true || isPlain(redirect.body.parts);
    return { operator: redirect.operator, descriptor, target: undefined, ...(plain ? { text: redirect.body.text } : {}) };
  }
  return { operator: redirect.operator, descriptor, target: redirect.target === undefined ? undefined : wordOf(redirect.target) };
}

function simple(command: Command): ShellCommand | undefined {
  const { name, args, redirects } = command;
  const word = name === undefined ? '' : wordOf(name);
  if (word === undefined) return undefined;
  const words = args.map((arg) => (arg.type === 'Word' ? wordOf(arg) : arg.text));
  return { name: word.slice(word.lastIndexOf('/') + 1), words, redirects: redirects.map(redirectOf) };
}

function pipelines(node: Statement['command']): readonly (ShellPipeline | undefined)[] {
  if (node.type === 'AndOr') return node.commands.flatMap(pipelines);
  const commands = node.type === 'Pipeline' ? node.commands : [node];
  const simples = commands.map((one) => (one.type === 'Command' ? simple(one) : undefined));
  return [simples.includes(undefined) ? undefined : (simples as ShellPipeline)];
}

/** `bash -lc SCRIPT` is the script. */
function scriptInside(pipeline: ShellPipeline): string | undefined {
  const [only, second] = pipeline;
  if (only === undefined || second !== undefined || !/^(?:ba|z|da)?sh$/.test(only.name)) return undefined;
  const flag = only.words.findIndex((word) => word !== undefined && /^-[a-z]*c[a-z]*$/.test(word));
  return flag < 0 ? undefined : only.words[flag + 1];
}

/**
 * The pipelines of a script one after another, read by a grammar and never run; those that are no plain commands (loops, conditions, functions, jobs in the
 * background) are undefined. Undefined as a whole for a script that is malformed.
 */
export function shellPipelines(script: string, depth = 0): readonly (ShellPipeline | undefined)[] | undefined {
  if (script.length > LONGEST) return undefined;
  const parsed = parse(script);
  if ((parsed.errors ?? []).length > 0) return undefined;
  const found: (ShellPipeline | undefined)[] = [];
  for (const statement of parsed.commands) {
    for (const pipeline of statement.background === true ? [undefined] : pipelines(statement.command)) {
      const inside = pipeline === undefined || depth > 3 ? undefined : scriptInside(pipeline);
      if (inside === undefined) found.push(pipeline);
      else found.push(...(shellPipelines(inside, depth + 1) ?? [undefined]));
    }
  }
  return found;
}

import {
  type Command,
  type ParsedScript,
  parse,
  type Redirection,
  type Statement,
  type Word,
  type WordPart,
} from 'unbash';

/**
 * The text of a word in a command. Undefined if only the shell could resolve it, for example a
 * variable, glob or substitution.
 */
export type ShellWord = string | undefined;

/** Returns whether a word is an option. */
export const isOption = (word: ShellWord): boolean => word !== undefined && word.length > 1 && word.startsWith('-');

/**
 * Returns the words that are not options. The values of options that match `valued` are left out,
 * too.
 */
export function operands(words: readonly ShellWord[], valued: RegExp = /^$/): readonly ShellWord[] {
  const found: ShellWord[] = [];
  let ended = false;
  for (let i = 0; i < words.length; i++) {
    const word = words[i];
    if (!ended && word === '--') ended = true;
    else if (!ended && isOption(word)) {
      if (valued.test(word ?? '')) i += 1;
    } else found.push(word);
  }
  return found;
}

/** A redirection of a command's input or output. */
export interface ShellRedirect {
  readonly operator: string;
  /** The number of the stream; for output, 1 by default. */
  readonly descriptor: number;
  readonly target: ShellWord;
  /** The text of a here-document that has nothing for the shell to expand. */
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

/** A pipeline of a script, with its circumstances. */
export interface ShellStep {
  /** The pipeline. Undefined for anything else: loops, conditions, functions, background jobs. */
  readonly pipeline: ShellPipeline | undefined;
  /**
   * Whether the pipeline certainly ran if the script succeeded. False after `||` and if negated.
   */
  readonly sure: boolean;
  /**
   * The commands inside its words, for example in `$(…)`. Undefined for each that is unreadable.
   */
  readonly inside: readonly (readonly ShellStep[] | undefined)[];
}

/** Maximum number of characters of a script that is parsed. */
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
  return (parts ?? []).every(
    (part) => !EXPANDED.has(part.type) && (part.type !== 'DoubleQuoted' || isPlain(part.parts)),
  );
}

const wordOf = (word: Word): ShellWord => (isPlain(word.parts) ? word.value : undefined);

function redirectOf(redirect: Redirection): ShellRedirect {
  const named = redirect.descriptor;
  const descriptor = named?.type === 'FileDescriptor' ? named.value : redirect.operator.startsWith('<') ? 0 : 1;
  if (redirect.type === 'HereDoc') {
    const plain = redirect.delimiter?.quoted === true || isPlain(redirect.body.parts);
    return {
      operator: redirect.operator,
      descriptor,
      target: undefined,
      ...(plain ? { text: redirect.body.text } : {}),
    };
  }
  return {
    operator: redirect.operator,
    descriptor,
    target: redirect.target === undefined ? undefined : wordOf(redirect.target),
  };
}

/** Returns the scripts inside a word. Undefined for a script that could not be parsed. */
function scriptsIn(part: WordPart): readonly (ParsedScript | undefined)[] {
  if (part.type === 'CommandExpansion' || part.type === 'ProcessSubstitution') return [part.script];
  if (part.type === 'DoubleQuoted') return part.parts.flatMap(scriptsIn);
  return EXPANDED.has(part.type) && /\$\(|`|[<>]\(/.test(part.text) ? [undefined] : [];
}

const scriptsInWord = (word: Word | undefined): readonly (ParsedScript | undefined)[] =>
  (word?.parts ?? []).flatMap(scriptsIn);

function scriptsInCommand({ name, prefix, suffix }: Command): readonly (ParsedScript | undefined)[] {
  const parts = [...prefix, ...suffix].flatMap((one) => {
    if (one.type === 'Word') return scriptsInWord(one);
    if (one.type === 'Assignment')
      return one.value.type === 'ArrayValue' ? one.value.elements.flatMap(scriptsInWord) : scriptsInWord(one.value);
    return 'target' in one ? scriptsInWord(one.target) : [];
  });
  return [...scriptsInWord(name), ...parts];
}

function simple(command: Command): ShellCommand | undefined {
  const { name, args, redirects } = command;
  const word = name === undefined ? '' : wordOf(name);
  if (word === undefined) return undefined;
  const words = args.map((arg) => (arg.type === 'Word' ? wordOf(arg) : arg.text));
  return { name: word.slice(word.lastIndexOf('/') + 1), words, redirects: redirects.map(redirectOf) };
}

/** Maximum depth of scripts in scripts. */
const DEEPEST = 4;

function insideOf(commands: readonly Statement['command'][], depth: number): ShellStep['inside'] {
  return commands
    .flatMap((one) => (one.type === 'Command' ? scriptsInCommand(one) : []))
    .map((script) => (script === undefined || depth >= DEEPEST ? undefined : stepsOf(script, depth + 1)));
}

function pipelineSteps(node: Statement['command'], sure: boolean, depth: number): readonly ShellStep[] {
  if (node.type === 'AndOr') {
    const orAt = node.operators.indexOf('||');
    return node.commands.flatMap((one, i) => pipelineSteps(one, sure && (orAt < 0 || i <= orAt), depth));
  }
  const isPipeline = node.type === 'Pipeline';
  const commands = isPipeline ? node.commands : [node];
  const negated = isPipeline && node.prefixes.some(({ type }) => type === 'Negation');
  const simples = commands.map((one) => (one.type === 'Command' ? simple(one) : undefined));
  const pipeline = simples.includes(undefined) ? undefined : (simples as ShellPipeline);
  return [{ pipeline, sure: sure && !negated, inside: insideOf(commands, depth) }];
}

/** Returns the script in `bash -lc SCRIPT`. */
function scriptInside(pipeline: ShellPipeline): string | undefined {
  const [only, second] = pipeline;
  if (only === undefined || second !== undefined || !/^(?:ba|z|da)?sh$/.test(only.name)) return undefined;
  const flag = only.words.findIndex((word) => word !== undefined && /^-[a-z]*c[a-z]*$/.test(word));
  return flag < 0 ? undefined : only.words[flag + 1];
}

const NOT_PLAIN: ShellStep = { pipeline: undefined, sure: true, inside: [] };

function stepsOf(parsed: ParsedScript, depth: number): readonly ShellStep[] | undefined {
  if ((parsed.errors ?? []).length > 0) return undefined;
  return parsed.commands.flatMap((statement) => {
    if (statement.background === true) return [NOT_PLAIN];
    return pipelineSteps(statement.command, true, depth).flatMap((step) => {
      const inside = step.pipeline === undefined || depth >= DEEPEST ? undefined : scriptInside(step.pipeline);
      if (inside === undefined) return [step];
      return (readScript(inside, depth + 1) ?? [NOT_PLAIN]).map((one) => ({ ...one, sure: one.sure && step.sure }));
    });
  });
}

const readScript = (script: string, depth: number): readonly ShellStep[] | undefined =>
  script.length > LONGEST ? undefined : stepsOf(parse(script), depth);

/**
 * Returns the pipelines of a script in order. The script is parsed by a grammar and never run.
 * Undefined if it is malformed.
 */
export const shellSteps = (script: string): readonly ShellStep[] | undefined => readScript(script, 0);

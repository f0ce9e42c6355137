import { posix } from 'node:path';
import { ANYTHING, type CommandActs, type LineRange, type ShellAct } from './shell-act.js';
import { commandActs, printedText } from './shell-commands.js';
import { countOf, sed, tail } from './shell-show.js';
import {
  operands,
  type ShellCommand,
  type ShellPipeline,
  type ShellRedirect,
  type ShellStep,
  shellSteps,
} from './shell-syntax.js';

/** The effects of a script. Each has the folder that its paths are relative to. */
interface ShellReading {
  readonly acts: readonly { readonly act: ShellAct; readonly folder: string }[];
  /** Number of commands that print. If it is 1, the whole output is that command's. */
  readonly printing: number;
}

function within(range: LineRange | undefined, first: number, to: number | undefined): LineRange {
  const from = (range?.from ?? 1) + first - 1;
  const last = to === undefined ? undefined : from + to - first;
  const ends = [range?.to, last].filter((end) => end !== undefined);
  return { from, to: ends.length === 0 ? undefined : Math.min(...ends) };
}

/**
 * Returns the lines that a filter prints of its input. Undefined if the command's words do not
 * determine them.
 */
function passedOn({ name, words }: ShellCommand): LineRange | undefined {
  if (name === 'head') {
    const to = countOf(words);
    return to === undefined || operands(words, /^-[nc]$/).length > 0 ? undefined : { from: 1, to };
  }
  if (name === 'sed' || name === 'tail') {
    const [act] = (name === 'sed' ? sed : tail)([...words, '\0']).acts;
    return act?.kind === 'show' ? act.range : undefined;
  }
  return name === 'nl' || (name === 'cat' && operands(words).length === 0) ? { from: 1 } : undefined;
}

/** Filters whose output lines are all lines of the input. */
const LINE_FILTERS: ReadonlySet<string> = new Set(['head', 'tail', 'sort', 'uniq', 'grep', 'egrep', 'rg', 'cat']);

/** Returns the effects of a pipeline, extended by a command. */
function filterActs(before: CommandActs, filter: ShellCommand, input: string | undefined): CommandActs {
  const own = commandActs(filter, input);
  if (own.acts.some(({ kind }) => kind === 'anything')) return { acts: [...before.acts, ...own.acts], prints: true };
  const changes = own.acts.filter(({ kind }) => kind !== 'show' && kind !== 'list' && kind !== 'name');
  const range = passedOn(filter);
  const acts = before.acts.flatMap((act): readonly ShellAct[] => {
    if (act.kind === 'show') {
      if (range === undefined) return [{ kind: 'name', path: act.path }];
      return [{ ...act, range: within(act.range, range.from ?? 1, range.to) }];
    }
    if (act.kind === 'list') return LINE_FILTERS.has(filter.name) && !filter.words.includes('-c') ? [act] : [];
    return [act];
  });
  return { acts: [...acts, ...changes], prints: own.prints };
}

function writesTo({ operator, descriptor, target }: ShellRedirect): boolean {
  return (
    /^(?:>|>>|>\||&>|&>>|<>)$/.test(operator) && target !== '/dev/null' && !(descriptor !== 1 && target === undefined)
  );
}

/**
 * Returns the effects of a pipeline with a redirection: it writes its output to a file instead of
 * printing it. The written text is known if a here-document or `echo` goes into the file directly.
 */
function redirectedActs(pipeline: ShellPipeline, redirect: ShellRedirect): CommandActs {
  const { operator, descriptor, target } = redirect;
  if (target === undefined) return ANYTHING;
  const [only, second] = pipeline;
  const straight = only !== undefined && second === undefined && descriptor === 1 && /^>[>|]?$/.test(operator);
  const text = straight ? printedText(only) : undefined;
  const kind = operator === '>>' ? 'append' : 'write';
  return {
    acts: [text === undefined ? { kind: 'change', path: target } : { kind, path: target, text }],
    prints: false,
  };
}

function pipelineActs(pipeline: ShellPipeline): CommandActs {
  const [first, ...filters] = pipeline;
  if (first === undefined) return { acts: [], prints: false };
  let done = commandActs(first);
  let text = printedText(first);
  for (const filter of filters) {
    done = filterActs(done, filter, text);
    if (filter.name !== 'tee') text = undefined;
  }
  const written = pipeline.flatMap(({ redirects }) => redirects.filter(writesTo));
  for (const redirect of written) {
    const kept = done.acts.filter(({ kind }) => kind !== 'show' && kind !== 'list');
    const here = redirectedActs(pipeline, redirect);
    // The output goes into the file. Messages on another stream are ignored.
    done =
      redirect.descriptor === 1
        ? { acts: [...kept, ...here.acts], prints: here.prints }
        : { ...done, acts: [...done.acts, ...here.acts] };
  }
  return done;
}

const changesFiles = ({ acts }: CommandActs): boolean =>
  acts.some(({ kind }) => kind !== 'show' && kind !== 'list' && kind !== 'name');

/** Returns whether the commands inside a command's words may change files. */
const mayChange = (steps: readonly ShellStep[] | undefined): boolean =>
  steps === undefined || steps.some((step) => step.pipeline?.[0]?.name !== 'cd' && changesFiles(stepActs(step)));

/**
 * Returns the effects of a pipeline. If the pipeline may not have run, its output is ignored, and
 * its changes are unknown.
 */
function stepActs({ pipeline, sure, inside }: ShellStep): CommandActs {
  if (pipeline === undefined || inside.some(mayChange)) return ANYTHING;
  const done = pipelineActs(pipeline);
  if (sure) return done;
  return changesFiles(done) ? ANYTHING : { acts: [], prints: done.prints };
}

/**
 * Returns a script's effects on files, from its text and without running it. It follows reads,
 * listings and known changes. Every other command may change any file.
 */
export function readShell(script: string): ShellReading {
  const steps = shellSteps(script);
  if (steps === undefined) return { acts: [{ act: { kind: 'anything' }, folder: '.' }], printing: 1 };
  const acts: { readonly act: ShellAct; readonly folder: string }[] = [];
  let folder = '.';
  let printing = 0;
  for (const step of steps) {
    const { pipeline } = step;
    const [first] = pipeline ?? [];
    if (pipeline?.length === 1 && (first?.name === 'cd' || first?.name === 'pushd')) {
      const target = first.words.find((word) => word !== '--');
      // `\0` means that the target folder is unknown. Later names then cannot be resolved.
      folder =
        first.words.length === 0 || target === undefined || target === '-'
          ? '\0'
          : posix.isAbsolute(target)
            ? target
            : posix.join(folder, target);
      continue;
    }
    const done = stepActs(step);
    acts.push(...done.acts.map((act) => ({ act, folder })));
    if (done.prints) printing += 1;
  }
  return { acts, printing };
}

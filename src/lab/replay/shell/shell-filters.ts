import type { CommandActs, LineRange, ShellAct } from './shell-act.js';
import { commandActs } from './shell-commands.js';
import { countOf, sed, tail } from './shell-show.js';
import type { ShellCommand } from './shell-syntax.js';
import { operands } from './shell-words.js';

function within(range: LineRange | undefined, first: number, to: number | undefined): LineRange {
  const from = (range?.from ?? 1) + first - 1;
  const last = to === undefined ? undefined : from + to - first;
  const ends = [range?.to, last].filter((end) => end !== undefined);
  return { from, to: ends.length === 0 ? undefined : Math.min(...ends) };
}

/** The part that a filter lets through of what a command shows; undefined where it cannot be told. */
function passedOn({ name, words }: ShellCommand): LineRange | undefined {
  if (name === 'head') {
    const to = countOf(words);
    return to === undefined || operands(words, /^-[nc]$/).length > 0 ? undefined : { from: 1, to };
  }
  if (name === 'sed') {
    const acts = sed([...words, '\0'], { name, words, redirects: [] }).acts;
    return acts[0]?.kind === 'show' ? acts[0].range : undefined;
  }
  if (name === 'tail') {
    const acts = tail([...words, '\0'], { name, words, redirects: [] }).acts;
    return acts[0]?.kind === 'show' ? acts[0].range : undefined;
  }
  return name === 'nl' || (name === 'cat' && operands(words).length === 0) ? { from: 1 } : undefined;
}

/** Filters that drop whole lines of a list and change none. */
const LINE_FILTERS: ReadonlySet<string> = new Set(['head', 'tail', 'sort', 'uniq', 'grep', 'egrep', 'rg', 'cat']);

/** A pipeline with one more command at its end. */
export function filterActs(before: CommandActs, filter: ShellCommand): CommandActs {
  const own = commandActs(filter);
  if (own.acts.some(({ kind }) => kind === 'anything')) return { acts: [...before.acts, ...own.acts], prints: true };
  const changes = own.acts.filter(({ kind }) => kind === 'change' || kind === 'write' || kind === 'remove');
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

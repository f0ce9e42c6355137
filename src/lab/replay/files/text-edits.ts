import { bareLines, linesWithEnds } from './text-lines.js';

/** One replacement of text by text. */
export interface Replacement {
  readonly from: string;
  readonly to: string;
  readonly all: boolean;
}

function count(text: string, part: string): number {
  let found = 0;
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + part.length)) found += 1;
  return found;
}

function replaceOne(text: string, { from, to, all }: Replacement): string | undefined {
  if (from === '') return text === '' ? to : undefined;
  const times = count(text, from);
  if (times === 0 || (times > 1 && !all)) return undefined;
  return all ? text.split(from).join(to) : text.slice(0, text.indexOf(from)) + to + text.slice(text.indexOf(from) + from.length);
}

/** As if the file ended its lines the way the replacement does: agents see `\n` and their tools write back what the file had. */
function inItsLineEnds(text: string, { from, to, all }: Replacement): Replacement | undefined {
  if (!text.includes('\r\n') || from.includes('\r')) return undefined;
  return { from: from.replaceAll('\n', '\r\n'), to: to.replaceAll('\r\n', '\n').replaceAll('\n', '\r\n'), all };
}

/**
 * Applies replacements one after another as an edit tool does: each text must be there, and exactly once unless all are meant. Undefined where one does not
 * apply: then the tool did something else than what is known here, and the result is not known either.
 */
export function replaced(text: string, replacements: readonly Replacement[]): string | undefined {
  let result = text;
  for (const one of replacements) {
    const native = inItsLineEnds(result, one);
    const next = replaceOne(result, one) ?? (native === undefined ? undefined : replaceOne(result, native));
    if (next === undefined) return undefined;
    result = next;
  }
  return result;
}

/** Puts lines after the line of a number, 0 for the beginning; undefined where there is no such line. */
export function inserted(text: string, afterLine: number, lines: string): string | undefined {
  const all = linesWithEnds(text);
  if (!Number.isInteger(afterLine) || afterLine < 0 || afterLine > all.length) return undefined;
  const before = all.slice(0, afterLine).join('');
  const after = all.slice(afterLine).join('');
  const lead = before === '' || before.endsWith('\n') ? '' : '\n';
  const trail = after === '' || lines.endsWith('\n') ? '' : '\n';
  return before + lead + lines + trail + after;
}

/** Puts lines in the place of those from a first to a last number, both included; undefined where they are not there. */
export function rangeReplaced(text: string, first: number, last: number, lines: string): string | undefined {
  const all = linesWithEnds(text);
  const sound = Number.isInteger(first) && Number.isInteger(last) && first >= 1 && last >= first - 1 && last <= all.length;
  if (!sound) return undefined;
  const fresh = bareLines(lines).map((line) => `${line}\n`);
  const kept = all.slice(last);
  const end = kept.length === 0 && !text.endsWith('\n') && text !== '' ? fresh.join('').replace(/\n$/, '') : fresh.join('');
  return all.slice(0, first - 1).join('') + end + kept.join('');
}

import { isNamedBy } from '../../harness/tool-output/shell-changes.js';
import { type AskedChange, changedPart, putTexts, type ReplacingChange, replacedTexts } from './asked-change.js';

/** The call that gave a text: a read, a search, another command, or the step of an own edit. */
export type TextSource = 'read' | 'search' | 'command' | number;

/** A text of a file that the agent had, and where it came from. */
export interface KnownText {
  readonly text: string;
  readonly from: TextSource;
}

/** An edit that an agent made, by its step. */
export interface OwnEdit {
  readonly step: number;
  readonly change: AskedChange;
}

/** Maximum number of own edits that are followed. Each is applied to each known text. */
const MOST_EDITS = 50;

/**
 * Returns the new lines of own edits, and the known texts after these edits. `known` and `edits`
 * are in the order of their steps.
 */
export function editedTexts(
  known: readonly { readonly text: string; readonly step: number }[],
  edits: readonly OwnEdit[],
): readonly KnownText[] {
  const left = [...known];
  let now: KnownText[] = [];
  for (const { step, change } of edits.slice(-MOST_EDITS)) {
    while ((left[0]?.step ?? step) < step) now.push({ text: left.shift()?.text ?? '', from: 'read' });
    if (change.kind !== 'write')
      now = now.map((one) => {
        const text = changedPart(change, one.text);
        return text === one.text ? one : { text, from: step };
      });
    now.push(...putTexts(change).map((text) => ({ text, from: step })));
  }
  return now.filter(({ from }) => from !== 'read');
}

/**
 * Returns where the agent had the texts that a change replaces, each source once. Undefined if a
 * text is missing. Earlier texts are preferred.
 */
export function sourcesOf(change: ReplacingChange, known: readonly KnownText[]): readonly TextSource[] | undefined {
  const found = replacedTexts(change).map((isIn) => known.find(({ text }) => isIn(text))?.from);
  const sources = found.filter((source) => source !== undefined);
  return sources.length < found.length ? undefined : [...new Set(sources)];
}

/** Matches a line of a search that names its file: `a.ts:3:text`, `a.ts-4-text`, `a.ts:text`. */
const NAMED = /^(.+?)(?::(?:\d+:)?|-\d+-)(.*)$/;
const NUMBERED = /^\d+[:-](.*)$/;

/**
 * Returns the lines of a file in the output of a search, without their numbers. `isAlone`: the call
 * named no other file, so a numbered line needs no name.
 */
export function linesFound(output: string, path: string, isAlone: boolean): readonly string[] {
  return output.split('\n').flatMap((line) => {
    const [, alone] = isAlone ? (NUMBERED.exec(line) ?? []) : [];
    if (alone !== undefined) return [alone];
    const [, name, text] = NAMED.exec(line) ?? [];
    return name !== undefined && text !== undefined && isNamedBy(path, name) ? [text] : [];
  });
}

/** Joins lines with consecutive numbers. */
export function runsOf(lines: ReadonlyMap<number, string>): readonly string[] {
  const runs: string[][] = [];
  let last = Number.NaN;
  for (const [number, line] of [...lines].sort(([a], [b]) => a - b)) {
    if (number === last + 1) runs.at(-1)?.push(line);
    else runs.push([line]);
    last = number;
  }
  return runs.map((run) => run.join('\n'));
}

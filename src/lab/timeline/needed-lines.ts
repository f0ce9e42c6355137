import { usableLines } from '../../session/used-lines.js';
import { isVisible, type ModelCall, type Timeline, type TimelineItem } from './timeline.js';

/** A line that an answer used, with the results and user messages of its request that held it. */
export interface NeededLine {
  readonly line: string;
  readonly holders: readonly TimelineItem[];
}

/** The lines that a session's answers used of their requests, by call number. */
export type NeededLines = readonly (readonly NeededLine[])[];

const SOURCES: ReadonlySet<TimelineItem['kind']> = new Set(['user', 'result']);

/**
 * Returns the needed lines of every call. A needed line is in the words or arguments of the answer.
 * It was in a result or user message of the request, and in no earlier answer, from which the model
 * could have repeated it.
 */
export function neededLines({ items, calls }: Timeline): NeededLines {
  const holders = new Map<string, TimelineItem[]>();
  const said = new Set<string>();
  let learnt = 0;
  const learnUpTo = (end: number): void => {
    for (; learnt < end; learnt += 1) {
      const item = items[learnt];
      if (item === undefined || !SOURCES.has(item.kind)) continue;
      for (const line of usableLines(item.text)) {
        const known = holders.get(line);
        if (known === undefined) holders.set(line, [item]);
        else known.push(item);
      }
    }
  };
  const usedBy = (call: ModelCall): readonly NeededLine[] => {
    // Results that arrived between the calls of one answer were not part of its request.
    learnUpTo(call.outputs[0]?.index ?? learnt);
    const texts = call.outputs.flatMap(({ kind, text, argumentTexts }) =>
      kind === 'call' ? argumentTexts : kind === 'text' ? [text] : [],
    );
    const own = new Set(texts.flatMap((text) => [...usableLines(text)]));
    const needed = [...own].flatMap((line): readonly NeededLine[] => {
      if (said.has(line)) return [];
      const visible = (holders.get(line) ?? []).filter((item) => isVisible(call, item));
      return visible.length === 0 ? [] : [{ line, holders: visible }];
    });
    for (const line of own) said.add(line);
    return needed;
  };
  return calls.map(usedBy);
}

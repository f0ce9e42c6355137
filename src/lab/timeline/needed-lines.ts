import { isVisible, type ModelCall, type Timeline, type TimelineItem } from './timeline.js';

/** Shorter lines stand in many texts by chance. */
const LEAST_CHARS = 24;

/** What stands in front of a line that is shown: who said it in a chat, its number, the file and the number, the sign of a patch. */
const DECORATION = /^(?:user: )?(?:\d+(?:→|\t)\s*)?(?:[\w./@-]+:\d+[:-]\s*)?(?:[+-]\s*)?/;

/** A line without what tools put around it; undefined where it is too short to say where it came from. */
function bareLine(line: string): string | undefined {
  const trimmed = line.trim();
  if (trimmed.length < LEAST_CHARS) return undefined;
  const bare = trimmed.replace(DECORATION, '').trim();
  return bare.length < LEAST_CHARS ? undefined : bare;
}

/** Numbers for the lines of a session's texts: the same line has the same number wherever it stands. */
export class LineNumbers {
  readonly #numbers = new Map<string, number>();

  /** The lines of a text, each once; those that were never seen get a number. */
  learn(text: string): readonly number[] {
    const found = new Set<number>();
    for (const line of text.split('\n')) {
      const bare = bareLine(line);
      if (bare === undefined) continue;
      const number = this.#numbers.get(bare) ?? this.#numbers.size;
      this.#numbers.set(bare, number);
      found.add(number);
    }
    return [...found];
  }

  /** The lines of a text that were seen before. */
  known(text: string): ReadonlySet<number> {
    const found = new Set<number>();
    for (const line of text.split('\n')) {
      const number = this.#numbers.get(bareLine(line) ?? '');
      if (number !== undefined) found.add(number);
    }
    return found;
  }
}

/** A line that an answer used, with the results and messages of users of its request that held it. */
export interface NeededLine {
  readonly line: number;
  readonly holders: readonly TimelineItem[];
}

/** What the answers of a session used of what they had been shown. */
export interface NeededLines {
  readonly numbers: LineNumbers;
  /** By the number of the call; empty where its answer used nothing. */
  readonly byCall: readonly (readonly NeededLine[])[];
}

const SOURCES: ReadonlySet<TimelineItem['kind']> = new Set(['user', 'result']);

/**
 * The needed lines of every call: lines of at least 24 characters in the words and arguments of its answer that stood in a result or in a message of the user
 * in its request, and in no earlier answer. A line that the model had said itself may come from there.
 */
export function neededLines({ items, calls }: Timeline): NeededLines {
  const numbers = new LineNumbers();
  const holders = new Map<number, TimelineItem[]>();
  const said = new Set<number>();
  let learnt = 0;
  const learnUpTo = (end: number): void => {
    for (; learnt < end; learnt += 1) {
      const item = items[learnt];
      if (item === undefined || !SOURCES.has(item.kind)) continue;
      for (const line of numbers.learn(item.text)) {
        const known = holders.get(line);
        if (known === undefined) holders.set(line, [item]);
        else known.push(item);
      }
    }
  };
  const usedBy = (call: ModelCall): readonly NeededLine[] => {
    // Results that came between the calls of one answer were no part of its request.
    learnUpTo(call.outputs[0]?.index ?? learnt);
    const texts = call.outputs.flatMap(({ kind, text, argumentTexts }) =>
      kind === 'call' ? argumentTexts : kind === 'text' ? [text] : [],
    );
    const own = new Set(texts.flatMap((text) => numbers.learn(text)));
    const needed = [...own].flatMap((line): readonly NeededLine[] => {
      if (said.has(line)) return [];
      const visible = (holders.get(line) ?? []).filter((item) => isVisible(call, item));
      return visible.length === 0 ? [] : [{ line, holders: visible }];
    });
    for (const line of own) said.add(line);
    return needed;
  };
  return { numbers, byCall: calls.map(usedBy) };
}

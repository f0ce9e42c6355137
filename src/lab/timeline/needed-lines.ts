import { isVisible, type ModelCall, type Timeline, type TimelineItem } from './timeline.js';

/** Shorter lines occur in many texts by chance. */
const LEAST_CHARS = 24;

/**
 * The prefix of a displayed line: a speaker, a line number, a file with a number, or a patch sign.
 */
const DECORATION = /^(?:user: )?(?:\d+(?:→|\t)\s*)?(?:[\w./@-]+:\d+[:-]\s*)?(?:[+-]\s*)?/;

/**
 * Returns a line without the decoration of tools; undefined if it is too short to identify its
 * origin.
 */
function bareLine(line: string): string | undefined {
  const trimmed = line.trim();
  if (trimmed.length < LEAST_CHARS) return undefined;
  const bare = trimmed.replace(DECORATION, '').trim();
  return bare.length < LEAST_CHARS ? undefined : bare;
}

/** Numbers the lines of a session's texts. Equal lines have equal numbers. */
export class LineNumbers {
  readonly #numbers = new Map<string, number>();

  /** Returns the distinct lines of a text and numbers new ones. */
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

  /** Returns the lines of a text that were seen before. */
  known(text: string): ReadonlySet<number> {
    const found = new Set<number>();
    for (const line of text.split('\n')) {
      const number = this.#numbers.get(bareLine(line) ?? '');
      if (number !== undefined) found.add(number);
    }
    return found;
  }
}

/** A line that an answer used, with the results and user messages of its request that held it. */
export interface NeededLine {
  readonly line: number;
  readonly holders: readonly TimelineItem[];
}

/** The lines that a session's answers used of their requests. */
export interface NeededLines {
  readonly numbers: LineNumbers;
  /** Needed lines by call number; empty if the answer used none. */
  readonly byCall: readonly (readonly NeededLine[])[];
}

const SOURCES: ReadonlySet<TimelineItem['kind']> = new Set(['user', 'result']);

/**
 * Returns the needed lines of every call. A needed line has at least 24 characters and is in the
 * words or arguments of the answer. It was in a result or user message of the request, and in no
 * earlier answer, from which the model could have repeated it.
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
    // Results that arrived between the calls of one answer were not part of its request.
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

import { usableLines } from '../../session/used-lines.js';
import { isVisible, type ModelCall, type Timeline, type TimelineItem } from './timeline.js';

/** A line that an answer used, with the items of the request that contain the line. */
export interface NeededLine {
  readonly line: string;
  readonly holders: readonly TimelineItem[];
  /**
   * Whether the line occurs only in text that the model itself wrote: call arguments and messages.
   */
  readonly isOwn: boolean;
  /**
   * Returns whether an item contains the line. Finds it also inside a longer line, such as a path
   * in a list.
   */
  readonly isIn: (item: TimelineItem) => boolean;
}

/** For each call, the lines of its request that the answer used. */
export type NeededLines = readonly (readonly NeededLine[])[];

/** Returns the texts of an item whose lines can be needed lines. */
function heldTexts({ kind, text, argumentTexts }: TimelineItem): readonly string[] {
  if (kind === 'call') return argumentTexts;
  return kind === 'user' || kind === 'result' || kind === 'text' ? [text] : [];
}

const isInput = ({ kind }: TimelineItem): boolean => kind === 'user' || kind === 'result';

/**
 * Returns a function that searches items for a line. The result for each item is cached for all
 * policies.
 */
function searched(line: string): NeededLine['isIn'] {
  const found = new Map<TimelineItem, boolean>();
  return (item) => {
    const known = found.get(item) ?? item.text.includes(line);
    found.set(item, known);
    return known;
  };
}

const needs = new WeakMap<Timeline, NeededLines>();

/**
 * Returns the needed lines of every model call. The answer's text or arguments contain such a line.
 * So does a result, a user message or an earlier call's arguments in the request. A line that only
 * the model's earlier text contains is not needed, because every policy keeps that text.
 */
export function neededLines(timeline: Timeline): NeededLines {
  const known = needs.get(timeline) ?? searchedLines(timeline);
  needs.set(timeline, known);
  return known;
}

function searchedLines({ items, calls }: Timeline): NeededLines {
  const holders = new Map<string, TimelineItem[]>();
  let learnt = 0;
  const learnUpTo = (end: number): void => {
    for (; learnt < end; learnt += 1) {
      const item = items[learnt];
      if (item === undefined) continue;
      for (const line of new Set(heldTexts(item).flatMap((text) => [...usableLines(text)]))) {
        const known = holders.get(line);
        if (known === undefined) holders.set(line, [item]);
        else known.push(item);
      }
    }
  };
  const usedBy = (call: ModelCall): readonly NeededLine[] => {
    // Results that arrived between the calls of one answer were not part of its request.
    learnUpTo(call.outputs[0]?.index ?? learnt);
    const texts = call.outputs.flatMap((item) => (item.kind === 'thinking' ? [] : heldTexts(item)));
    const own = new Set(texts.flatMap((text) => [...usableLines(text)]));
    return [...own].flatMap((line): readonly NeededLine[] => {
      const visible = (holders.get(line) ?? []).filter((item) => isVisible(call, item));
      if (visible.every(({ kind }) => kind === 'text')) return [];
      return [{ line, holders: visible, isOwn: !visible.some(isInput), isIn: searched(line) }];
    });
  };
  return calls.map(usedBy);
}

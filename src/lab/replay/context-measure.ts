import * as z from 'zod';
import type { ContextSession } from '../../client/session/context-session.js';
import type { SessionAssembly } from '../../client/session/session-assembly.js';
import { commonLength } from '../../values/common-length.js';
import { defined } from '../../values/defined.js';

const count = z.int().nonnegative();

/** The sizes of one section of a context. */
export const sectionMeasureSchema = z.strictObject({
  name: z.enum(['system', 'pool', 'chat', 'active']),
  chars: count.describe('UTF-16 units'),
  bytes: count.describe('UTF-8'),
  tokens: count.optional().describe('By the tokenizer of the report; absent where tokens were not counted'),
});

/** The measure of one assembled context of a replay. */
export const contextMeasureSchema = z.strictObject({
  session: z.string(),
  turn: count,
  step: count.describe('The last step that it includes'),
  sha256: z.string(),
  active: count.describe('Objects with their content in it'),
  pool: count.describe('Objects that it lists'),
  sections: z.array(sectionMeasureSchema).describe('Without empty ones'),
});

export type SectionMeasure = z.infer<typeof sectionMeasureSchema>;
export type ContextMeasure = z.infer<typeof contextMeasureSchema>;

/** Counts the tokens of a text. */
export type CountTokens = (text: string) => number;

/** A counted text: the end positions of its pieces, and the number of tokens up to each end. */
interface Counted {
  readonly text: string;
  readonly ends: readonly number[];
  readonly tokens: readonly number[];
}

const NOTHING: Counted = { text: '', ends: [0], tokens: [0] };

/**
 * Counts the tokens of a growing text without counting the unchanged beginning again. Texts are cut
 * at line breaks, which changes a count by far less than one percent.
 */
export class GrowingCount {
  readonly #count: CountTokens;
  #before: Counted = NOTHING;

  constructor(count: CountTokens) {
    this.#count = count;
  }

  of(text: string): number {
    const { ends, tokens, text: before } = this.#before;
    const shared = commonLength(before, text);
    let kept = ends.length - 1;
    while ((ends[kept] ?? 0) > shared) kept -= 1;
    const newEnds = ends.slice(0, kept + 1);
    const newTokens = tokens.slice(0, kept + 1);
    let from = newEnds.at(-1) ?? 0;
    let sum = newTokens.at(-1) ?? 0;
    while (from < text.length) {
      const end = nextCut(text, from);
      sum += this.#count(text.slice(from, end));
      newEnds.push(end);
      newTokens.push(sum);
      from = end;
    }
    this.#before = { text, ends: newEnds, tokens: newTokens };
    return sum;
  }
}

const PIECE_UNITS = 512;

/** Returns the end of the line in which a piece of the given size would end. */
function nextCut(text: string, from: number): number {
  const end = text.indexOf('\n', from + PIECE_UNITS);
  return end < 0 ? text.length : end + 1;
}

const measured = (
  { session, turn, step, sha256, blocks }: SessionAssembly['record'],
  pool: number,
): Omit<ContextMeasure, 'sections'> => ({ session, turn, step, sha256, active: blocks.length, pool });

/** Returns the measure of a context without token counts. */
export const measureOf = (
  { record, bytes }: Awaited<ReturnType<ContextSession['nextContext']>>,
  pool: number,
): ContextMeasure => ({
  ...measured(record, pool),
  sections: record.sections.map(({ name, chars }) => ({
    name: name as SectionMeasure['name'],
    chars,
    bytes: bytes.get(name) ?? 0,
  })),
});

/** Measures the contexts of a session in order. */
export class ContextMeter {
  readonly #count: CountTokens | undefined;
  /** The counters of the growing sections. */
  readonly #growing = new Map<SectionMeasure['name'], GrowingCount>();

  /** Without `count`, tokens are not counted. */
  constructor(count: CountTokens | undefined) {
    this.#count = count;
  }

  measure({ sections, record }: SessionAssembly, pool: number): ContextMeasure {
    return {
      ...measured(record, pool),
      sections: sections.map((section) => {
        const { name, text } = section;
        const tokens = this.#tokens(name, text);
        return { name, chars: text.length, bytes: Buffer.byteLength(text), ...defined({ tokens }) };
      }),
    };
  }

  #tokens(name: SectionMeasure['name'], text: string): number | undefined {
    const count = this.#count;
    if (count === undefined) return undefined;
    // Active blocks may change anywhere in the section, so each block is counted separately, with a
    // cache.
    if (name === 'active') return text.split(/\n(?=ACTIVE_CONTENT id=)/).reduce((sum, block) => sum + count(block), 0);
    const growing = this.#growing.get(name) ?? new GrowingCount(count);
    this.#growing.set(name, growing);
    return growing.of(text);
  }
}

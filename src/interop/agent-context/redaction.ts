import * as z from 'zod';
import type { Json } from '../../objects/canonical-json.js';
import type { ContextRecord } from '../../objects/context-record.js';
import { mapTexts } from '../../objects/map-texts.js';
import { MASK, piecesWithout } from '../../redaction/mark.js';
import { redactions } from './shapes.js';

/** The type of the event records that say what may not be shown. */
export const REDACTION = 'context.redaction.applied';

/** Shorter texts of an item are masked only where they are the whole of a text: inside of others they stand for anything. What a rule itself spells out is masked at any length. */
const LEAST_INSIDE = 8;

/** What is wrong in one field says nothing of the others: whatever the data says badly is read as unknown, and the item stays hidden. */
const ruleData = z.object({
  redaction_state: redactions.exclude(['none']).catch('unknown'),
  redaction_method: z.string().min(1).max(400).catch('unknown'),
  redacted_by: z.string().min(1).max(400).optional().catch(undefined),
  reason: z.string().max(400).optional().catch(undefined),
  policy_refs: z.array(z.string().min(1).max(400)).catch([]),
  /** Texts that are masked wherever they stand; without any, nothing of the item is shown. */
  exact: z.array(z.string().min(1)).catch([]),
  /** What is shown in its place. */
  replacement: z.string().optional().catch(undefined),
});

/** That something of an item may not be shown. */
export type RedactionRule = z.output<typeof ruleData>;

/** An item as a reader may see it. */
export interface Shown {
  readonly text: string | undefined;
  readonly rule: RedactionRule | undefined;
  /** Nothing of the item itself is shown: the text, if any, stands in its place. */
  readonly isReplaced: boolean;
}

/** The rules of some event records, by what they are about; of two about one thing the later one holds. */
function rulesOf(events: readonly ContextRecord<'event'>[]): ReadonlyMap<string, RedactionRule> {
  const rules = new Map<string, RedactionRule>();
  for (const { body } of events) {
    if (body.type !== REDACTION || body.subject === undefined) continue;
    const data = typeof body.data === 'object' && body.data !== null ? body.data : {};
    rules.set(body.subject, ruleData.parse(data));
  }
  return rules;
}

/** What each rule of some event records hides, by what it is about; nothing where that is not found. `isWhole`: all of it, not only some texts. */
export function ruleTexts(
  events: readonly ContextRecord<'event'>[],
  textOf: (name: string) => readonly string[],
): ReadonlyMap<string, { readonly texts: readonly string[]; readonly isWhole: boolean }> {
  const rules = [...rulesOf(events)];
  return new Map(
    rules.map(([name, { exact }]) => [name, exact.length > 0 ? { texts: exact, isWhole: false } : { texts: textOf(name), isWhole: true }]),
  );
}

/** What was redacted as a whole: of these the texts must be known to keep them out of everything else. */
export function redactedWhole(events: readonly ContextRecord<'event'>[]): readonly string[] {
  return [...rulesOf(events)].flatMap(([name, { exact }]) => (exact.length === 0 ? [name] : []));
}

/** What a masked occurrence inside of another item is called. */
const ELSEWHERE: RedactionRule = {
  redaction_state: 'masked',
  redaction_method: 'masked where it repeats what was redacted',
  redacted_by: undefined,
  reason: undefined,
  policy_refs: [],
  exact: [],
  replacement: undefined,
};

/**
 * Keeps what was redacted out of everything that is written: of the items that the rules name, and of every other text that repeats them. Made of the texts as they are
 * stored, by what they are named.
 */
export class Redactor {
  readonly #rules: ReadonlyMap<string, RedactionRule>;
  /** The longest first, so that no part of one is left by another. */
  readonly #hidden: readonly string[];
  /** The same, to tell that a text is one of them. */
  readonly #whole: ReadonlySet<string>;
  /** Those of them that rules spell out. */
  readonly #exact: ReadonlySet<string>;
  /** The texts that are masked wherever they stand. */
  readonly hidden: readonly string[];
  readonly policies: readonly string[];

  constructor(events: readonly ContextRecord<'event'>[], textOf: (name: string) => readonly string[]) {
    this.#rules = rulesOf(events);
    this.#exact = new Set([...this.#rules.values()].flatMap(({ exact }) => exact));
    const taken = [...this.#rules].flatMap(([name, { exact }]) => (exact.length > 0 ? exact : textOf(name)));
    this.#hidden = [...new Set(taken.flatMap((text) => [text, text.trim()]))]
      .filter((text) => text !== '')
      .sort((a, b) => b.length - a.length);
    this.#whole = new Set(this.#hidden);
    this.hidden = this.#hidden.filter((text) => this.#isHiddenInside(text));
    this.policies = [...new Set([...this.#rules.values()].flatMap(({ policy_refs }) => policy_refs))];
  }

  /** Those of whole items that are masked where they stand by themselves alone: they are too short for anything else. */
  get hiddenWords(): readonly string[] {
    return this.#hidden.filter((text) => !this.#isHiddenInside(text));
  }

  /** The rule about an item, by any of its names. */
  ruleOf(names: readonly string[]): RedactionRule | undefined {
    return names.map((name) => this.#rules.get(name)).find((rule) => rule !== undefined);
  }

  /** A text of an item, or a value as the text of its JSON, as it may be shown; no text where nothing of it may. */
  shown(names: readonly string[], said: Json): Shown {
    const rule = this.ruleOf(names);
    if (rule !== undefined && rule.exact.length === 0) return { text: rule.replacement, rule, isReplaced: true };
    const textOf = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value));
    // Before it is JSON: what is escaped there is not found any more.
    const masked = textOf(this.without(said));
    return { text: masked, rule: rule ?? (masked === textOf(said) ? undefined : ELSEWHERE), isReplaced: false };
  }

  /** A value without what was redacted, in any text of it. */
  without<Value>(value: Value): Value {
    return this.#hidden.length === 0 ? value : (mapTexts(value as Json, (text) => this.#masked(text)) as Value);
  }

  #isHiddenInside(text: string): boolean {
    return this.#exact.has(text) || text.length >= LEAST_INSIDE;
  }

  #masked(text: string): string {
    return this.#whole.has(text) ? MASK : piecesWithout(text, this.hidden).join(MASK);
  }
}

import * as z from 'zod';
import type { Json } from '../../objects/canonical-json.js';
import type { ContextRecord } from '../../objects/context-record.js';
import { mapTexts } from '../../objects/map-texts.js';
import { MASK, piecesWithout } from '../../redaction/mark.js';

/** How an item is hidden from a reader. */
export const redactions = z.enum([
  'none',
  'masked',
  'removed',
  'summarized',
  'encrypted_ref',
  'policy_blocked',
  'unknown',
]);
/** The type of event records that carry redaction rules. */
export const REDACTION = 'context.redaction.applied';

/**
 * Minimum characters of an item's text that is masked inside other texts. A shorter text occurs
 * there by chance, so it is masked only as a whole text. Texts that a rule spells out are masked at
 * any length.
 */
const LEAST_INSIDE = 8;

/**
 * An invalid field does not invalidate the others. It counts as unknown, and the item stays hidden.
 */
const ruleData = z.object({
  redaction_state: redactions.exclude(['none']).catch('unknown'),
  redaction_method: z.string().min(1).max(400).catch('unknown'),
  redacted_by: z.string().min(1).max(400).optional().catch(undefined),
  reason: z.string().max(400).optional().catch(undefined),
  policy_refs: z.array(z.string().min(1).max(400)).catch([]),
  /** Texts to mask in every item. If empty, the rule hides the whole item. */
  exact: z.array(z.string().min(1)).catch([]),
  /** The text shown instead. */
  replacement: z.string().optional().catch(undefined),
});

/** A rule that hides an item or parts of it. */
export type RedactionRule = z.output<typeof ruleData>;

/** An item as a reader may see it. */
export interface Shown {
  readonly text: string | undefined;
  readonly rule: RedactionRule | undefined;
  /** True if the item is hidden entirely. The text, if any, is its replacement. */
  readonly isReplaced: boolean;
}

/**
 * Returns the rules of event records by subject. A later rule replaces an earlier one on the same
 * subject.
 */
function rulesOf(events: readonly ContextRecord<'event'>[]): ReadonlyMap<string, RedactionRule> {
  const rules = new Map<string, RedactionRule>();
  for (const { body } of events) {
    if (body.type !== REDACTION || body.subject === undefined) continue;
    const data = typeof body.data === 'object' && body.data !== null ? body.data : {};
    rules.set(body.subject, ruleData.parse(data));
  }
  return rules;
}

/**
 * Returns the texts that each rule hides, by subject, or no texts if the subject is not found.
 * `isWhole` means that the rule hides the entire subject, not only some texts.
 */
export function ruleTexts(
  events: readonly ContextRecord<'event'>[],
  textOf: (name: string) => readonly string[],
): ReadonlyMap<string, { readonly texts: readonly string[]; readonly isWhole: boolean }> {
  const rules = [...rulesOf(events)];
  return new Map(
    rules.map(([name, { exact }]) => [
      name,
      exact.length > 0 ? { texts: exact, isWhole: false } : { texts: textOf(name), isWhole: true },
    ]),
  );
}

/** Returns the names of wholly redacted subjects. Their texts must be hidden in all other items. */
export function redactedWhole(events: readonly ContextRecord<'event'>[]): readonly string[] {
  return [...rulesOf(events)].flatMap(([name, { exact }]) => (exact.length === 0 ? [name] : []));
}

/** The rule reported for an item that only repeats text of redacted items. */
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
 * Removes redacted text from all output: from the items that rules name, and from every other text
 * that repeats it. Created from the rules and a function that finds stored texts by name.
 */
export class Redactor {
  readonly #rules: ReadonlyMap<string, RedactionRule>;
  /** Longest first, so that a shorter text does not mask part of a longer one. */
  readonly #hidden: readonly string[];
  /** The same texts as a set, for comparing whole texts. */
  readonly #whole: ReadonlySet<string>;
  /** The texts that rules spell out. */
  readonly #exact: ReadonlySet<string>;
  /** The texts that are masked inside other texts. */
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

  /**
   * The texts of whole items that are masked only as whole words, because they are too short to be
   * masked inside other texts.
   */
  get hiddenWords(): readonly string[] {
    return this.#hidden.filter((text) => !this.#isHiddenInside(text));
  }

  /** Returns the rule of an item by any of its names. */
  ruleOf(names: readonly string[]): RedactionRule | undefined {
    return names.map((name) => this.#rules.get(name)).find((rule) => rule !== undefined);
  }

  /**
   * Returns an item's text, or a value's JSON text, without redacted text. The text is undefined if
   * the item is hidden without a replacement.
   */
  shown(names: readonly string[], said: Json): Shown {
    const rule = this.ruleOf(names);
    if (rule !== undefined && rule.exact.length === 0) return { text: rule.replacement, rule, isReplaced: true };
    const textOf = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value));
    // Masked before serializing, because JSON escapes would hide the matches.
    const masked = textOf(this.without(said));
    return { text: masked, rule: rule ?? (masked === textOf(said) ? undefined : ELSEWHERE), isReplaced: false };
  }

  /** Returns a value with redacted text removed from every string in it. */
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

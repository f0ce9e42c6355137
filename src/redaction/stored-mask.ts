import { createHmac } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Json } from '../objects/canonical-json.js';
import { hiddenRanges, MASK, piecesWithout } from './mark.js';
import { withoutPublishedForms } from './published-rules.js';
import { kindOfSecret, withoutForms } from './secret-forms.js';
import { isLikelySecret, isSecretFlag, isSecretName, withoutNamedValues } from './secret-names.js';
import { secretMembers } from './secrets.js';
import { type FoundSecrets, STORED_MARK } from './stored-marks.js';
import { suspiciousParts, suspiciousPlaces } from './suspicious-parts.js';
import type { MaskRules } from './text-mask.js';

/**
 * The secrets that are masked before anything is stored:
 * - `known`: known forms, and values of secrets' names that look like secrets
 * - `strict`: also all other values of secrets' names, except placeholders
 */
export type MaskLevel = 'known' | 'strict';

/** The settings of a mask. */
export interface StoredMaskSettings {
  /** The data folder's secret key. It makes marks that can be compared but not guessed. */
  readonly key: Buffer;
  readonly level: MaskLevel;
  /** Whether the answers that agents get from their tools are masked too. */
  readonly inAnswers?: boolean;
  /** The user's own texts and patterns. */
  readonly rules?: Pick<MaskRules, 'texts' | 'patterns'>;
}

const DIGITS = 12;
/**
 * Minimum length of a secret, or of a line of it, that is masked wherever the same call repeats it.
 */
const LEAST_REPEATED = 12;

/**
 * Minimum and maximum characters of a text whose suspicious places and masked parts are cached. The
 * next answer may show some of its lines.
 */
const KEPT = { least: 4_096, most: 4 * 1_048_576 } as const;

/** A masked text and the secrets in it. */
interface Masked {
  readonly masked: string;
  readonly found: FoundSecrets;
}

/** The cached work on a text: its suspicious places and its masked parts. */
interface MaskedWork {
  readonly text: string;
  readonly places: readonly number[];
  readonly parts: Map<string, Masked>;
}

/**
 * Derives the work on a text from the cached work on a text that contains all its lines. Undefined
 * if it does not.
 */
function linesOf({ text: whole, places, parts }: MaskedWork, text: string): MaskedWork | undefined {
  if (text.length >= whole.length) return undefined;
  const from = whole.indexOf(text);
  const end = from + text.length;
  const isLines = from >= 0 && (from === 0 || whole[from - 1] === '\n') && (whole[end] === '\n' || text.endsWith('\n'));
  if (!isLines) return undefined;
  return { text, places: places.filter((at) => at >= from && at < end).map((at) => at - from), parts };
}

/** Matches our stored marks, and the mark that the rules use. */
const HELD = new RegExp(`${STORED_MARK.source}|${MASK.replace(/[[\]]/g, '\\$&')}`, 'g');

const isMark = (text: string): boolean => text.replace(HELD, '').replace(/["'`\s\\]/g, '') === '';

/**
 * Replaces secrets by stable marks before a text is stored. Equal secrets have equal marks in one
 * data folder. The same text always gives the same result, and masking twice changes nothing.
 */
export class StoredMask {
  readonly #settings: StoredMaskSettings;
  readonly inAnswers: boolean;
  /** Cache of masked texts by original text, because agents read the same files repeatedly. */
  readonly #known = new LRUCache<string, Masked>({
    maxSize: 8 * 1_048_576,
    sizeCalculation: (made, text) => text.length + made.masked.length + 64,
  });

  /**
   * The work on the last text of cacheable length. An answer usually shows lines of the file that
   * was read last.
   */
  #last: MaskedWork | undefined;

  constructor(settings: StoredMaskSettings) {
    this.#settings = settings;
    this.inAnswers = settings.inAnswers === true;
  }

  /** Returns a text with marks in place of secrets. Adds the masked secrets to `found`. */
  text(text: string, found?: FoundSecrets): string {
    const made = this.#known.get(text) ?? this.#made(text);
    this.#known.set(text, made);
    if (found !== undefined) for (const [mark, secret] of made.found) found.set(mark, secret);
    return made.masked;
  }

  /** Returns a JSON value with marks in place of secrets, in names and values at any depth. */
  value(value: Json, found: FoundSecrets = new Map()): Json {
    return this.#value(value, { isSecret: false, found });
  }

  /** Masks repetitions of secrets found in other texts, such as a part of a private key. */
  withoutRepeated(text: string, found: FoundSecrets): string {
    let shown = text;
    for (const [mark, secret] of found) {
      if (isMark(secret)) continue;
      const parts = [secret, ...secret.split('\n').map((line) => line.trim())];
      for (const part of parts)
        if (part.length >= LEAST_REPEATED && shown.includes(part)) shown = shown.replaceAll(part, mark);
    }
    return shown;
  }

  /** Returns the mark of a secret. */
  mark(secret: string): string {
    const digest = createHmac('sha256', this.#settings.key).update(secret).digest('hex').slice(0, DIGITS);
    return `⟦masked:${kindOfSecret(secret)}:${digest}⟧`;
  }

  #made(text: string): Masked {
    const found: FoundSecrets = new Map();
    const own =
      this.#settings.rules === undefined ? text : this.#without(text, (one) => this.#withoutOwn(one), { found });
    const { places, parts } = this.#workOn(own);
    let isChanged = false;
    const masked = suspiciousParts(own, places).map(({ text: part, isSuspicious }) => {
      if (!isSuspicious) return part;
      const made = parts.get(part) ?? this.#part(part);
      parts.set(part, made);
      for (const [mark, secret] of made.found) found.set(mark, secret);
      isChanged ||= made.masked !== part;
      return made.masked;
    });
    // A copy of a long unchanged text would cost memory.
    return { masked: isChanged ? masked.join('') : own, found };
  }

  /**
   * Returns the suspicious places of a text, with masked parts from the cache if its lines come
   * from the last text.
   */
  #workOn(text: string): MaskedWork {
    const isKept = text.length >= KEPT.least && text.length <= KEPT.most;
    const lines = isKept && this.#last !== undefined ? linesOf(this.#last, text) : undefined;
    if (lines !== undefined) return lines;
    const work = { text, places: suspiciousPlaces(text), parts: new Map<string, Masked>() };
    if (isKept) this.#last = work;
    return work;
  }

  #part(text: string): Masked {
    const found: FoundSecrets = new Map();
    const forms = this.#without(text, (one) => withoutPublishedForms(withoutForms(one)), { found });
    const isStrict = this.#settings.level === 'strict';
    const accepts = (secret: string): boolean => isLikelySecret(secret, isStrict);
    return { masked: this.#without(forms, withoutNamedValues, { found, accepts }), found };
  }

  #withoutOwn(text: string): string {
    const { texts = [], patterns = [] } = this.#settings.rules ?? {};
    let between = piecesWithout(text, texts);
    for (const pattern of patterns) between = between.flatMap((part) => pattern.split(part, -1));
    return between.join(MASK);
  }

  /** Replaces each range that `rule` hides and `accepts` confirms by the mark of its secret. */
  #without(
    text: string,
    rule: (text: string) => string,
    { found, accepts = () => true }: { readonly found: FoundSecrets; readonly accepts?: (secret: string) => boolean },
  ): string {
    // While the rule runs, our marks are replaced by `MASK`, which rules know. Rules would take the
    // words of our marks for a name and its value.
    const held: string[] = [];
    const isHolding = text.includes('⟦') || text.includes(MASK);
    const plain = isHolding
      ? text.replace(HELD, (one) => {
          held.push(one);
          return MASK;
        })
      : text;
    const masked = rule(plain);
    if (masked === plain) return text;
    const ranges = hiddenRanges(plain, masked);
    // If the positions of the secrets are uncertain, hides the whole text.
    if (ranges === undefined) return this.#hidden(text, found);
    const restored = (part: string): string => part.replaceAll(MASK, () => held.shift() ?? MASK);
    const pieces: string[] = [];
    let at = 0;
    for (const { from, end } of ranges) {
      pieces.push(restored(plain.slice(at, from)));
      const secret = restored(plain.slice(from, end));
      pieces.push(isMark(secret) || !accepts(secret) ? secret : this.#hidden(secret, found));
      at = end;
    }
    return pieces.join('') + restored(plain.slice(at));
  }

  #hidden(secret: string, found: FoundSecrets): string {
    const mark = this.mark(secret);
    found.set(mark, secret);
    return mark;
  }

  #value(value: Json, within: { readonly isSecret: boolean; readonly found: FoundSecrets }): Json {
    const { isSecret, found } = within;
    if (typeof value === 'string') {
      const masked = this.text(value, found);
      if (!isSecret || masked !== value || isMark(value) || !isLikelySecret(value, this.#settings.level === 'strict'))
        return masked;
      return this.#hidden(value, found);
    }
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value))
      return value.map((one, i) => {
        const before: Json | undefined = value[i - 1];
        return this.#value(one, { isSecret: isSecret || (typeof before === 'string' && isSecretFlag(before)), found });
      });
    const named = secretMembers(value as Readonly<Record<string, Json>>);
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [
        this.text(name, found),
        this.#value(one as Json, { isSecret: isSecret || named.includes(name) || isSecretName(name), found }),
      ]),
    );
  }
}

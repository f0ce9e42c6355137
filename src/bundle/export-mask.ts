import { readFile } from 'node:fs/promises';
import type { ExportTarget } from '../cli/contract.js';
import { readPlaces, searchedPlaces } from '../history/search/search.js';
import { distinctValues } from '../redaction/named-values.js';
import { parseMaskRules, TextMask } from '../redaction/text-mask.js';
import { BundleError } from './bundle-error.js';
import type { BundleMask } from './masked-names.js';

/** A mask with the length of the shortest text that it hides. */
export interface ExportMask extends BundleMask {
  readonly shortest: number;
}

/** Rejects an export without a mask if the session has redaction rules. */
export async function requireUnredacted({
  timeline,
  session,
  hiddenTexts,
  applyRules,
}: Pick<ExportTarget, 'timeline' | 'session' | 'hiddenTexts' | 'applyRules'>): Promise<void> {
  const count = (await hiddenTexts(timeline, session)).inForce;
  if (count === 0) return;
  const ways = [
    '--redact to mask it',
    '--with-redacted to include it',
    ...applyRules.map((name) => `--format ${name}, which applies the rules`),
  ];
  throw new BundleError(
    'redacted',
    `session ${session} has redaction rules (${count}), and the file would contain the text that they hide: use ` +
      `${ways.slice(0, -1).join(', ')}, or ${ways.at(-1)}`,
  );
}

/**
 * Builds the mask that the flags ask for: the session's rules, the rules of a file, and secrets of
 * known forms. Undefined without `--redact`: then every byte is exported, because ids and proofs
 * cover every byte.
 *
 * @throws {BundleError} `redacted` – the session has rules, and no flag says what to do
 */
export async function exportMask(target: ExportTarget): Promise<ExportMask | undefined> {
  const { timeline, session, hiddenTexts } = target;
  const { redact, withRedacted } = target.flags;
  if (redact === undefined) {
    if (withRedacted !== true) await requireUnredacted(target);
    return undefined;
  }
  const rules = redact === true ? '' : await readFile(String(redact), 'utf8');
  return sessionMask({ timeline, session, hiddenTexts }, { rules, ignoresUnresolved: withRedacted === true });
}

/**
 * Finds the values of secrets' names in a session's texts that are so distinct that an export hides
 * their repetitions. Leaves out values in ids, because an export cannot mask ids.
 */
async function repeatedValues({
  timeline,
  session,
}: Pick<ExportTarget, 'timeline' | 'session'>): Promise<readonly string[]> {
  const { places } = await searchedPlaces(timeline, { session });
  const found = new Set<string>();
  for await (const batch of readPlaces(places))
    for (const { text } of batch) for (const value of distinctValues(text)) found.add(value);
  if (found.size === 0) return [];
  const lineage = (await timeline.present.lineage(session))?.segments.map((one) => one.session) ?? [];
  const ids = new Set([session, ...lineage, ...places.flatMap(({ object }) => object ?? [])]);
  return [...found].filter((value) => ![...ids].some((id) => id.includes(value))).sort();
}

/**
 * Builds a mask from a session's rules, from further rules as text, and from the known forms of
 * secrets. Also masks repetitions of the values of secrets' names.
 *
 * @throws {MaskError} `malformed-rules`
 * @throws {BundleError} `redacted` – a rule names an object that does not exist
 */
export async function sessionMask(
  { timeline, session, hiddenTexts }: Pick<ExportTarget, 'timeline' | 'session' | 'hiddenTexts'>,
  { rules, ignoresUnresolved = false }: { readonly rules: string; readonly ignoresUnresolved?: boolean },
): Promise<ExportMask> {
  const { texts, patterns } = parseMaskRules(rules);
  const own = await hiddenTexts(timeline, session);
  if (own.unresolved > 0 && !ignoresUnresolved) {
    throw new BundleError(
      'redacted',
      `${own.unresolved} of the rules of session ${session} name objects that do not exist in it and cannot be ` +
        'applied: add --with-redacted to export with the other rules only',
    );
  }
  const values = await repeatedValues({ timeline, session });
  const { masked, maskedValue } = new TextMask({ texts: [...texts, ...own.texts], words: own.words, values, patterns });
  return {
    masked,
    maskedValue,
    hides: (id: string) => own.objects.has(id),
    rules: { session: own.rules, texts: texts.length, patterns: patterns.length },
    shortest: Math.min(...own.words.map(({ length }) => length)),
  };
}

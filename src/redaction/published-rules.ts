import { rules } from '@secretlint/secretlint-rule-preset-recommend';
import { MASK } from './mark.js';

/** The part of secretlint's rule interface that is needed to find secrets in a text. */
interface PublishedRule {
  readonly meta: { readonly id: string };
  create(context: object, options: object): { file?(source: object): unknown };
}

interface Found {
  readonly range: readonly [from: number, end: number];
}

/**
 * Rules that are not used. `gcp` reads a file from disk and reports it as a whole; our rules for
 * names and private keys find the secrets in it. `filter-comments` lets a text switch rules off.
 * `basicauth` and `database-connection-string` report whole addresses, and skip passwords that look
 * like examples; our own form hides every password in an address.
 */
const LEFT_OUT: ReadonlySet<string> = new Set(
  ['gcp', 'filter-comments', 'basicauth', 'database-connection-string'].map(
    (name) => `@secretlint/secretlint-rule-${name}`,
  ),
);

/** Options for all rules. The ids of AWS access keys count as secrets here. */
const OPTIONS = { enableIDScanRule: true };

const PUBLISHED = (rules as unknown as readonly PublishedRule[]).filter(({ meta }) => !LEFT_OUT.has(meta.id));

/** The findings in the current text. The rules run synchronously, so they can share one list. */
let found: Found[] = [];
const CONTEXT = {
  sharedOptions: {},
  createTranslator: () => () => ({ message: '', messageId: '' }),
  report: (one: Found) => found.push(one),
  ignore: () => undefined,
};
const HANDLERS = PUBLISHED.map((rule) => rule.create(CONTEXT, OPTIONS));

/** Masks the secrets that secretlint's recommended rules find in a text. */
export function withoutPublishedForms(text: string): string {
  found = [];
  for (const handler of HANDLERS) handler.file?.({ content: text, filePath: undefined, ext: '' });
  if (found.length === 0) return text;
  const pieces: string[] = [];
  let done = 0;
  for (const { range } of found.sort((a, b) => a.range[0] - b.range[0] || b.range[1] - a.range[1])) {
    const [from, end] = range;
    // A rule may report a range that is already masked.
    if (end <= done || text.slice(from, end).includes(MASK)) continue;
    if (from >= done) pieces.push(text.slice(done, from), MASK);
    done = end;
  }
  return pieces.join('') + text.slice(done);
}

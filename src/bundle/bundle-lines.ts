import * as z from 'zod';
import { type Json, unboundedJson } from '../objects/canonical-json.js';
import type { StoredDocument } from '../xtdb/documents.js';

/** The newest version of the format: that of bundles in which something was masked; every earlier one is read. */
export const BUNDLE_VERSION = 2;
/** The version of every other bundle. */
export const WHOLE_VERSION = 1;
/** What the first line calls the format. */
export const BUNDLE_FORMAT = 'palimpsest-bundle';

const count = z.int().nonnegative();
const time = z.iso.datetime({ precision: 3 });
const session = z.string().min(1).max(200);
const document = z.looseObject({ 'xt/id': z.string().min(1).max(2_000), type: z.string() });

/** What a bundle is, before everything else. */
const header = z.strictObject({
  format: z.string().describe(`Always ${BUNDLE_FORMAT}`),
  version: count.describe('Of the format'),
  session: session.describe('The session that it holds'),
  turn: count.describe('The last turn that it holds'),
  step: count.describe('The last step that it holds'),
  sessions: z
    .array(session)
    .min(1)
    .max(1_000)
    .describe('The sessions whose steps make it up: those that it was forked from, the oldest first, then itself'),
  transactions: count,
  documents: count.describe('Versions of objects and parts, without texts'),
});

/** What was masked before a bundle was written; it says nothing of what. */
export const redacted = z.strictObject({
  rules: z
    .strictObject({ session: count, texts: count, patterns: count })
    .describe('How many rules said so: of the session, texts and patterns of a file; secrets of known forms are masked always'),
  versions: count.describe('Of files, calls and prompts'),
  steps: count,
  contexts: count.describe('Rendered anew out of what is left; they are marked'),
  records: count,
  names: count.describe('Of files and calls'),
});

const manifest = z.strictObject({
  texts: count.describe('Parts of texts'),
  documents: count,
  transactions: count,
  objects: z
    .strictObject({ file: count, toolcall: count, chat: count, system_prompt: count, session: count })
    .describe('Versions, by type'),
  parts: z.strictObject({ step: count, snapshot: count, assembly: count, record: count }),
  redacted: redacted.optional().describe('Present where something was masked before the bundle was written'),
  bytes: count.describe('Of all lines before this one, with their line ends'),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .describe('Of those bytes'),
});

/**
 * The lines of a bundle, in this order: `bundle`; then for each transaction the `text` parts that it is the first to need, `transaction`, and a `put` for each version that it wrote; at last
 * `manifest`. Each is one JSON object with sorted keys.
 */
export const LINES = {
  bundle: z.strictObject({ bundle: header }).describe('The first line'),
  text: z.strictObject({ text: document }).describe('A text, or a piece or list of pieces of one, under its own hash'),
  transaction: z
    .strictObject({
      transaction: z.strictObject({
        number: count.describe('From 1: contexts name it as their basis'),
        tx: count.describe('The transaction in the database that it was first written to'),
        time: time.describe('When that database learned it'),
      }),
    })
    .describe('What one transaction wrote follows'),
  put: z
    .strictObject({ put: document, valid: time.describe('From when on the version holds') })
    .describe('One version of an object or part as it is stored'),
  manifest: z.strictObject({ manifest }).describe('The last line'),
} as const;

/** A kind of line. */
export type LineKind = keyof typeof LINES;
/** What the first line says. */
export type BundleHeader = z.output<typeof header>;
/** What the last line says. */
export type BundleManifest = z.output<typeof manifest>;
/** One transaction of a bundle. */
export type BundleTransaction = z.output<typeof LINES.transaction>['transaction'];

/** One line that was read. */
export type BundleLine =
  | { readonly kind: 'bundle'; readonly header: BundleHeader }
  | { readonly kind: 'text'; readonly document: StoredDocument }
  | { readonly kind: 'transaction'; readonly transaction: BundleTransaction }
  | { readonly kind: 'put'; readonly document: StoredDocument; readonly validTime: Date }
  | { readonly kind: 'manifest'; readonly manifest: BundleManifest };

/** A line as it is written: canonical JSON, also of documents that nest deeper than hashes go. */
export function bundleLine(value: object): string {
  return `${unboundedJson(value as Json)}\n`;
}

/** The JSON Schema of a line, which is published. */
export function bundleJsonSchema(): object {
  const { $schema, ...rest } = z.toJSONSchema(z.union(Object.values(LINES)), { target: 'draft-2020-12' });
  return { $schema, title: 'One line of a Palimpsest bundle', ...rest };
}

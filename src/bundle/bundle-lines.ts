import * as z from 'zod';
import { type Json, unboundedJson } from '../objects/canonical-json.js';
import type { StoredDocument } from '../xtdb/documents.js';

/**
 * The newest version of the format, used for redacted bundles only. Readers also accept earlier
 * versions.
 */
export const BUNDLE_VERSION = 2;
/** The version of the format for bundles without redaction. */
export const WHOLE_VERSION = 1;
/** The name of the format in the first line. */
export const BUNDLE_FORMAT = 'palimpsest-bundle';

const count = z.int().nonnegative();
const time = z.iso.datetime({ precision: 3 });
const session = z.string().min(1).max(200);
const document = z.looseObject({ 'xt/id': z.string().min(1).max(2_000), type: z.string() });

/** The first line, which describes the bundle. */
const header = z.strictObject({
  format: z.string().describe(`Always ${BUNDLE_FORMAT}`),
  version: count.describe('Version of the format'),
  session: session.describe('The session in the bundle'),
  turn: count.describe('Last turn in the bundle'),
  step: count.describe('Last step in the bundle'),
  sessions: z
    .array(session)
    .min(1)
    .max(1_000)
    .describe('The sessions with its steps: its ancestors, the oldest first, then the session itself'),
  transactions: count,
  documents: count.describe('Versions of objects and parts, without texts'),
});

/** Counts of masked content. They do not reveal the content. */
export const redacted = z.strictObject({
  rules: z
    .strictObject({ session: count, texts: count, patterns: count })
    .describe(
      'Number of rules by origin: the session, texts and patterns of a file; known forms of secrets are always masked',
    ),
  versions: count.describe('Versions of files, calls and prompts with masked text'),
  steps: count,
  contexts: count.describe('Contexts rendered again from the masked content; each is marked'),
  records: count,
  names: count.describe('Names of files and calls with masked text'),
});

const manifest = z.strictObject({
  texts: count.describe('Number of lines with texts'),
  documents: count,
  transactions: count,
  objects: z
    .strictObject({ file: count, toolcall: count, chat: count, system_prompt: count, session: count })
    .describe('Number of versions by type'),
  parts: z.strictObject({ step: count, snapshot: count, assembly: count, record: count }),
  redacted: redacted.optional().describe('Present if content was masked before the bundle was written'),
  bytes: count.describe('Length of all lines before this one, with their line endings'),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .describe('Hash of those bytes'),
});

/**
 * The lines of a bundle, in order: `bundle`; the lines of each transaction; `manifest`. A
 * transaction begins with the `text` parts that it needs. Then come `transaction` and a `put` for
 * each version that it wrote. Each line is one JSON object with sorted keys.
 */
export const LINES = {
  bundle: z.strictObject({ bundle: header }).describe('The first line'),
  text: z
    .strictObject({ text: document })
    .describe('A text, one of its chunks, or the list of its chunks; the id contains its hash'),
  transaction: z
    .strictObject({
      transaction: z.strictObject({
        number: count.describe('Counts from 1; contexts name it as their basis'),
        tx: count.describe('Its number in the database that wrote it first'),
        time: time.describe('The transaction time in that database'),
      }),
    })
    .describe('The writes of one transaction follow'),
  put: z
    .strictObject({ put: document, valid: time.describe('Beginning of the valid time of the version') })
    .describe('One version of an object or part as stored'),
  manifest: z.strictObject({ manifest }).describe('The last line'),
} as const;

/** A kind of line. */
export type LineKind = keyof typeof LINES;
/** The content of the first line. */
export type BundleHeader = z.output<typeof header>;
/** The content of the last line. */
export type BundleManifest = z.output<typeof manifest>;
/** One transaction of a bundle. */
export type BundleTransaction = z.output<typeof LINES.transaction>['transaction'];

/** One parsed line of a bundle. */
export type BundleLine =
  | { readonly kind: 'bundle'; readonly header: BundleHeader }
  | { readonly kind: 'text'; readonly document: StoredDocument }
  | { readonly kind: 'transaction'; readonly transaction: BundleTransaction }
  | { readonly kind: 'put'; readonly document: StoredDocument; readonly validTime: Date }
  | { readonly kind: 'manifest'; readonly manifest: BundleManifest };

/** Returns a line as it is written: canonical JSON, without the depth limit of hashed data. */
export function bundleLine(value: object): string {
  return `${unboundedJson(value as Json)}\n`;
}

/** Returns the published JSON Schema of a line. */
export function bundleJsonSchema(): object {
  const { $schema, ...rest } = z.toJSONSchema(z.union(Object.values(LINES)), { target: 'draft-2020-12' });
  return { $schema, title: 'One line of a Palimpsest bundle', ...rest };
}

import type { FindHiddenTexts } from '../bundle/hidden-texts.js';
import type { BundleMask } from '../bundle/masked-names.js';
import type { ExportTarget, Written } from './contract.js';

/** A mask, and the length of the shortest text that it hides. */
interface ExportMask extends BundleMask {
  readonly shortest: number;
}

/** A requested export and its destination. */
export interface AskedExport extends ExportTarget {
  /** Whether redacted text may be included. */
  readonly withRedacted: boolean;
  /** Masks every text by rules; undefined for no masking. */
  readonly mask: ExportMask | undefined;
  /** The folder of the built review page for files. */
  readonly web: string;
  /** Finds what the redaction rules of the session hide. */
  readonly hiddenTexts: FindHiddenTexts;
  /** Formats that hide text by those rules, as alternatives to name. */
  readonly applyRules: readonly string[];
}

/** An export format. Its module loads on demand, while the database opens. */
interface ExportFormat {
  readonly about: string;
  load(): Promise<(asked: AskedExport) => Promise<Written>>;
}

/**
 * Rejects a bundle of a session with redaction rules. A bundle holds every byte, because ids and
 * proofs cover every byte.
 */
async function requireUnredacted(asked: AskedExport): Promise<void> {
  const { timeline, session, withRedacted, mask, hiddenTexts, applyRules } = asked;
  if (withRedacted || mask !== undefined) return;
  const count = (await hiddenTexts(timeline, session)).inForce;
  if (count === 0) return;
  const { BundleError } = await import('../bundle/bundle-error.js');
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
 * Rejects a page if a rule hides a very short text: masking that text everywhere would break the
 * page.
 */
async function requireFindable({ session, mask }: AskedExport): Promise<void> {
  const { LEAST_TEXT } = await import('../redaction/text-mask.js');
  if (mask === undefined || mask.shortest >= LEAST_TEXT) return;
  const { BundleError } = await import('../bundle/bundle-error.js');
  throw new BundleError(
    'redacted',
    `a rule of session ${session} hides an item whose text has fewer than ${LEAST_TEXT} characters, which cannot be ` +
      'masked in a page: use --format bundle with --redact, which hides the item itself',
  );
}

/** Returns the last step of the requested moment; undefined for the end of the session. */
async function lastStep({ timeline, session, when }: AskedExport): Promise<number | undefined> {
  const { stepAt } = await import('../client/session/fork-at.js');
  const isPlaced = Object.values(when).some((clock) => clock !== undefined);
  return isPlaced ? stepAt(timeline, session, { when, holder: async () => undefined }) : undefined;
}

/** The formats of Palimpsest's own. */
export const OWN_FORMATS: Readonly<Record<string, ExportFormat>> = {
  bundle: {
    about: 'one file with the whole session, for palimpsest import into any database (docs/bundle.md)',
    load: async () => {
      const { exportBundle } = await import('../bundle/export-bundle.js');
      return async (asked) => {
        const { timeline, session, folder } = asked;
        await requireUnredacted(asked);
        const { file, turn, step, manifest } = await exportBundle(timeline, {
          session,
          file: folder,
          upto: await lastStep(asked),
          mask: asked.mask,
        });
        const { documents, texts, transactions, redacted } = manifest;
        return {
          lines: [
            `session ${session}, turn ${turn}, step ${step}: ${documents} versions and parts of ${transactions} ` +
              `transactions, ${texts} texts in ${file}`,
            ...(redacted === undefined
              ? []
              : [
                  `redacted: something in ${redacted.versions} versions, ${redacted.steps} steps and ` +
                    `${redacted.records} records, ${redacted.names} names; ${redacted.contexts} contexts ` +
                    'rendered anew from the remaining text',
                ]),
          ],
          json: { format: 'bundle', session, turn, step, file, manifest },
        };
      };
    },
  },
  html: {
    about: 'one page for the browser with the session in it; needs no server (docs/review-page.md)',
    load: async () => {
      const [{ writePage }, { progressLine }] = await Promise.all([
        import('../http/write-page.js'),
        import('./output.js'),
      ]);
      const { MaskedAnswers } = await import('../http/mask-answers.js');
      return async (asked) => {
        const { timeline, session, folder, web } = asked;
        await requireUnredacted(asked);
        await requireFindable(asked);
        const line = progressLine();
        const onProgress = (what: string, done: number, total: number): void =>
          line.show(`${done} of ${total} ${what}`);
        try {
          const mask = asked.mask === undefined ? undefined : new MaskedAnswers(asked.mask);
          const written = await writePage(timeline, {
            session,
            file: folder,
            upto: await lastStep(asked),
            web,
            mask,
            onProgress,
          });
          const { file, bytes, sha256, manifest } = written;
          const { turn, step, calls, versions, objects, masked } = manifest;
          return {
            lines: [
              `session ${session}, turn ${turn}, step ${step}: ${calls.length} calls, ${versions} versions of ` +
                `${objects} objects in ${file} (${bytes} bytes)`,
              `the SHA-256 of its content is ${sha256}; the page shows it too`,
              ...(masked === null ? [] : [`${masked} texts were masked`]),
            ],
            json: {
              format: 'html',
              session,
              turn,
              step,
              file,
              bytes,
              sha256,
              calls: calls.length,
              versions,
              objects,
              masked,
            },
          };
        } finally {
          line.end();
        }
      };
    },
  },
};

import { fileURLToPath } from 'node:url';
import { BundleError } from '../../bundle/bundle-error.js';
import type { ExportTarget, Written } from '../../cli/contract.js';
import { lastStep } from '../../cli/export-formats.js';
import { progressLine } from '../../cli/output.js';
import { LEAST_TEXT } from '../../redaction/text-mask.js';
import { MaskedAnswers } from './mask-answers.js';
import { writePage } from './write-page.js';

/**
 * Rejects a page if a rule hides a very short text: masking that text everywhere would break the
 * page.
 */
function requireFindable({ session, mask }: ExportTarget): void {
  if (mask === undefined || mask.shortest >= LEAST_TEXT) return;
  throw new BundleError(
    'redacted',
    `a rule of session ${session} hides an item whose text has fewer than ${LEAST_TEXT} characters, which cannot be ` +
      'masked in a page: use --format bundle with --redact, which hides the item itself',
  );
}

/** Writes a session as one page that needs no server. */
export async function exportPage(target: ExportTarget): Promise<Written> {
  requireFindable(target);
  const { timeline, session, folder, home, mask } = target;
  const line = progressLine();
  try {
    const { file, bytes, sha256, manifest } = await writePage(timeline, {
      session,
      file: folder,
      upto: await lastStep(target),
      web: fileURLToPath(new URL('dist/page/', home)),
      mask: mask === undefined ? undefined : new MaskedAnswers(mask),
      onProgress: (what, done, total) => line.show(`${done} of ${total} ${what}`),
    });
    const { turn, step, versions, objects, masked } = manifest;
    const calls = manifest.calls.length;
    return {
      lines: [
        `session ${session}, turn ${turn}, step ${step}: ${calls} calls, ${versions} versions of ` +
          `${objects} objects in ${file} (${bytes} bytes)`,
        `the SHA-256 of its content is ${sha256}; the page shows it too`,
        ...(masked === null ? [] : [`${masked} texts were masked`]),
      ],
      json: { format: 'html', session, turn, step, file, bytes, sha256, calls, versions, objects, masked },
    };
  } finally {
    line.end();
  }
}

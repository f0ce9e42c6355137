import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { lastStep } from '../../bundle/bundle-commands.js';
import { BundleError } from '../../bundle/bundle-error.js';
import { collectSession } from '../../bundle/collect-session.js';
import { type ExportMask, exportMask, requireUnredacted, sessionMask } from '../../bundle/export-mask.js';
import { writeBundleFile } from '../../bundle/write-bundle-file.js';
import type { ExportTarget, Written } from '../../cli/contract.js';
import { progressLine } from '../../cli/output.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import type { SessionId } from '../../objects/ids.js';
import { unlessMissing } from '../../process/system-error.js';
import { LEAST_TEXT } from '../../redaction/text-mask.js';
import { AnswerPack, type WrittenBlock } from './answer-pack.js';
import { MaskedAnswers } from './mask-answers.js';
import { type PagedSession, pageAnswers } from './page-answers.js';
import {
  answerKey,
  BLOCK_ID,
  MANIFEST_ID,
  PAGE_FORMAT,
  PAGE_VERSION,
  type Packed,
  type PageManifest,
} from './page-format.js';

/** The content of a page. */
interface PageParts extends Pick<PagedSession, 'upto' | 'onProgress'> {
  readonly session: SessionId;
  /** The folder with the build of the review page that is embedded in page files. */
  readonly web: string;
  readonly mask?: MaskedAnswers | undefined;
}

/** A page and its destination. */
export interface PageFile extends PageParts {
  readonly file: string;
}

/** The path, size and content of a written page. */
export interface WrittenPage {
  readonly file: string;
  readonly bytes: number;
  /** Hash of the manifest, which has the hashes of all other content. The page shows it too. */
  readonly sha256: string;
  readonly manifest: PageManifest;
}

const digest = (text: string): string => `'sha256-${hash('sha256', text, 'base64')}'`;

/**
 * The content security policy: the page runs this script, uses this style sheet and makes no
 * requests.
 */
const policyOf = (script: string, style: string): string =>
  [
    "default-src 'none'",
    `script-src ${digest(script)}`,
    `style-src ${digest(style)}`,
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');

/**
 * Returns a text if it can be embedded in an element unchanged. Throws if HTML would interpret it.
 */
function inElement(text: string, name: 'script' | 'style'): string {
  if (new RegExp(`</${name}|<!--`, 'i').test(text))
    throw new Error(`BUG: the ${name} of the page contains </${name} or <!--`);
  return text;
}

async function builtPage(web: string): Promise<{ readonly script: string; readonly style: string }> {
  const read = (name: string): Promise<string | undefined> => unlessMissing(readFile(join(web, name), 'utf8'));
  const [script, style] = await Promise.all([read('page.js'), read('page.css')]);
  if (script === undefined || style === undefined)
    throw new BundleError(
      'unusable-file',
      `the review page is not built: ${web} lacks page.js or page.css; run npm run build`,
    );
  return { script: inElement(script, 'script'), style: inElement(style, 'style') };
}

/**
 * Wraps data in an element that browsers do not run. Base64 contains no character that ends an
 * element.
 */
const dataElement = (id: string, base64: string): string =>
  `<script type="application/octet-stream" id="${id}">${base64}</script>\n`;

/**
 * Yields the parts of the file in order. Yields each block when it is full, so that little more
 * than one block is in memory.
 */
async function* partsOf(
  paged: PagedSession,
  { mask, web }: PageParts,
  written: { manifest?: PageManifest; sha256?: string },
) {
  const { script, style } = await builtPage(web);
  const full: WrittenBlock[] = [];
  const pack = new AnswerPack((block) => full.push(block));
  const blocks: PageManifest['blocks'][number][] = [];
  function* drained(): Generator<string> {
    for (const { base64, ...block } of full.splice(0)) {
      yield dataElement(`${BLOCK_ID}${blocks.length}`, base64);
      blocks.push(block);
    }
  }
  yield [
    '<!doctype html>',
    '<html lang="en">',
    '<head>',
    '<meta charset="utf-8">',
    `<meta http-equiv="content-security-policy" content="${policyOf(script, style)}">`,
    '<meta name="referrer" content="no-referrer">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="color-scheme" content="light dark">',
    '<title>Palimpsest</title>',
    '<link rel="icon" href="data:,">',
    `<style>${style}</style>`,
    '</head>',
    '<body>',
    '<div id="page"></div>',
    '',
  ].join('\n');
  const { scope, objects, title, answers } = await pageAnswers({ ...paged, mask: mask?.mask });
  const known = new Map<string, Packed>();
  let versions = 0;
  for await (const answer of answers()) {
    const { path, parameters, body } = mask?.masked(answer) ?? answer;
    known.set(answerKey(path, parameters, scope), pack.add(body));
    if (path === '/v1/show') versions += 1;
    yield* drained();
  }
  const index = pack.members(known);
  pack.end();
  yield* drained();
  const { turn, step, sessions } = paged.collected;
  const parents = sessions.filter((one) => one !== scope.session).map((one) => mask?.mask.masked(one) ?? one);
  const manifest: PageManifest = {
    format: PAGE_FORMAT,
    version: PAGE_VERSION,
    ...scope,
    ...(parents.length === 0 ? {} : { parents }),
    title,
    turn,
    step,
    objects,
    versions,
    masked: mask?.count ?? null,
    blocks,
    answers: index,
  };
  const json = JSON.stringify(manifest);
  Object.assign(written, { manifest, sha256: hash('sha256', json) });
  yield dataElement(MANIFEST_ID, Buffer.from(json).toString('base64'));
  yield `<script type="module">${script}</script>\n</body>\n</html>\n`;
}

/** Yields the text of a page that contains a session. The same session gives the same bytes. */
async function pageParts(
  timeline: Timeline,
  page: PageParts,
  written: { manifest?: PageManifest; sha256?: string } = {},
): Promise<AsyncGenerator<string>> {
  const { session, upto, onProgress } = page;
  const steps = (await timeline.steps(session)).slice(0, upto);
  const collected = await collectSession({ present: timeline.present, steps }, session);
  return partsOf({ timeline, collected, upto, onProgress }, page, written);
}

/**
 * Yields the text of a page of a whole session. `rules` is the text of mask rules that apply
 * besides the session's redaction rules. If it is undefined, the page has no mask.
 *
 * @throws {BundleError} `redacted` – the session has redaction rules and `rules` is undefined, or
 *   one of the session's rules cannot be applied
 */
export async function sharedPage(
  target: Pick<ExportTarget, 'timeline' | 'session' | 'hiddenTexts'>,
  { web, rules }: { readonly web: string; readonly rules: string | undefined },
): Promise<AsyncIterable<string>> {
  const { timeline, session, hiddenTexts } = target;
  if (rules === undefined) await requireUnredacted({ ...target, applyRules: [] });
  const mask = rules === undefined ? undefined : await sessionMask({ timeline, session, hiddenTexts }, { rules });
  requireFindable(session, mask);
  return pageParts(timeline, {
    session,
    upto: undefined,
    web,
    mask: mask === undefined ? undefined : new MaskedAnswers(mask),
  });
}

/**
 * Writes a session as one page that needs no server: the review page with its answers. The file
 * appears only when complete, is private to its user, and never replaces another file. The same
 * session gives the same bytes.
 * @throws {BundleError} `file-exists`, `unusable-file`
 * @throws {HistoryError}
 * @throws {StoreError}
 * @throws {XtdbError}
 */
export async function writePage(timeline: Timeline, page: PageFile): Promise<WrittenPage> {
  const path = resolve(page.file);
  const written: { manifest?: PageManifest; sha256?: string } = {};
  let bytes = 0;
  async function* counted(): AsyncGenerator<string> {
    for await (const part of await pageParts(timeline, page, written)) {
      bytes += Buffer.byteLength(part);
      yield part;
    }
  }
  await writeBundleFile(path, counted());
  return { file: path, bytes, sha256: written.sha256 as string, manifest: written.manifest as PageManifest };
}

/**
 * Rejects a page if a rule hides a very short text. The page's own words may contain that text, and
 * masking it everywhere would break the page.
 */
function requireFindable(session: string, mask: ExportMask | undefined): void {
  if (mask === undefined || mask.shortest >= LEAST_TEXT) return;
  throw new BundleError(
    'redacted',
    `a rule of session ${session} hides a text of fewer than ${LEAST_TEXT} characters, and a page cannot mask so ` +
      'short a text. Use --format bundle with --redact, which hides the whole item',
  );
}

/** Writes a session as a page for `export --format html`. */
export async function exportPage(target: ExportTarget): Promise<Written> {
  const { timeline, session, folder, home } = target;
  const mask = await exportMask(target);
  requireFindable(session, mask);
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
        `the SHA-256 of its manifest, which covers all its content, is ${sha256}; the page shows it too`,
        ...(masked === null ? [] : [`${masked} texts were masked`]),
      ],
      json: { format: 'html', session, turn, step, file, bytes, sha256, calls, versions, objects, masked },
    };
  } finally {
    line.end();
  }
}

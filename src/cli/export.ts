import { Argument, Command, Option } from 'commander';
import type { BundleMask } from '../bundle/masked-names.js';
import { defined } from '../values/defined.js';
import { ownMember } from '../values/own-member.js';
import type { ReviewFlags } from './review/answer.js';
import { withMoment } from './review/commands.js';
import type { ReviewedSession } from './review/session-answer.js';

/** A mask, and the length of the shortest text that it hides. */
interface ExportMask extends BundleMask {
  readonly shortest: number;
}

/** A requested export and its destination. */
export interface AskedExport extends ReviewedSession {
  readonly folder: string;
  /** The agent whose memory is included; undefined for none. */
  readonly agent: string | undefined;
  /** Whether redacted text may be included. */
  readonly withRedacted: boolean;
  /** Masks every text by rules; undefined for no masking. */
  readonly mask: ExportMask | undefined;
  /** The folder of the built review page for files. */
  readonly web: string;
}

/** The result of an export, for people and for programs. */
export interface Exported {
  readonly lines: readonly string[];
  readonly json: object;
}

/** An export format. Its module loads on demand, while the database opens. */
interface ExportFormat {
  readonly about: string;
  load(): Promise<(asked: AskedExport) => Promise<Exported>>;
}

/**
 * Rejects a bundle of a session with redaction rules. A bundle holds every byte, because ids and
 * proofs cover every byte.
 */
async function requireUnredacted({ timeline, session, withRedacted, mask }: AskedExport): Promise<void> {
  if (withRedacted || mask !== undefined) return;
  const [{ hiddenTexts }, { BundleError }] = await Promise.all([
    import('../interop/agent-context/export-bundle.js'),
    import('../bundle/bundle-error.js'),
  ]);
  const count = (await hiddenTexts(timeline, session)).inForce;
  if (count === 0) return;
  throw new BundleError(
    'redacted',
    `session ${session} has redaction rules (${count}), and the file would contain the text that they hide: use ` +
      '--redact to mask it, --with-redacted to include it, or --format agent-context, which applies the rules',
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

/** Every export format. */
const FORMATS: Readonly<Record<string, ExportFormat>> = {
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
                    'rendered anew out of what is left',
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
  'agent-context': {
    about: 'an Agent Context bundle, one file for each kind of object (docs/agent-context.md)',
    load: async () => {
      const { exportBundle } = await import('../interop/agent-context/export-bundle.js');
      return ({ folder, ...asked }) => exportBundle(asked, folder);
    },
  },
  cortexfs: {
    about: 'a CortexFS session directory; an existing one is updated (docs/cortexfs.md)',
    load: async () => {
      const { exportSession } = await import('../interop/cortexfs/export-session.js');
      return async ({ timeline, session, when, folder }) => {
        const { projection, appended, written, unchanged, removed } = await exportSession(timeline, folder, {
          session,
          when,
        });
        const { entries, digest, turn, seq } = projection;
        return {
          lines: [
            `session ${session}, turn ${turn}, step ${seq}: ${entries.length} entries in ${folder}`,
            `${appended} lines added to messages.jsonl; ${written.length} files written, ${unchanged} unchanged`,
            ...removed.map((path) => `removed ${path}: it is no longer pinned`),
          ],
          json: {
            format: 'cortexfs',
            session,
            folder,
            turn,
            step: seq,
            entries: entries.length,
            digest,
            appended,
            written,
            unchanged,
            removed,
          },
        };
      };
    },
  },
};

interface ExportFlags extends ReviewFlags {
  readonly format: string;
  readonly agent?: string;
  readonly withRedacted?: boolean;
  readonly html?: string;
  /** A file of rules; true for only the session's own. */
  readonly redact?: string | true;
}

/**
 * Builds the mask that the flags ask for: the session's rules, the rules of a file, and secrets of
 * known forms.
 */
async function maskOf(
  { timeline, session }: ReviewedSession,
  { redact, withRedacted = false }: ExportFlags,
): Promise<AskedExport['mask']> {
  if (redact === undefined) return undefined;
  const [{ TextMask, parseMaskRules }, { hiddenTexts }, { readFile }] = await Promise.all([
    import('../redaction/text-mask.js'),
    import('../interop/agent-context/export-bundle.js'),
    import('node:fs/promises'),
  ]);
  const { texts, patterns } =
    redact === true ? { texts: [], patterns: [] } : parseMaskRules(await readFile(redact, 'utf8'));
  const own = await hiddenTexts(timeline, session);
  if (own.unresolved > 0 && !withRedacted) {
    const { BundleError } = await import('../bundle/bundle-error.js');
    throw new BundleError(
      'redacted',
      `${own.unresolved} of the rules of session ${session} name objects that do not exist in it and cannot be ` +
        'applied: ' +
        'add --with-redacted to export with the other rules only',
    );
  }
  const { masked, maskedValue } = new TextMask({ texts: [...texts, ...own.texts], words: own.words, patterns });
  const rules = { session: own.rules, texts: texts.length, patterns: patterns.length };
  return {
    masked,
    maskedValue,
    hides: (id: string) => own.objects.has(id),
    rules,
    shortest: Math.min(...own.words.map(({ length }) => length)),
  };
}

/** Formats that this command masks; the others apply the rules themselves. */
const REDACTED: ReadonlySet<string> = new Set(['bundle', 'html']);

/**
 * Returns the format and the destination that the path and the flags select. @throws {UsageError}
 */
async function wantedFile(
  path: string | undefined,
  { html, format, redact }: ExportFlags,
): Promise<{ readonly folder: string; readonly format: string }> {
  const { UsageError } = await import('../host/settings.js');
  if (html !== undefined && path !== undefined)
    throw new UsageError(`--html already names the file: leave out ${JSON.stringify(path)}`);
  const folder = html ?? path;
  if (folder === undefined) throw new UsageError('missing destination: give a path or --html FILE');
  const name = html === undefined ? format : 'html';
  if (redact !== undefined && !REDACTED.has(name))
    throw new UsageError(`--redact is of ${[...REDACTED].join(' and ')}, not of ${name}`);
  return { folder, format: name };
}

async function runExport(
  web: string,
  {
    reference,
    path,
    flags,
  }: { readonly reference: string; readonly path: string | undefined; readonly flags: ExportFlags },
): Promise<void> {
  const { folder, format: name } = await wantedFile(path, flags);
  const format = ownMember(FORMATS, name);
  if (format === undefined) throw new Error(`unknown format ${JSON.stringify(name)}`);
  const loading = format.load();
  loading.catch(() => undefined);
  const { answerSession } = await import('./review/session-answer.js');
  await answerSession(reference, { ...flags, ...defined({ at: flags.at ?? flags.asOf }) }, async (asked) => {
    const run = await loading;
    const { lines, json } = await run({
      ...asked,
      folder,
      agent: flags.agent,
      withRedacted: flags.withRedacted ?? false,
      mask: await maskOf(asked, flags),
      web,
    });
    return { lines: () => lines, json: () => json };
  });
}

/**
 * `palimpsest export`: writes a session for another database, for a browser, or in another
 * program's format. Changes nothing in the database. `web` is the folder of the built page for
 * files.
 */
export function exportCommand(web: string): Command {
  const exportAction = async (reference: string, path: string | undefined, flags: ExportFlags): Promise<void> => {
    const { reportFailure } = await import('./output.js');
    await reportFailure(flags, () => runExport(web, { reference, path, flags }));
  };
  const abouts = Object.entries(FORMATS).map(([name, { about }]) => `  ${name.padEnd(14)} ${about}`);
  return withMoment(new Command('export'))
    .description(
      "write a session as one file for other databases, as a page for the browser, or in another program's format",
    )
    .argument('<session>', 'session id or prefix, optionally with @MOMENT, such as @turn:7')
    .addArgument(new Argument('[path]', 'destination folder; for a bundle or a page, the file'))
    .addOption(new Option('--format <format>', 'what is written').choices(Object.keys(FORMATS)).default('bundle'))
    .addOption(
      new Option('--html <file>', 'write the review page with the session in it; same as --format html and this file'),
    )
    .addOption(new Option('--as-of <moment>', 'the same as --at'))
    .addOption(new Option('--agent <name>', 'agent-context: include the memory of this agent'))
    .addOption(
      new Option('--with-redacted', 'bundle, html: export a session with redaction rules without masking its text'),
    )
    .addOption(
      new Option(
        '--redact [rules]',
        "bundle, html: mask text by the session's rules, a file of rules, and known forms of secrets",
      ),
    )
    .addHelpText('after', `\nFormats:\n${abouts.join('\n')}`)
    .action(exportAction);
}

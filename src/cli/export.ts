import { Argument, Command, Option } from 'commander';
import type { FindHiddenTexts } from '../bundle/hidden-texts.js';
import { defined } from '../values/defined.js';
import { ownMember } from '../values/own-member.js';
import { type Contract, type ContractExport, hiddenBy } from './contract.js';
import { type AskedExport, OWN_FORMATS } from './export-formats.js';
import type { ReviewFlags } from './review/answer.js';
import { withMoment } from './review/commands.js';
import type { ReviewedSession } from './review/session-answer.js';

interface ExportFlags extends ReviewFlags {
  readonly format: string;
  readonly withRedacted?: boolean;
  readonly html?: string;
  /** A file of rules; true for only the session's own. */
  readonly redact?: string | true;
  /** Flags of contracts. */
  readonly [flag: string]: unknown;
}

/**
 * Builds the mask that the flags ask for: the session's rules, the rules of a file, and secrets of
 * known forms.
 */
async function maskOf(
  { timeline, session }: ReviewedSession,
  {
    redact,
    withRedacted = false,
    hiddenTexts,
  }: Pick<ExportFlags, 'redact' | 'withRedacted'> & { readonly hiddenTexts: FindHiddenTexts },
): Promise<AskedExport['mask']> {
  if (redact === undefined) return undefined;
  const [{ TextMask, parseMaskRules }, { readFile }] = await Promise.all([
    import('../redaction/text-mask.js'),
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

/** The folder of the built page for files, and the contracts. */
interface ExportSettings {
  readonly web: string;
  readonly contracts: readonly Contract[];
}

/** Returns the formats of contracts by name. */
const foreignFormats = (contracts: readonly Contract[]): Readonly<Record<string, ContractExport>> =>
  Object.assign({}, ...contracts.map((contract) => contract.exports));

async function runExport(
  { web, contracts }: ExportSettings,
  {
    reference,
    path,
    flags,
  }: { readonly reference: string; readonly path: string | undefined; readonly flags: ExportFlags },
): Promise<void> {
  const { folder, format: name } = await wantedFile(path, flags);
  const foreign = foreignFormats(contracts);
  const format = ownMember(OWN_FORMATS, name) ?? ownMember(foreign, name);
  if (format === undefined) throw new Error(`unknown format ${JSON.stringify(name)}`);
  const loading = format.load();
  loading.catch(() => undefined);
  const hiddenTexts = hiddenBy(contracts);
  const { answerSession } = await import('./review/session-answer.js');
  await answerSession(reference, { ...flags, ...defined({ at: flags.at ?? flags.asOf }) }, async (asked) => {
    const run = await loading;
    const { lines, json } = await run({
      ...asked,
      folder,
      flags,
      withRedacted: flags.withRedacted ?? false,
      mask: await maskOf(asked, { ...flags, hiddenTexts }),
      web,
      hiddenTexts,
      applyRules: Object.keys(foreign).filter((one) => foreign[one]?.appliesRules === true),
    });
    return { lines: () => lines, json: () => json };
  });
}

/**
 * `palimpsest export`: writes a session for another database, for a browser, or in another
 * program's format. Changes nothing in the database.
 */
export function exportCommand(settings: ExportSettings): Command {
  const exportAction = async (reference: string, path: string | undefined, flags: ExportFlags): Promise<void> => {
    const { reportFailure } = await import('./output.js');
    await reportFailure(flags, () => runExport(settings, { reference, path, flags }));
  };
  const foreign = foreignFormats(settings.contracts);
  const formats = { ...OWN_FORMATS, ...foreign };
  const abouts = Object.entries(formats).map(([name, { about }]) => `  ${name.padEnd(14)} ${about}`);
  const command = withMoment(new Command('export'))
    .description(
      "write a session as one file for other databases, as a page for the browser, or in another program's format",
    )
    .argument('<session>', 'session id or prefix, optionally with @MOMENT, such as @turn:7')
    .addArgument(new Argument('[path]', 'destination folder; for a bundle or a page, the file'))
    .addOption(new Option('--format <format>', 'what is written').choices(Object.keys(formats)).default('bundle'))
    .addOption(
      new Option('--html <file>', 'write the review page with the session in it; same as --format html and this file'),
    )
    .addOption(new Option('--as-of <moment>', 'the same as --at'));
  for (const { options } of Object.values(foreign)) for (const option of options?.() ?? []) command.addOption(option);
  return command
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

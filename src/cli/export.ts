import { Argument, Command, Option } from 'commander';
import type { FindHiddenTexts } from '../bundle/hidden-texts.js';
import { defined } from '../values/defined.js';
import { ownMember } from '../values/own-member.js';
import { type ContractExport, type ExportTarget, hiddenBy, type ProgramParts } from './contract.js';
import { OWN_FORMATS } from './export-formats.js';
import type { ReviewFlags } from './review/answer.js';
import { withMoment } from './review/commands.js';
import type { ReviewedSession } from './review/session-answer.js';

interface ExportFlags extends ReviewFlags {
  readonly format: string;
  readonly withRedacted?: boolean;
  /** A file of rules; true for only the session's own. */
  readonly redact?: string | true;
  /** Flags of formats. */
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
): Promise<ExportTarget['mask']> {
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

/** An export as its flags describe it. */
interface WantedExport {
  readonly format: ContractExport;
  readonly folder: string;
}

/** All formats by name. */
type Formats = Readonly<Record<string, ContractExport>>;

const namesOf = (formats: Formats, has: (format: ContractExport) => boolean): readonly string[] =>
  Object.keys(formats).filter((name) => has(formats[name] as ContractExport));

/**
 * Returns the format and the destination that the path and the flags select. @throws {UsageError}
 */
async function wantedExport(path: string | undefined, flags: ExportFlags, formats: Formats): Promise<WantedExport> {
  const { UsageError } = await import('../host/settings.js');
  const byFlag = Object.entries(formats).flatMap(([name, { fileFlag }]) => {
    const flag = fileFlag?.();
    const file = flag === undefined ? undefined : flags[flag.attributeName()];
    return typeof file === 'string' ? [{ name, flag: flag?.long, file }] : [];
  })[0];
  if (byFlag !== undefined && path !== undefined)
    throw new UsageError(`${byFlag.flag} already names the file: leave out ${JSON.stringify(path)}`);
  const folder = byFlag?.file ?? path;
  if (folder === undefined) {
    const others = Object.values(formats).flatMap(({ fileFlag }) => fileFlag?.() ?? []);
    const or = others.map(({ long }) => ` or ${long} FILE`).join('');
    throw new UsageError(`missing destination: give a path${or}`);
  }
  const name = byFlag?.name ?? flags.format;
  const format = ownMember(formats, name);
  if (format === undefined) throw new Error(`unknown format ${JSON.stringify(name)}`);
  if (flags.redact !== undefined && format.masks !== true) {
    const masking = namesOf(formats, ({ masks }) => masks === true);
    throw new UsageError(`--redact is of ${masking.join(' and ')}, not of ${name}`);
  }
  return { folder, format };
}

/**
 * Rejects an unmasked export of a session with redaction rules. Such a file holds every byte,
 * because ids and proofs cover every byte.
 */
async function requireUnredacted(
  { timeline, session }: ReviewedSession,
  formats: Formats,
  hiddenTexts: FindHiddenTexts,
): Promise<void> {
  const count = (await hiddenTexts(timeline, session)).inForce;
  if (count === 0) return;
  const { BundleError } = await import('../bundle/bundle-error.js');
  const ways = [
    '--redact to mask it',
    '--with-redacted to include it',
    ...namesOf(formats, ({ appliesRules }) => appliesRules === true).map(
      (name) => `--format ${name}, which applies the rules`,
    ),
  ];
  throw new BundleError(
    'redacted',
    `session ${session} has redaction rules (${count}), and the file would contain the text that they hide: use ` +
      `${ways.slice(0, -1).join(', ')}, or ${ways.at(-1)}`,
  );
}

/** The parts of the program that exports need. */
type ExportParts = Pick<ProgramParts, 'home' | 'contracts'>;

/** Returns the formats of Palimpsest and of contracts by name. */
const formatsOf = ({ contracts }: ExportParts): Formats =>
  Object.assign({}, OWN_FORMATS, ...contracts.map((contract) => contract.exports));

async function runExport(
  { home, contracts }: ExportParts,
  {
    reference,
    path,
    flags,
  }: { readonly reference: string; readonly path: string | undefined; readonly flags: ExportFlags },
): Promise<void> {
  const formats = formatsOf({ home, contracts });
  const { folder, format } = await wantedExport(path, flags, formats);
  const loading = format.load();
  loading.catch(() => undefined);
  const hiddenTexts = hiddenBy(contracts);
  const { answerSession } = await import('./review/session-answer.js');
  await answerSession(reference, { ...flags, ...defined({ at: flags.at ?? flags.asOf }) }, async (asked) => {
    const run = await loading;
    const mask = await maskOf(asked, { ...flags, hiddenTexts });
    if (format.masks === true && mask === undefined && flags.withRedacted !== true)
      await requireUnredacted(asked, formats, hiddenTexts);
    const { lines, json } = await run({ ...asked, folder, flags, home, mask });
    return { lines: () => lines, json: () => json };
  });
}

/**
 * `palimpsest export`: writes a session for another database, for a browser, or in another
 * program's format. Changes nothing in the database.
 */
export function exportCommand(parts: ExportParts): Command {
  const exportAction = async (reference: string, path: string | undefined, flags: ExportFlags): Promise<void> => {
    const { reportFailure } = await import('./output.js');
    await reportFailure(flags, () => runExport(parts, { reference, path, flags }));
  };
  const formats = formatsOf(parts);
  const masking = namesOf(formats, ({ masks }) => masks === true).join(', ');
  const abouts = Object.entries(formats).map(([name, { about }]) => `  ${name.padEnd(14)} ${about}`);
  const command = withMoment(new Command('export'))
    .description(
      "write a session as one file for other databases, as a page for the browser, or in another program's format",
    )
    .argument('<session>', 'session id or prefix, optionally with @MOMENT, such as @turn:7')
    .addArgument(new Argument('[path]', 'destination folder; for a bundle or a page, the file'))
    .addOption(new Option('--format <format>', 'what is written').choices(Object.keys(formats)).default('bundle'));
  for (const { fileFlag } of Object.values(formats)) if (fileFlag !== undefined) command.addOption(fileFlag());
  command.addOption(new Option('--as-of <moment>', 'the same as --at'));
  for (const { options } of Object.values(formats)) for (const option of options?.() ?? []) command.addOption(option);
  return command
    .addOption(
      new Option('--with-redacted', `${masking}: export a session with redaction rules without masking its text`),
    )
    .addOption(
      new Option(
        '--redact [rules]',
        `${masking}: mask text by the session's rules, a file of rules, and known forms of secrets`,
      ),
    )
    .addHelpText('after', `\nFormats:\n${abouts.join('\n')}`)
    .action(exportAction);
}

import { Command, Option } from 'commander';
import type { Contract, ContractReports } from '../../cli/contract.js';
import { dataFlag, jsonFlag, numberBetween, wholeBetween } from '../../cli/flags.js';
import type { ReviewFlags } from '../../cli/review/answer.js';
import { limitFlag, MOMENTS, withData, withMoment } from '../../cli/review/moment-flags.js';
import type { CountTexts } from '../../history/rebuild/tokenizer.js';
import { SEARCHED_KINDS } from '../../history/search/kinds.js';
import type { NoteFlags } from './note.js';
import type { SearchFlags } from './search.js';
import type { SessionsFlags } from './sessions.js';
import type { VerifyFlags } from './verify.js';

const sessionFlag = (): Option =>
  new Option('--session <id>', 'session to which turn numbers refer, and in which objects are searched');

const logs = () => import('./log.js');
const objects = () => import('./object.js');
const contexts = () => import('./context.js');
const prefixes = () => import('./prefix.js');

const assembleFlag = (): Option =>
  new Option('--assemble', 'assemble the session as of that moment now, although no model received this context');

function contextCommand(): Command {
  return withMoment(new Command('context'))
    .description(
      'rebuild the context that a model received at a moment; exit code 3 if Palimpsest did not see it: agents ' +
        'over MCP build their own requests',
    )
    .argument('<session>', 'session id or prefix, optionally with @MOMENT')
    .addOption(assembleFlag())
    .addOption(new Option('--raw', 'write the exact text and nothing else, if the output is a pipe or a file'))
    .action(async (session: string, flags: ReviewFlags) => (await contexts()).contextAction(session, flags));
}

/** Counts tokens. The first call loads the vocabulary. */
const count: CountTexts = async (texts) => (await import('../ask/token-count.js')).countHere(texts);

type Reports = Awaited<ReturnType<ContractReports['load']>>;

/** Loads the reports in the format that the flags name. */
async function reportsOf(formats: readonly ContractReports[], { format }: ReviewFlags): Promise<Reports> {
  const foreign = formats.find((one) => one.format === format);
  if (foreign !== undefined) return foreign.load();
  const { reportListAction, reportDetailAction } = await contexts();
  return { list: reportListAction, detail: reportDetailAction };
}

function reportCommand(formats: readonly ContractReports[], others: readonly Command[]): Command {
  const withFormat = (command: Command): Command =>
    formats.length === 0
      ? command
      : command.addOption(
          new Option(
            '--format <format>',
            `fields of the report: Palimpsest's own, or ${formats.map(({ about }) => about).join(', or ')}`,
          ).choices(formats.map(({ format }) => format)),
        );
  const report = new Command('report').description("show how a context's characters and tokens are spent");
  report.addCommand(
    withFormat(
      withData(new Command('list'))
        .description('list the contexts of a session with their sizes by section, newest first')
        .argument('<session>', 'session id or prefix')
        .addOption(limitFlag('maximum number of contexts (default: 20)'))
        .addOption(assembleFlag()),
    ).action(async (session: string, flags: ReviewFlags) =>
      (await reportsOf(formats, flags)).list(session, flags, count),
    ),
  );
  report.addCommand(
    withFormat(
      withMoment(new Command('detail'))
        .description('show the sizes of one context by section and object, largest first: stored and shown')
        .argument('<session>', 'session id or prefix, optionally with @MOMENT')
        .addOption(assembleFlag()),
    ).action(async (session: string, flags: ReviewFlags) =>
      (await reportsOf(formats, flags)).detail(session, flags, count),
    ),
  );
  for (const { commands } of formats) for (const command of commands?.() ?? []) report.addCommand(command);
  for (const command of others) report.addCommand(command);
  return report;
}

/**
 * The commands about the past: `sessions`, `log`, `show`, `cat`, `diff`, `context`, `who`, `query`,
 * `search`, `report`. `report` includes the reports of contracts and those of `reports`.
 */
export function reviewCommands(contracts: readonly Contract[], reports: readonly Command[] = []): readonly Command[] {
  const formats = contracts.flatMap(({ reports }) => reports ?? []);
  const sessions = withMoment(new Command('sessions'))
    .description('list the sessions, most recently used first')
    .addOption(new Option('--cwd <folder>', 'only sessions of this folder and those below it'))
    .addOption(new Option('--agent <name>', 'only sessions of this agent, such as claude'))
    .addOption(
      new Option(
        '--since <time>',
        'only sessions used since then: a local day or a time, or 7d (today and six days before), 2w, 24h',
      ),
    )
    .addOption(limitFlag('maximum number of sessions (default: 100 on a terminal)'))
    .action(async (flags: SessionsFlags) => (await import('./sessions.js')).sessionsAction(flags));
  const log = withMoment(new Command('log'))
    .description(
      'show the turns of a session, newest first; without a session, the latest turns of all; with --object but no ' +
        'session, the versions of an object',
    )
    .argument('[session]', 'session id or prefix, optionally with @MOMENT')
    .addOption(new Option('--object <object>', 'only turns that touched this object; without a session, its versions'))
    .addOption(sessionFlag())
    .addOption(limitFlag('show only the newest N (default: 100; without a session 20)'))
    .action(async (session: string | undefined, flags: ReviewFlags) => (await logs()).logAction(session, flags));
  const show = withMoment(new Command('show'))
    .description('show an object at a moment: its times, fields, hashes and text')
    .argument('<object>', 'id, id prefix, path or session, optionally with @MOMENT')
    .addOption(sessionFlag())
    .addOption(new Option('--no-content', 'without its text'))
    .action(async (object: string, flags: ReviewFlags) => (await objects()).showAction(object, flags));
  const cat = withMoment(new Command('cat'))
    .description("write an object's text at a moment: exact bytes to a pipe, escapes to a terminal")
    .argument('<object>', 'id, id prefix or path, optionally with @MOMENT')
    .addOption(sessionFlag())
    .action(async (object: string, flags: ReviewFlags) => (await objects()).catAction(object, flags));
  const diff = withData(new Command('diff'))
    .description('show how an object or a session changed between two moments')
    .argument('<name>', 'an object or a session')
    .argument('[range]', 'A..B, two moments; a bare number is a turn (default: from the previous version or turn)')
    .addOption(sessionFlag())
    .addOption(
      new Option('-U, --context <lines>', 'context lines around each difference').argParser(wholeBetween(0, 1_000)),
    )
    .addOption(
      new Option(
        '--prefix',
        'for a session: show the first byte where consecutive requests differ, the cause and the cost; with a range, ' +
          'compare its two ends',
      ),
    )
    .addOption(limitFlag('with --prefix: show only the newest N (default: 20)'))
    .addHelpText('after', MOMENTS)
    .action(async (name: string, range: string | undefined, flags: ReviewFlags) =>
      flags.prefix === true
        ? (await prefixes()).prefixAction({ name, range }, flags, count)
        : (await objects()).diffAction(name, range, flags),
    );
  const who = withData(new Command('who'))
    .description('show which sessions saw an object, in which turns and versions')
    .argument('<object>', 'id, id prefix or path')
    .addOption(sessionFlag())
    .action(async (object: string, flags: ReviewFlags) => (await logs()).whoAction(object, flags));
  const query = withMoment(new Command('query'))
    .description('run a Datalog query, read-only and limited')
    .argument('<datalog>', 'EDN, such as \'{:find [?e] :where [[?e :type "file"]]}\'')
    .addOption(new Option('--as-of <moment>', 'the same as --at'))
    .addOption(new Option('--args <vector>', 'EDN vector with one value for each binding of :in'))
    .addOption(sessionFlag())
    .addOption(limitFlag('maximum number of rows (default: 1000)'))
    .addOption(new Option('--timeout <seconds>', 'maximum run time (default: 10)').argParser(numberBetween(0.001, 30)))
    .addOption(new Option('--storage', "query the stored documents, including parts, instead of the SSOT's objects"))
    .action(async (text: string, flags: ReviewFlags) => (await import('./query.js')).queryAction(text, flags));
  const search = withMoment(new Command('search'))
    .description('search every message, call and file version for a text; shows the contexts that had it')
    .argument('<text>', 'text, case-insensitive unless it has a capital, or a regular expression /…/ (flags i, m, s)')
    .addOption(new Option('--session <id>', 'only this session, optionally with @MOMENT'))
    .addOption(new Option('--type <type>', 'only texts of this kind').choices([...SEARCHED_KINDS]))
    .addOption(new Option('--path <path>', 'only files with this path, below this folder, or matching this glob'))
    .addOption(new Option('--as-of <moment>', 'the same as --at'))
    .addOption(new Option('-C, --context <lines>', 'lines around a match (default: 1)').argParser(wholeBetween(0, 20)))
    .addOption(limitFlag('maximum number of texts (default: 20)'))
    .addOption(new Option('--rebuild', 'rebuild the search index first'))
    .addOption(new Option('--no-index', 'compare every text, without the search index'))
    .action(async (text: string, flags: SearchFlags) => (await import('./search.js')).searchAction(text, flags));
  return [sessions, search, log, show, cat, diff, contextCommand(), who, query, reportCommand(formats, reports)];
}

/**
 * `palimpsest verify`: checks that the database can rebuild every handed-out context, byte for
 * byte. Changes nothing.
 */
export function verifyCommand(): Command {
  return new Command('verify')
    .description(
      'rebuild handed-out contexts from the database and compare them byte for byte; exit code 1 if any differ',
    )
    .argument('[sessions...]', 'session ids or prefixes')
    .addOption(new Option('--all', 'every session of the database'))
    .addOption(dataFlag())
    .addOption(jsonFlag())
    .action(async (sessions: readonly string[], flags: VerifyFlags) =>
      (await import('./verify.js')).verifyAction(sessions, flags),
    );
}

/**
 * `palimpsest note`: records a reviewer's note on a session, a step or an object of the session. No
 * note is ever shown to a model.
 */
export function noteCommand(): Command {
  return withMoment(new Command('note'))
    .description(
      'record a verdict or note on a session, step, object or call; without --verdict and --text, list the notes',
    )
    .argument('<session>', 'session id or prefix, optionally with @MOMENT, such as @step:41 (default: its last step)')
    .addOption(new Option('--object <object>', 'object or call of the note: id, id prefix or path'))
    .addOption(new Option('--verdict <verdict>', 'your verdict').choices(['right', 'wrong', 'unclear']))
    .addOption(new Option('--text <text>', 'text of the note'))
    .addOption(new Option('--by <name>', 'author of the note'))
    .action(async (session: string, flags: NoteFlags) => (await import('./note.js')).noteAction(session, flags));
}

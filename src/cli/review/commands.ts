import { Command, Option } from 'commander';
import type { CountTexts } from '../../history/ask/tokenizer.js';
import { collect, dataFlag, jsonFlag, numberBetween, wholeBetween } from '../flags.js';
import type { ReviewFlags } from './answer.js';
import type { NoteFlags } from './note.js';
import type { RestoreFlags } from './restore.js';
import type { VerifyFlags } from './verify.js';

const MOMENTS = `
A moment is one of:
  now              everything that is known
  turn:7           the end of turn 7; turn:7.3 its third step (of --session, where no session is named)
  step:41          the 41st step of the session
  tx:123           what the database knew after transaction 123
  2026-11-21T14:05 what was true then, as far as is known now (UTC unless it ends in a zone)
--valid-time and --tx set either clock by itself.`;

/** Adds the flags of every command that reads a data folder. */
export function withData(command: Command): Command {
  return command
    .addOption(dataFlag())
    .addOption(
      new Option('--mount <mapping>', 'AGENT=CANONICAL[,FILESYSTEM-ID]: show paths as that agent saw them; repeatable').argParser(collect),
    )
    .addOption(jsonFlag())
    .addOption(new Option('--no-pager', 'write long answers straight to the terminal'));
}

/** Adds the flags of a question about a moment. */
export function withMoment(command: Command): Command {
  return withData(command)
    .addOption(new Option('--at <moment>', 'ask about this moment instead of now'))
    .addOption(new Option('--valid-time <time>', 'what was true then'))
    .addOption(new Option('--tx <transaction>', 'as it was known after this transaction, or at this time'))
    .addHelpText('after', MOMENTS);
}

const sessionFlag = (): Option => new Option('--session <id>', 'the session whose turns are meant and whose objects are searched');
const limitFlag = (text: string): Option => new Option('-n, --limit <count>', text).argParser(wholeBetween(1, 100_000));

const logs = () => import('./log.js');
const objects = () => import('./object.js');
const contexts = () => import('./context.js');
const prefixes = () => import('./prefix.js');
const tyrum = () => import('./tyrum.js');

const assembleFlag = (): Option => new Option('--assemble', 'the session as it stood then, assembled now, although no model was sent that');

function contextCommand(): Command {
  return withMoment(new Command('context'))
    .description(
      'show the context that a model was sent at a moment, made again; exit code 3 where Palimpsest has not seen it: agents over MCP build their requests themselves',
    )
    .argument('<session>', 'its id or the beginning of it, perhaps with @MOMENT')
    .addOption(assembleFlag())
    .addOption(new Option('--raw', 'write only the exact text, where the output is a pipe or a file'))
    .action(async (session: string, flags: ReviewFlags) => (await contexts()).contextAction(session, flags));
}

/** Counts tokens; the vocabulary is loaded with the first text. */
const count: CountTexts = async (texts) => (await import('../../history/ask/token-count.js')).countHere(texts);

function reportCommand(): Command {
  const report = new Command('report').description("show where a context's characters and tokens go");
  report.addCommand(
    withData(new Command('list'))
      .description('the contexts of a session with their sizes by section, newest first')
      .argument('<session>', 'its id or the beginning of it')
      .addOption(limitFlag('show at most this many (default: 20)'))
      .addOption(assembleFlag())
      .addOption(formatFlag())
      .action(async (session: string, flags: ReviewFlags) =>
        flags.format === 'tyrum'
          ? (await tyrum()).tyrumListAction(session, flags, count)
          : (await contexts()).reportListAction(session, flags, count),
      ),
  );
  report.addCommand(
    withMoment(new Command('detail'))
      .description('one context by section and object, the largest first, stored against shown size')
      .argument('<session>', 'its id or the beginning of it, perhaps with @MOMENT')
      .addOption(assembleFlag())
      .addOption(formatFlag())
      .action(async (session: string, flags: ReviewFlags) =>
        flags.format === 'tyrum'
          ? (await tyrum()).tyrumDetailAction(session, flags, count)
          : (await contexts()).reportDetailAction(session, flags, count),
      ),
  );
  report.addCommand(
    withMoment(new Command('state'))
      .description("a conversation's state as Tyrum has it, as JSON: its checkpoint, what waits for an answer, what came since")
      .argument('<session>', 'its id or the beginning of it, perhaps with @MOMENT')
      .action(async (session: string, flags: ReviewFlags) => (await tyrum()).tyrumStateAction(session, flags)),
  );
  report.addCommand(
    withData(new Command('memory'))
      .description('what an agent remembers over its sessions, and what it forgot, as Tyrum has it; JSON with --json')
      .argument('<agent>', 'the name of the agent')
      .addOption(new Option('--query <words>', 'only what has these words, the best first'))
      .addOption(limitFlag('show at most this many (default: 20)'))
      .action(async (agent: string, flags: ReviewFlags) => (await tyrum()).tyrumMemoryAction(agent, flags)),
  );
  return report;
}

const formatFlag = (): Option =>
  new Option('--format <format>', "whose fields the report has: Palimpsest's own, or JSON as Tyrum's gateway has it").choices(['tyrum']);

/** The questions about the past: `sessions`, `log`, `show`, `cat`, `diff`, `context`, `who`, `query`, `report`. */
export function reviewCommands(): readonly Command[] {
  const sessions = withMoment(new Command('sessions'))
    .description('list the sessions, most recently used first')
    .addOption(limitFlag('show at most this many'))
    .action(async (flags: ReviewFlags) => (await logs()).sessionsAction(flags));
  const log = withMoment(new Command('log'))
    .description('show the turns of a session, newest first; without one the latest of all; with --object alone the versions of an object')
    .argument('[session]', 'its id or the beginning of it, perhaps with @MOMENT')
    .addOption(new Option('--object <object>', 'only turns that touched this object; without a session: its versions'))
    .addOption(sessionFlag())
    .addOption(limitFlag('show at most this many, the newest (default: 100; without a session 20)'))
    .action(async (session: string | undefined, flags: ReviewFlags) => (await logs()).logAction(session, flags));
  const show = withMoment(new Command('show'))
    .description('show an object at a moment: its times, fields, hashes and text')
    .argument('<object>', 'id, beginning of an id, path, or session; perhaps with @MOMENT')
    .addOption(sessionFlag())
    .addOption(new Option('--no-content', 'without its text'))
    .action(async (object: string, flags: ReviewFlags) => (await objects()).showAction(object, flags));
  const cat = withMoment(new Command('cat'))
    .description("write an object's text at a moment: exact bytes to a pipe, escapes to a terminal")
    .argument('<object>', 'id, beginning of an id, or path; perhaps with @MOMENT')
    .addOption(sessionFlag())
    .action(async (object: string, flags: ReviewFlags) => (await objects()).catAction(object, flags));
  const diff = withData(new Command('diff'))
    .description('show how an object or a session changed between two moments')
    .argument('<name>', 'an object, or a session')
    .argument('[range]', 'A..B, two moments; a bare number is a turn (default: since the version, or the turn, before)')
    .addOption(sessionFlag())
    .addOption(new Option('-U, --context <lines>', 'lines around each difference').argParser(wholeBetween(0, 1_000)))
    .addOption(
      new Option(
        '--prefix',
        'of a session: the first byte at which its requests differ, why, and what it costs; without a range each and the one before',
      ),
    )
    .addOption(limitFlag('with --prefix: at most this many, the newest (default: 20)'))
    .addHelpText('after', MOMENTS)
    .action(async (name: string, range: string | undefined, flags: ReviewFlags) =>
      flags.prefix === true
        ? (await prefixes()).prefixAction({ name, range }, flags, count)
        : (await objects()).diffAction(name, range, flags),
    );
  const who = withData(new Command('who'))
    .description('show which sessions saw an object, in which turns, and which version')
    .argument('<object>', 'id, beginning of an id, or path')
    .addOption(sessionFlag())
    .action(async (object: string, flags: ReviewFlags) => (await logs()).whoAction(object, flags));
  const query = withMoment(new Command('query'))
    .description('run a Datalog query, read-only and limited')
    .argument('<datalog>', 'EDN, such as \'{:find [?e] :where [[?e :type "file"]]}\'')
    .addOption(new Option('--as-of <moment>', 'the same as --at'))
    .addOption(new Option('--args <vector>', 'EDN vector: one value for each binding of :in'))
    .addOption(sessionFlag())
    .addOption(limitFlag('show at most this many rows (default: 1000)'))
    .addOption(new Option('--timeout <seconds>', 'longest run (default: 10)').argParser(numberBetween(0.001, 30)))
    .addOption(new Option('--storage', "ask the documents that the database holds, parts and all, instead of the SSOT's"))
    .action(async (text: string, flags: ReviewFlags) => (await logs()).queryAction(text, flags));
  return [sessions, log, show, cat, diff, contextCommand(), who, query, reportCommand()];
}

/** `palimpsest verify`: checks that what sessions handed out can be rebuilt, byte for byte. Changes nothing. */
export function verifyCommand(): Command {
  return new Command('verify')
    .description('rebuild from the database what sessions handed out and compare it byte for byte; exit code 1 when anything differs')
    .argument('[sessions...]', 'their ids or the beginnings of them')
    .addOption(new Option('--all', 'every session of the database'))
    .addOption(dataFlag())
    .addOption(jsonFlag())
    .action(async (sessions: readonly string[], flags: VerifyFlags) => (await import('./verify.js')).verifyAction(sessions, flags));
}

/** `palimpsest restore`: the files of a session as its agent had them at a moment: compared, written to a folder, or put in place, which can be undone. */
export function restoreCommand(): Command {
  return new Command('restore')
    .description("compare a session's files with what its agent had at a moment, or write that")
    .argument('[session]', 'its id or the beginning of it, perhaps with @MOMENT, such as @turn:7')
    .addOption(new Option('--plan', 'print which files differ, and how; changes nothing (the default)'))
    .addOption(new Option('--apply', 'write what the agent had: --to a folder, or --in-place'))
    .addOption(new Option('--to <folder>', 'a folder that is not there yet, or an empty one'))
    .addOption(new Option('--in-place', 'over the files themselves, where nothing is in the way; what is replaced is kept'))
    .addOption(new Option('--undo <id>', 'give back what a restoring in place replaced'))
    .addOption(new Option('--list', 'what was restored in place, and can be undone'))
    .addOption(
      new Option('--root <folder>', 'a folder that is compared and written in; repeatable (default: the current folder)').argParser(
        collect,
      ),
    )
    .addOption(new Option('--moved <old=new>', 'a recorded folder that lies elsewhere now; repeatable').argParser(collect))
    .addOption(new Option('--at <moment>', 'the moment, where none stands behind an @'))
    .addOption(
      new Option('--mount <mapping>', 'AGENT=CANONICAL[,FILESYSTEM-ID]: show paths as that agent saw them; repeatable').argParser(collect),
    )
    .addOption(dataFlag())
    .addOption(jsonFlag())
    .addOption(new Option('--no-pager', 'write long answers straight to the terminal'))
    .action(async (session: string | undefined, flags: RestoreFlags) => (await import('./restore.js')).restoreAction(session, flags));
}

/** `palimpsest note`: what a reviewer says of a session, a step or an object of it; kept beside the session and never shown to a model. */
export function noteCommand(): Command {
  return withMoment(new Command('note'))
    .description(
      'say what you hold of a session, of a step, or of an object or call in it; without --verdict and --text show what was said',
    )
    .argument('<session>', 'its id or the beginning of it, perhaps with @MOMENT, such as @step:41 (default: its last step)')
    .addOption(new Option('--object <object>', 'the object or call that is meant: id, beginning of an id, or path'))
    .addOption(new Option('--verdict <verdict>', 'what you hold of it').choices(['right', 'wrong', 'unclear']))
    .addOption(new Option('--text <text>', 'what you have to say'))
    .addOption(new Option('--by <name>', 'who says it'))
    .action(async (session: string, flags: NoteFlags) => (await import('./note.js')).noteAction(session, flags));
}

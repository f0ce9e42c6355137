import { type Command, Option } from 'commander';
import { collect, dataFlag, jsonFlag, wholeBetween } from '../flags.js';

/** The help about moments. */
export const MOMENTS = [
  '',
  'A moment is one of:',
  '',
  '  now              the latest state',
  '  turn:7           the end of turn 7; turn:7.3 its third step (of --session if no session is named)',
  '  step:41          the 41st step of the session',
  "  tx:123           the database's knowledge after transaction 123",
  '  2026-11-21T14:05 the state at this time, as known now (UTC unless a zone is given)',
  '',
  '--valid-time and --tx set each clock separately.',
].join('\n');

/** Adds the flags that every command for a data folder has. */
export function withData(command: Command): Command {
  return command
    .addOption(dataFlag())
    .addOption(
      new Option(
        '--mount <mapping>',
        'AGENT=CANONICAL[,FILESYSTEM-ID]: show paths as that agent saw them; repeatable',
      ).argParser(collect),
    )
    .addOption(jsonFlag())
    .addOption(new Option('--ids', 'show the ids of objects beside their names'))
    .addOption(new Option('--no-pager', 'write long output straight to the terminal'));
}

/** Adds the flags of questions about a moment. */
export function withMoment(command: Command): Command {
  return withData(command)
    .addOption(new Option('--at <moment>', 'show this moment instead of now'))
    .addOption(new Option('--valid-time <time>', 'valid time of the answer'))
    .addOption(new Option('--tx <transaction>', 'transaction or time whose state of the database is read'))
    .addHelpText('after', MOMENTS);
}

/** The flag for the maximum length of a list. */
export const limitFlag = (text: string): Option =>
  new Option('-n, --limit <count>', text).argParser(wholeBetween(1, 100_000));

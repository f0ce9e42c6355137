import { setTimeout as delay } from 'node:timers/promises';
import { Command, Option } from 'commander';
import { dataFlag, jsonFlag } from '../cli/flags.js';
import { printJson, printLines, progressLine, reportFailure, tell } from '../cli/output.js';
import type { SessionFate } from '../client/recovery/left-sessions.js';
import type { AdoptionPlan, LeftJournal } from './adopt-journals.js';
import { damageText } from './doctor.js';

const WHAT = 'palimpsest journal';

/** Flags of `palimpsest journal salvage` and `adopt`. */
interface JournalFlags {
  readonly data?: string;
  readonly apply?: boolean;
  readonly json?: boolean;
}

/** Describes the repair of each damaged journal. */
async function planOf(folder: string): Promise<readonly string[]> {
  const [{ asideFiles, inspectJournals, isBrokenJournal }, { lossText, readDamaged }] = await Promise.all([
    import('../journal/journals.js'),
    import('../client/delivery/damaged-journal.js'),
  ]);
  const plan: string[] = [];
  for (const journal of (await inspectJournals(folder)).filter(isBrokenJournal)) {
    if (journal.holder !== undefined)
      plan.push(`process ${journal.holder.pid} delivers ${journal.owner}: ${damageText(journal)}`);
    else if (journal.state !== 'corrupt')
      plan.push(`leave ${journal.owner} unchanged: ${journal.reason ?? journal.state}`);
    else
      plan.push(
        `deliver the ${journal.pending} readable pending records: ${lossText(await readDamaged(folder, journal))}`,
      );
  }
  for (const { path, ...found } of await asideFiles(folder))
    plan.push(`move ${path} to settled/, where it is kept: ${damageText(found)}`);
  return plan;
}

/**
 * Milliseconds without a delivered record after which the delivery of a journal counts as stuck.
 */
const STUCK_MS = 60_000;

async function salvage(flags: JournalFlags): Promise<void> {
  const [{ readSettings }, { clientFolder }] = await Promise.all([
    import('../host/settings.js'),
    import('../process/data-folder.js'),
  ]);
  const settings = readSettings(process.env, flags);
  const folder = clientFolder(settings.node.dataDir, settings.nodeUrl);
  const plan = await planOf(folder);
  const notices: string[] = [];
  let settled: readonly string[] = [];
  if (flags.apply === true && plan.length > 0) {
    const [{ deliverJournals }, { settleAside }] = await Promise.all([
      import('../host/deliver-journals.js'),
      import('../journal/journals.js'),
    ]);
    const line = progressLine();
    const onWaiting = (records: number): void => line.show(`${records} records wait`);
    const onNotice = (notice: string): void => void notices.push(notice);
    await deliverJournals(settings, { what: WHAT, stuckMs: STUCK_MS, onNotice, onWaiting }).finally(() => line.end());
    settled = await settleAside(folder);
  }
  if (flags.json === true) printJson({ plan, applied: flags.apply === true, notices, settled });
  else {
    const lines =
      plan.length === 0
        ? ['no journal is damaged']
        : plan.map((line) => `${flags.apply === true ? 'done' : 'plan'}      ${line}`);
    const rest =
      flags.apply === true || plan.length === 0
        ? []
        : ['No changes made. Repeat the command with --apply to make them; it removes no file.'];
    printLines([
      ...lines,
      ...notices.map((line) => `note      ${line}`),
      ...settled.map((path) => `kept      ${path}`),
      ...rest,
    ]);
  }
}

function writerText({ writer, holder, hasEnded }: LeftJournal): string {
  if (writer === undefined) return 'of an unknown process: this host cannot see whether it is alive';
  const who = `of process ${writer.pid} (${writer.what}, since ${writer.since})`;
  if (holder !== undefined) return `${who}, which is ALIVE and delivers it itself`;
  return hasEnded
    ? `${who}, which has ended`
    : `${who}, which ran elsewhere or before this host's last boot: this host cannot see whether it is alive`;
}

/** The end of a line about a session, which begins with `steps X to Y`. */
const FATES: Readonly<Record<SessionFate, string>> = {
  stored: 'all of it is in the database',
  begins: 'they start the session',
  continues: 'they continue the session',
  forks: 'another writer continued the session',
  unknown: 'they follow steps that the database does not have: it is ANOTHER DATABASE',
};

function adoptionLines({ folder, usedWith, deliversTo, journals, sessions }: AdoptionPlan): readonly string[] {
  const differs = usedWith !== undefined && usedWith !== deliversTo;
  return [
    `folder    ${folder}${usedWith === undefined ? '' : `, used with ${usedWith}`}`,
    `database  ${deliversTo}${differs ? '; use --apply only if both are the same' : ''}`,
    ...journals.flatMap((journal) => [
      `journal   ${journal.owner} ${writerText(journal)}: ${journal.pending} records are not marked as delivered`,
      ...(journal.state === 'corrupt'
        ? [`          DAMAGED: ${damageText(journal)}. The readable records are delivered`]
        : []),
      ...(journal.reason === undefined ? [] : [`          cannot be read: ${journal.reason}`]),
    ]),
    ...sessions.map(({ session, fate, records, stored, steps, fork }) => {
      const what = steps === undefined ? 'no steps' : `steps ${steps[0]} to ${steps[1]}`;
      const kept = fork === undefined ? '' : `; from step ${fork.first} on they are kept in the fork ${fork.id}`;
      return (
        `session   ${session}: ${what}; ${stored} of ${records} records are in the database; ` + `${FATES[fate]}${kept}`
      );
    }),
  ];
}

async function adopt(folder: string, flags: JournalFlags): Promise<void> {
  const [{ readSettings }, { adoptJournals, planAdoption, undelivered }, { resolve }] = await Promise.all([
    import('../host/settings.js'),
    import('./adopt-journals.js'),
    import('node:path'),
  ]);
  const settings = readSettings(process.env, flags);
  const notices: string[] = [];
  const line = progressLine();
  const options = {
    what: WHAT,
    stuckMs: STUCK_MS,
    onNotice: (notice: string): void => void notices.push(notice),
    onWaiting: (records: number): void => line.show(`${records} records wait`),
  };
  const path = resolve(folder);
  const work = flags.apply === true ? adoptJournals(path, settings, options) : planAdoption(path, settings);
  const plan = await work.finally(() => line.end());
  const left = undelivered(plan);
  if (flags.json === true) return printJson({ ...plan, undelivered: left, applied: flags.apply === true, notices });
  const rest =
    flags.apply === true || left === 0
      ? [`All of it is in the database. ${folder} was not changed; you can remove it.`]
      : [
          `No changes made. Deliver the ${left} records with --apply, which only reads the folder. If its ` +
            'process is alive, ' +
            'both deliver the same records, which are stored once.',
        ];
  printLines([...adoptionLines(plan), ...notices.map((notice) => `note      ${notice}`), ...rest]);
}

/** How often a delivery polls the node that it waits for, milliseconds. */
const READY_LOOK_MS = 50;

/** Waits while the node of a data folder is starting. Returns whether it is ready. */
async function isReady(dataDir: string): Promise<boolean> {
  const { nodePhase } = await import('../node/node-status.js');
  for (;;) {
    const phase = await nodePhase(dataDir);
    if (phase !== 'starting') return phase === 'ready';
    await delay(READY_LOOK_MS);
  }
}

/**
 * Delivers the journals of dead processes to a running node. The supervisor starts this process,
 * and both end together. Never starts a node.
 */
async function deliver({ data }: { readonly data: string }): Promise<void> {
  process.stdin.on('close', () => process.exit()).resume();
  const [{ readSettings }, { deliverJournals }] = await Promise.all([
    import('../host/settings.js'),
    import('../host/deliver-journals.js'),
  ]);
  if (!(await isReady(data))) return;
  const settings = readSettings(
    { ...process.env, XTDB_URL: undefined, PALIMPSEST_PROFILE: undefined, PALIMPSEST_LOG: undefined },
    { data },
  );
  await deliverJournals(settings, { what: WHAT, stuckMs: STUCK_MS, onNotice: tell });
}

/** `palimpsest journal`: repairs damaged journals and adopts those of a lost host. */
export function journalCommand(): Command {
  const journal = new Command('journal').description('repair and adopt journals of acknowledged steps');
  journal
    .command('salvage')
    .description(
      'show damaged journals of a data folder and their readable records; with --apply deliver the records and ' +
        'archive the damaged files',
    )
    .addOption(dataFlag())
    .addOption(new Option('--apply', 'carry out the repair; damaged files are moved to journal/settled, not removed'))
    .addOption(jsonFlag())
    .action((flags: JournalFlags) => reportFailure(flags, () => salvage(flags)));
  journal
    .command('adopt <folder>')
    .description(
      'show the journals of a lost host, from a copied or mounted data folder, and which records are already in the ' +
        'database; with --apply deliver the missing ones, once and in order',
    )
    .addOption(dataFlag())
    .addOption(new Option('--apply', 'deliver the records; the folder is only read'))
    .addOption(jsonFlag())
    .action((folder: string, flags: JournalFlags) => reportFailure(flags, () => adopt(folder, flags)));
  journal
    .command('deliver', { hidden: true })
    .requiredOption('--data <folder>')
    .action((flags: { readonly data: string }) => reportFailure({}, () => deliver(flags)));
  return journal;
}

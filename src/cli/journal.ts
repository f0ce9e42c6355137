import { Command, Option } from 'commander';
import type { ContextClient } from '../client/session/context-client.js';
import { damageText } from './doctor.js';
import { dataFlag, jsonFlag } from './flags.js';
import { escapedJson, escapedLine, progressLine, reportFailure } from './output.js';

/** Flags of `palimpsest journal salvage`, as commander hands them over. */
interface SalvageFlags {
  readonly data?: string;
  readonly apply?: boolean;
  readonly json?: boolean;
}

/** What is done with what is damaged, in sentences. */
async function planOf(folder: string): Promise<readonly string[]> {
  const [{ asideFiles, inspectJournals, isBrokenJournal }, { lossText, readDamaged }] = await Promise.all([
    import('../journal/journals.js'),
    import('../client/delivery/damaged-journal.js'),
  ]);
  const plan: string[] = [];
  for (const journal of (await inspectJournals(folder)).filter(isBrokenJournal)) {
    if (journal.holder !== undefined) plan.push(`process ${journal.holder.pid} delivers ${journal.owner}: ${damageText(journal)}`);
    else if (journal.state !== 'corrupt') plan.push(`${journal.owner} stays as it is: ${journal.reason ?? journal.state}`);
    else plan.push(`deliver the ${journal.pending} records that wait and can be read: ${lossText(await readDamaged(folder, journal))}`);
  }
  for (const { path, ...found } of await asideFiles(folder)) plan.push(`move ${path} to settled/, where it is kept: ${damageText(found)}`);
  return plan;
}

/** A database that takes not one record of a journal in so long a time is not working on it, milliseconds. */
const STUCK_MS = 60_000;

/** Waits until the database has all that was taken over from dead processes, however much that is, for as long as it takes some of it. */
async function deliverAll(client: ContextClient): Promise<void> {
  await client.ready();
  const line = progressLine();
  try {
    for (let { waiting } = client.status; waiting > 0; { waiting } = client.status) {
      line.show(`${waiting} records wait`);
      await client.backpressure(waiting - 1, STUCK_MS);
    }
    await client.delivered();
  } finally {
    line.end();
  }
}

async function salvage(flags: SalvageFlags): Promise<void> {
  const [{ readSettings }, { clientFolder }] = await Promise.all([import('../host/settings.js'), import('../process/data-folder.js')]);
  const settings = readSettings(process.env, flags);
  const folder = clientFolder(settings.node.dataDir, settings.nodeUrl);
  const plan = await planOf(folder);
  const notices: string[] = [];
  let settled: readonly string[] = [];
  if (flags.apply === true && plan.length > 0) {
    const [{ openClient }, { settleAside }] = await Promise.all([import('../host/open-client.js'), import('../journal/journals.js')]);
    const { client, close } = await openClient(settings, {
      roots: [process.cwd()],
      cwd: process.cwd(),
      onNotice: (line) => notices.push(line),
      what: 'palimpsest journal',
    });
    try {
      await deliverAll(client);
    } finally {
      await close();
    }
    settled = await settleAside(folder);
  }
  if (flags.json === true) console.log(escapedJson({ plan, applied: flags.apply === true, notices, settled }));
  else {
    const lines =
      plan.length === 0 ? ['no journal is damaged'] : plan.map((line) => `${flags.apply === true ? 'done' : 'plan'}      ${line}`);
    const rest = flags.apply === true || plan.length === 0 ? [] : ['Nothing was changed. Do it with --apply; no file is ever removed.'];
    console.log(
      [...lines, ...notices.map((line) => `note      ${line}`), ...settled.map((path) => `kept      ${path}`), ...rest]
        .map(escapedLine)
        .join('\n'),
    );
  }
}

/** `palimpsest journal`: what can be done with damaged journals. */
export function journalCommand(): Command {
  return new Command('journal').description('look after the journals of acknowledged steps').addCommand(
    new Command('salvage')
      .description(
        'show what is damaged in the journals of a data folder and what can be saved; with --apply deliver it and settle the damaged files',
      )
      .addOption(dataFlag())
      .addOption(new Option('--apply', 'do it; damaged files are moved to journal/settled and never removed'))
      .addOption(jsonFlag())
      .action((flags: SalvageFlags) => reportFailure(flags, () => salvage(flags))),
  );
}

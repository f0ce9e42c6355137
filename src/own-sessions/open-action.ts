import type { ProgramParts } from '../cli/contract.js';
import { shortened, wrapped } from '../cli/fitted-table.js';
import {
  escapedLine,
  grouped,
  printText,
  progressLine,
  reportFailure,
  standardOutput,
  tell,
  writeJson,
} from '../cli/output.js';
import { dollars, homeless, shortCount, shortTime } from '../cli/shown-values.js';
import { NOT_TOLD } from '../history/rebuild/not-told.js';
import { type Environment, variable } from '../host/environment.js';
import { openMask } from '../host/open-mask.js';
import { openStore } from '../host/open-store.js';
import { readSettings, UsageError } from '../host/settings.js';
import { openReplayDatabase } from '../lab/replay/replay-database.js';
import { type ChosenSession, chooseSession } from './choose-session.js';
import { allTokens, ownSpent, type Spent, spentWithSubAgents } from './counted-tokens.js';
import type { FoundSession } from './find-sessions.js';
import { importSession, type OpenedSession } from './import-session.js';
import { homeFolder, searchMachine } from './search-machine.js';

/** Flags of `palimpsest open`. */
export interface OpenFlags {
  readonly data?: string;
  readonly port: number;
  /** False with `--no-browser`. */
  readonly browser: boolean;
  /** False with `--no-page`. */
  readonly page: boolean;
  readonly json?: boolean;
}

/** The text that is printed for each outcome, after the session's id. */
const OUTCOMES: Readonly<Record<OpenedSession['outcome'], string>> = {
  imported: 'imported from the transcript',
  continued: 'continued from the transcript',
  anew: 'imported again from the transcript, which changed since the first import',
  unchanged: 'imported before from the transcript',
  recorded: 'recorded by Palimpsest itself',
  followed: 'recorded from the transcript by palimpsest watch, which follows it',
};

const LIMITS =
  `Palimpsest did not see the requests. It shows them from the transcript, which lacks ${NOT_TOLD}. ` +
  'Reasoning is not imported.';

/** Returns whether a browser can be opened on this machine. */
function hasBrowser(env: Environment): boolean {
  if (variable(env, 'BROWSER') !== undefined) return true;
  if (process.platform !== 'linux') return true;
  return variable(env, 'DISPLAY') !== undefined || variable(env, 'WAYLAND_DISPLAY') !== undefined;
}

const spentFacts = (spent: Spent): readonly string[] => [
  ...(spent.calls === 0 ? [] : [`${shortCount(allTokens(spent))} tokens`]),
  ...(spent.calls === spent.unpriced ? [] : [dollars(spent.dollars)]),
];

/** Returns the lines about a session. `width` is that of the terminal, if there is one. */
function aboutLines(
  chosen: ChosenSession,
  {
    sessions,
    home,
    width,
  }: { readonly sessions: readonly FoundSession[]; readonly home: string; readonly width: number | undefined },
): readonly string[] {
  const { agent, title, folder, calls, endedAt, mtime } = chosen;
  const all = spentWithSubAgents(chosen, sessions);
  const facts = [
    agent,
    ...(folder === undefined ? [] : [homeless(folder, home)]),
    shortTime(new Date(endedAt ?? mtime), new Date()),
    `${grouped(calls)} ${calls === 1 ? 'answer' : 'answers'}`,
    ...spentFacts(ownSpent(chosen)),
  ];
  const withAll =
    all === undefined
      ? ''
      : `; with ${grouped(all.sessions)} ${all.sessions === 1 ? 'sub-agent' : 'sub-agents'}: ` +
        spentFacts(all.spent).join(', ');
  return [
    shortened(escapedLine(title === '' ? '(no prompt)' : title), width ?? Infinity),
    ...wrapped(escapedLine(`${facts.join(', ')}${withAll}`), width, '  '),
  ];
}

/** Imports a session into the user's database. */
async function importInto(chosen: ChosenSession, flags: OpenFlags): Promise<OpenedSession> {
  const settings = readSettings(process.env, flags);
  if (settings.nodeUrl !== undefined)
    throw new UsageError('palimpsest open imports into the data folder of this machine. Unset XTDB_URL to use it.');
  const progress = progressLine();
  const { dataDir, ...node } = settings.node;
  const show = (line: string): void => progress.show(line);
  const database = await openReplayDatabase(dataDir, { ...node, onProgress: show });
  const { store, close } = await openStore(settings, show);
  try {
    return await importSession(chosen, {
      database: { ...database, dataDir, mask: () => openMask(dataDir, settings.mask) },
      store,
      onProgress: (done, total) => show(`importing: ${Math.floor((100 * done) / Math.max(1, total))} %`),
    });
  } finally {
    progress.end();
    await close();
    await database.close();
  }
}

/** Runs `palimpsest open`. */
export async function openAction(name: string, flags: OpenFlags, program: ProgramParts): Promise<void> {
  await reportFailure(flags, async () => {
    const started = Date.now();
    const { dataDir } = readSettings(process.env, flags).node;
    const machine = await searchMachine(process.env, dataDir);
    const chosen = await chooseSession(name, machine);
    const { session, outcome } = await importInto(chosen, flags);
    const { agent, id, title, path } = chosen;
    if (flags.json === true)
      return writeJson({ session, outcome, source: 'transcript', agent, id, title, path, ms: Date.now() - started });
    // A no-break space keeps the number and its unit on one line.
    const took = `${((Date.now() - started) / 1_000).toFixed(1)}\u00a0s`;
    const { isTerminal, width } = standardOutput({});
    printText(
      [
        ...aboutLines(chosen, { sessions: machine.sessions, home: homeFolder(process.env), width }),
        ...wrapped(`Session ${session}: ${OUTCOMES[outcome]} (${took}).`, width),
      ].join('\n'),
    );
    if (outcome !== 'recorded') tell(wrapped(LIMITS, width).join('\n'));
    if (!flags.page) return;
    const { data, port } = flags;
    const open = flags.browser && isTerminal && hasBrowser(process.env);
    const shown = { ...(data === undefined ? {} : { data }), port, open, logLevel: 'warn' } as const;
    await program.contracts.find((contract) => contract.show !== undefined)?.show?.(session, shown, program);
  });
}

import { fittedTable, shortened, wrapped } from '../cli/fitted-table.js';
import { type Colours, grouped } from '../cli/output.js';
import { homeless, shortDay } from '../cli/shown-values.js';
import { type ListedSession, sessionTable } from '../review/cli/session-table.js';
import { AGENT_NAMES, AGENTS } from './agent-homes.js';
import { allTokens, ownSpent, type Spent, spentWithSubAgents } from './counted-tokens.js';
import type { UnreadFile } from './find-files.js';
import { type FoundSession, type FoundSessions, lastUse, ownSessions } from './find-sessions.js';

/** The sessions in the user's database, if they can be counted without starting its node. */
export interface Recorded {
  /** The number of sessions; undefined if the node does not run. */
  readonly sessions: number | undefined;
  /** Whether the database exists. */
  readonly exists: boolean;
}

/** The contents of the first screen. */
export interface FirstScreen extends FoundSessions {
  readonly version: string;
  readonly recorded: Recorded;
  readonly now: Date;
  readonly home: string;
}

/** How lines are shown. */
export interface Shown {
  readonly colours: Colours;
  /** The terminal's width; undefined if the output is not a terminal. */
  readonly width: number | undefined;
}

const SHOWN_SESSIONS = 10;
const SHOWN_UNREAD = 3;

function agentRows({ sessions, now }: FirstScreen): readonly (readonly string[])[] {
  return AGENTS.flatMap((agent) => {
    const own = sessions.filter((session) => session.agent === agent);
    if (own.length === 0) return [];
    const times = own.map(lastUse);
    const [first, last] = [Math.min(...own.map((one) => one.startedAt ?? lastUse(one))), Math.max(...times)];
    const days = [shortDay(new Date(first), now), shortDay(new Date(last), now)];
    return [[AGENT_NAMES[agent], grouped(own.length), days[0] === days[1] ? (days[0] ?? '') : days.join(' to ')]];
  });
}

/** Returns the cost of sessions for a list. Undefined if no price is known. */
export const listedCost = ({
  calls,
  unpriced,
  dollars: amount,
}: Pick<Spent, 'calls' | 'unpriced' | 'dollars'>): ListedSession['cost'] =>
  calls === unpriced ? undefined : { amount, isPart: unpriced > 0 };

function listed(session: FoundSession, nth: number, all: readonly FoundSession[]): ListedSession {
  const spent = ownSpent(session);
  const sum = spentWithSubAgents(session, all);
  return {
    nth,
    title: session.title,
    agent: AGENT_NAMES[session.agent],
    folder: session.folder,
    used: new Date(lastUse(session)),
    calls: session.calls,
    tokens: spent.calls === 0 ? undefined : allTokens(spent),
    cost: listedCost(spent),
    withSubAgents: sum && { sessions: sum.sessions, cost: listedCost(sum.spent) },
  };
}

/** Returns the lines about files that could not be read as sessions. */
function unreadLines(unread: readonly UnreadFile[], home: string): readonly string[] {
  if (unread.length === 0) return [];
  const files = unread.length === 1 ? '1 file is not a session' : `${grouped(unread.length)} files are not sessions`;
  const named = unread.slice(0, SHOWN_UNREAD).map(({ path, reason }) => `  ${homeless(path, home)} (${reason})`);
  const more = unread.length > SHOWN_UNREAD ? [`  and ${grouped(unread.length - SHOWN_UNREAD)} more`] : [];
  return [`${files} and left out:`, ...named, ...more];
}

function recordedLine({ sessions, exists }: Recorded): string {
  if (!exists) return 'Palimpsest has recorded nothing yet.';
  if (sessions === undefined) return 'Palimpsest has a database here: palimpsest sessions lists what it recorded.';
  const counted = `${grouped(sessions)} ${sessions === 1 ? 'session' : 'sessions'}`;
  return `Palimpsest's database has ${counted}; palimpsest sessions lists them.`;
}

function nextLines(hasSessions: boolean, colours: Colours): readonly string[] {
  const steps = hasSessions
    ? [
        ['palimpsest open LAST', 'the newest session in the browser'],
        ['palimpsest costs', 'costs, and where the cache was lost'],
        ['palimpsest setup', 'record your agents from now on'],
      ]
    : [
        ['palimpsest open FILE', 'a recorded session in the browser'],
        ['palimpsest setup', 'record an agent from now on'],
        ['palimpsest help', 'all commands by purpose'],
      ];
  const width = Math.max(...steps.map(([command = '']) => command.length));
  return steps.map(([command = '', what = '']) => `  ${colours.cyan(command.padEnd(width))}  ${what}`);
}

/** Returns the lines that `palimpsest` prints without arguments. */
export function firstScreenLines(screen: FirstScreen, shown: Shown): readonly string[] {
  const { colours, width } = shown;
  const { sessions, unread, version, recorded, home } = screen;
  const own = ownSessions(sessions);
  const agents = agentRows({ ...screen, sessions: own });
  const found =
    agents.length === 0
      ? wrapped('No sessions of Claude Code, Codex, OpenCode, pi, Gemini CLI or Cline were found.', width)
      : fittedTable(
          [{ heading: 'agent' }, { heading: 'sessions', align: 'right' }, { heading: 'days' }],
          agents,
          shown,
        );
  const last = own.slice(0, SHOWN_SESSIONS).map((session, i) => listed(session, i + 1, sessions));
  return [
    ...wrapped(`Palimpsest ${version}: what your agents did on this machine`, width).map(colours.bold),
    '',
    ...found,
    ...(last.length === 0 ? [] : ['', ...sessionTable(last, { ...shown, now: screen.now, home })]),
    '',
    ...wrapped(recordedLine(recorded), width),
    ...unreadLines(unread, home).map((line) => shortened(line, width ?? Infinity)),
    '',
    ...nextLines(own.length > 0, colours).map((line) => shortened(line, width ?? Infinity)),
  ];
}

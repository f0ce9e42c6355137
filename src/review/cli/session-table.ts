import { type Column, fittedTable, shortened } from '../../cli/fitted-table.js';
import { type Colours, grouped } from '../../cli/output.js';
import { dollars, homeless, shortCount, shortTime } from '../../cli/shown-values.js';
import { ownMember } from '../../values/own-member.js';

/** A session as a row of a list for people. Absent figures are unknown. */
export interface ListedSession {
  /** Its number in the list. Another command takes this number as a name. */
  readonly nth?: number | undefined;
  readonly title: string;
  readonly agent?: string | undefined;
  readonly folder?: string | undefined;
  readonly used: Date;
  readonly calls?: number | undefined;
  readonly tokens?: number | undefined;
  /** US dollars. `isPart`: some calls have no known price. */
  readonly cost?: { readonly amount: number; readonly isPart: boolean } | undefined;
  /** The number of its sub-agents, and the cost with theirs. */
  readonly withSubAgents?: { readonly sessions: number; readonly cost: ListedSession['cost'] } | undefined;
  readonly filesChanged?: number | undefined;
  readonly failures?: number | undefined;
  /** Findings of the last verification. */
  readonly findings?: number | undefined;
  readonly isOpen?: boolean | undefined;
  readonly id?: string | undefined;
}

/** Where a list is shown. */
export interface ListPlace {
  readonly colours: Colours;
  /** Undefined if the output is not a terminal. */
  readonly width: number | undefined;
  readonly now: Date;
  readonly home: string;
}

const COLUMNS: readonly Column[] = [
  { heading: '#', align: 'right', style: 'dim' },
  { heading: 'title', share: 2, least: 12 },
  { heading: 'agent', rank: 3 },
  { heading: 'folder', rank: 1 },
  { heading: 'last used' },
  { heading: 'answers', align: 'right', rank: 2 },
  { heading: 'tokens', align: 'right', rank: 2 },
  { heading: 'cost', align: 'right', rank: 3 },
  { heading: 'with sub-agents', align: 'right' },
  { heading: 'files', align: 'right' },
  { heading: 'failed', align: 'right' },
  { heading: 'verified' },
  { heading: '' },
  { heading: 'session', share: 1, least: 11, keep: 'ends', style: 'dim' },
];
/** Columns that only wide terminals have room for. */
const WIDE: ReadonlySet<string> = new Set(['with sub-agents', 'files', 'failed', 'verified', '']);
const WIDE_CELLS = 100;
const MOST_FOLDER_CELLS = 14;

/** Names for a narrow table. */
const SHORT_NAMES: Readonly<Record<string, string>> = { 'Claude Code': 'Claude', 'Gemini CLI': 'Gemini' };

/** Shortens a folder at its beginning, because the end of a path says more. */
function folderCell(folder: string | undefined, home: string): string {
  const path = homeless(folder ?? '', home);
  const end = path.split(/[\\/]/).slice(-2).join('/').length < path.length ? path.split(/[\\/]/).at(-1) : path;
  return shortened(end ?? '', MOST_FOLDER_CELLS);
}

/** Returns the cost of a session for a list. A `>` says that some of its calls have no price. */
export const costCell = (cost: ListedSession['cost']): string =>
  cost === undefined ? '' : `${cost.isPart ? '>' : ''}${dollars(cost.amount)}`;

const counted = (count: number | undefined): string => (count === undefined ? '' : grouped(count));
const unlessNone = (count: number | undefined): string => (count === 0 ? '' : counted(count));

function row(session: ListedSession, { now, home }: ListPlace): readonly string[] {
  const {
    nth,
    title,
    agent = '',
    folder,
    used,
    calls,
    tokens,
    cost,
    withSubAgents,
    filesChanged,
    failures,
    findings,
    isOpen,
    id,
  } = session;
  return [
    nth === undefined ? '' : String(nth),
    title === '' ? '(no prompt)' : title,
    ownMember(SHORT_NAMES, agent) ?? agent,
    folderCell(folder, home),
    shortTime(used, now),
    counted(calls),
    tokens === undefined ? '' : shortCount(tokens),
    costCell(cost),
    withSubAgents === undefined ? '' : `${grouped(withSubAgents.sessions)}: ${costCell(withSubAgents.cost)}`,
    unlessNone(filesChanged),
    unlessNone(failures),
    findings === undefined ? '' : findings === 0 ? '✓' : `✗ ${grouped(findings)}`,
    isOpen === true ? 'open' : '',
    id ?? '',
  ];
}

/** Formats sessions as a table that fits the terminal. It leaves out columns without content. */
export function sessionTable(sessions: readonly ListedSession[], place: ListPlace): readonly string[] {
  const { width } = place;
  const isWide = width === undefined || width >= WIDE_CELLS;
  const kept = COLUMNS.map(({ heading }) => isWide || !WIDE.has(heading));
  const rows = sessions.map((session) => row(session, place).filter((_cell, i) => kept[i]));
  return fittedTable(
    COLUMNS.filter((_column, i) => kept[i]),
    rows,
    place,
  );
}

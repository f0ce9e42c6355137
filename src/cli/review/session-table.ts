import type { SessionSummary } from '../../client/session/open-session.js';
import type { ImportedSession } from '../../host/imported-sessions.js';
import { type Column, fittedTable } from '../fitted-table.js';
import { type Colours, grouped } from '../output.js';
import { shortTime } from '../shown-values.js';

type Imported = ReadonlyMap<string, ImportedSession>;

const COLUMNS: readonly Column[] = [
  { heading: 'title', share: 2, least: 12 },
  { heading: 'from' },
  { heading: 'last used' },
  { heading: 'turns', align: 'right' },
  { heading: 'steps', align: 'right' },
  { heading: '' },
  { heading: 'session', share: 1, least: 8, style: 'dim' },
];

/** Facts beside the sessions that their table shows. */
interface TableOptions {
  readonly titles: ReadonlyMap<string, string>;
  readonly imported: Imported;
  /** Processes that have sessions open, by session. */
  readonly owners: ReadonlyMap<string, number>;
  readonly colours: Colours;
  readonly width: number;
}

/** Formats the sessions of a database for a terminal, titles before ids. */
export function sessionTable(
  sessions: readonly SessionSummary[],
  { titles, imported, owners, colours, width }: TableOptions,
): readonly string[] {
  const now = new Date();
  const rows = sessions.map(({ id, turns, steps, lastActivity, parent }) => [
    titles.get(id) ?? (parent === undefined ? '' : `fork of ${titles.get(parent.session) ?? parent.session}`),
    imported.get(id)?.agent ?? '',
    shortTime(lastActivity, now),
    grouped(turns),
    grouped(steps),
    owners.has(id) ? 'open' : '',
    id,
  ]);
  return fittedTable(COLUMNS, rows, { colours, width });
}

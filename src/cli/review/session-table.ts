import pLimit from 'p-limit';
import type { SessionSummary } from '../../client/session/open-session.js';
import type { ImportedSession } from '../../host/imported-sessions.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { type Column, fittedTable } from '../fitted-table.js';
import { type Colours, grouped } from '../output.js';
import { shortTime } from '../shown-values.js';

type Imported = ReadonlyMap<string, ImportedSession>;

/** Steps of a session that are read to find its first prompt. */
const FIRST_STEPS = 3;
const AT_ONCE = 8;
/** Sessions whose first prompts are read; titles of imported sessions are known without a read. */
const MOST_READ = 200;

/** Returns the titles of sessions: that of the recording, else the first prompt of a person. */
export async function titlesOf(
  sessions: readonly SessionSummary[],
  snapshot: StoreSnapshot,
  imported: Imported,
): Promise<ReadonlyMap<string, string>> {
  const titles = new Map<string, string>();
  const unknown = sessions.filter(({ id }) => {
    const title = imported.get(id)?.title ?? '';
    if (title !== '') titles.set(id, title);
    return title === '';
  });
  await pLimit(AT_ONCE).map(unknown.slice(0, MOST_READ), async ({ id, steps }) => {
    for (let seq = 1; seq <= Math.min(FIRST_STEPS, steps); seq += 1) {
      const message = (await snapshot.step(id, seq))?.message;
      if (message?.role !== 'user') continue;
      titles.set(id, message.text.slice(0, 400).replace(/\s+/g, ' ').trim());
      return;
    }
  });
  return titles;
}

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

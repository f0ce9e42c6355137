import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { columns, standardOutput } from '../../cli/output.js';
import { answerReview, pointText, type ReviewFlags, shownTime } from '../../cli/review/answer.js';
import { askedMoment } from '../../history/rebuild/moment.js';
import { sinceTime } from '../ask/since-time.js';
import { type Spending, tokensOf } from '../money/call-cost.js';
import { type SessionRow, SessionRows } from '../rows/session-rows.js';
import { type ListedSession, sessionTable } from './session-table.js';

/** The flags of `sessions`. */
export interface SessionsFlags extends ReviewFlags {
  readonly cwd?: string;
  readonly agent?: string;
  readonly since?: string;
}

/** Default limit of sessions on a terminal. */
const SHOWN = 100;
/** Maximum wait for figures that are not cached, in milliseconds. */
const MOST_MS = { terminal: 2_000, json: 10_000 } as const;

const NONE = ['no sessions; import one with palimpsest open, or record them with palimpsest watch --background'];

/** Returns a cost for a table. Undefined if no call has a known price. */
const listedCost = (spent: Spending | undefined): ListedSession['cost'] =>
  spent !== undefined && spent.calls > spent.unpriced
    ? { amount: spent.amount, isPart: spent.unpriced > 0 }
    : undefined;

/** Converts a row of the database to one of a table. */
export function listed(row: SessionRow): ListedSession {
  const { id, title, agent, folder, to, parent, owner, figures, check, withSubAgents: sum } = row;
  const { spent, calls, filesChanged, failures } = figures ?? {};
  return {
    id,
    title: title !== '' || parent === undefined ? title : `fork of ${parent.session}`,
    agent,
    folder,
    used: to,
    calls,
    filesChanged,
    failures,
    tokens: spent === undefined || spent.calls === 0 ? undefined : tokensOf(spent),
    cost: listedCost(spent),
    withSubAgents: sum?.spent && { sessions: sum.sessions, cost: listedCost(sum.spent) },
    findings: check?.findings,
    isOpen: owner !== undefined,
  };
}

function plainRow({ id, turns, steps, to, parent, owner }: SessionRow): readonly string[] {
  const from =
    parent === undefined
      ? ''
      : parent.kind === 'fork'
        ? `fork of ${parent.session} at step ${parent.at}`
        : `sub-agent of ${parent.session}`;
  const state = [from, owner === undefined ? '' : `open in process ${owner}`].filter((text) => text !== '');
  return [id, String(turns), String(steps), shownTime(to), state.join(', ')];
}

/** `sessions` */
export async function sessionsAction(flags: SessionsFlags): Promise<void> {
  const { json, limit, cwd, agent, since } = flags;
  const { isTerminal } = standardOutput(flags);
  await answerReview(flags, async ({ timeline, clientDir, dataDir }) => {
    const point = await timeline.find(askedMoment(flags), undefined);
    const list = new SessionRows(dataDir, clientDir);
    const all = await list.list(point.snapshot, {
      agent,
      cwd: cwd === undefined ? undefined : resolve(cwd),
      since: since === undefined ? undefined : sinceTime(since, new Date()),
    });
    const isTable = json !== true && isTerminal;
    const shown = all.slice(0, limit ?? (isTable ? SHOWN : all.length));
    const mostMs = json === true ? MOST_MS.json : MOST_MS.terminal;
    const rows =
      json === true || isTable
        ? await list.withFigures(point.snapshot, await list.described(point.snapshot, shown), { mostMs })
        : await list.withStarters(point.snapshot, shown);
    const left = all.length - shown.length;
    return {
      lines: (colours, width) => {
        if (rows.length === 0)
          return all.length === 0 && agent === undefined && cwd === undefined ? NONE : ['no such session'];
        if (width === undefined)
          return columns(['session', 'turns', 'steps', 'last activity', ''], rows.map(plainRow), colours);
        return sessionTable(rows.map(listed), { colours, width, now: new Date(), home: homedir() });
      },
      holds: pointText(point),
      notes:
        limit === undefined && left > 0
          ? [`the newest ${shown.length} sessions; there are ${left} more (--limit)`]
          : [],
      json: async () => {
        const { sessionRowAnswer } = await import('../http/session-list.js');
        const open = rows.flatMap(({ id, owner }) => (owner === undefined ? [] : [{ session: id, pid: owner }]));
        const sessions = rows.map((row) => ({
          ...sessionRowAnswer(row),
          last_activity: row.to.toISOString(),
          open_here: false,
        }));
        return { sessions, open };
      },
    };
  });
}

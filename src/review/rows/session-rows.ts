import pLimit from 'p-limit';
import type { ContextClient } from '../../client/session/context-client.js';
import { listSessions, type SessionSummary } from '../../client/session/open-session.js';
import { type ImportedSession, importedSessions } from '../../host/imported-sessions.js';
import { SessionTitles } from '../../host/session-titles.js';
import type { AskedPast } from '../../http/http-contract.js';
import { sessionLockOwners } from '../../journal/session-lock.js';
import { type ObjectId, sessionId } from '../../objects/ids.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';
import { type SessionFigures, sessionFigures } from '../money/session-figures.js';
import { sumWithSubAgents, type WithSubAgents } from '../money/sub-agent-cost.js';
import { readStarter } from './import-records.js';
import { CHECKS, FIGURES, KeptSessions, type KnownFigures, type SessionCheck } from './kept-sessions.js';
import { startedBy } from './started-by.js';
import { recordingOf } from './sub-agents.js';

/** A session in a list for people. */
export interface SessionRow {
  readonly id: string;
  /** The harness's title, or the first words of the user. Empty if there are none. */
  readonly title: string;
  readonly agent?: string;
  readonly folder?: string;
  readonly to: Date;
  readonly turns: number;
  readonly steps: number;
  readonly parent?: {
    readonly session: string;
    readonly at?: number;
    readonly kind: 'fork' | 'sub-agent';
    /** The parent's call that started a sub-agent. */
    readonly call?: ObjectId;
  };
  /** Whether it shares a recording. The session that started it was not read. */
  readonly isPart?: true;
  /** Id of the process that has the session open. */
  readonly owner?: number;
  /** The figures. Undefined if they have not been counted yet. */
  readonly figures?: SessionFigures;
  /** Its cost with that of its sub-agents. Undefined without sub-agents. */
  readonly withSubAgents?: WithSubAgents;
  /** All sessions that may be its sub-agents. */
  readonly family?: SessionFamilies;
  /** The last verification. Undefined if the session was never checked, or has changed since. */
  readonly check?: SessionCheck;
}

/** The sessions of a list that others may have started. */
interface SessionFamilies {
  /** The later sessions of a recording, by its first session. */
  readonly parts: ReadonlyMap<string, readonly SessionRow[]>;
  /** Sub-agents with separate recordings, by the session that started them. */
  readonly recorded: ReadonlyMap<string, readonly SessionRow[]>;
}

const starterOf = ({ parent }: SessionRow): string | undefined =>
  parent?.kind === 'sub-agent' ? parent.session : undefined;

function familiesOf(rows: readonly SessionRow[]): SessionFamilies {
  const [parts, recorded] = [new Map<string, SessionRow[]>(), new Map<string, SessionRow[]>()];
  for (const row of rows) {
    const recording = row.isPart === true ? recordingOf(row.id) : undefined;
    const [groups, key] = recording === undefined ? [recorded, starterOf(row)] : [parts, recording];
    if (key !== undefined) groups.set(key, [...(groups.get(key) ?? []), row]);
  }
  return { parts, recorded };
}

/** Returns the sessions that may be sub-agents of a row. */
function nearOf({ id, family }: SessionRow): readonly SessionRow[] {
  const near = [...(family?.parts.get(recordingOf(id) ?? id) ?? [])];
  const seen = new Set([id, ...near.map((one) => one.id)]);
  // The loop also visits the ids that are added to the set meanwhile.
  for (const starter of seen)
    for (const row of family?.recorded.get(starter) ?? []) {
      if (!seen.has(row.id)) near.push(row);
      seen.add(row.id);
    }
  return near;
}

/** Returns the recorded folder of the session that a fork began in, through all its parents. */
function parentsFolder(
  id: string,
  parents: ReadonlyMap<string, string | undefined>,
  imported: ReadonlyMap<string, ImportedSession>,
): string | undefined {
  const seen = new Set<string>();
  for (let at = parents.get(id); at !== undefined && !seen.has(at); at = parents.get(at)) {
    seen.add(at);
    const { folder } = imported.get(at) ?? imported.get(recordingOf(at) ?? '') ?? {};
    if (folder !== undefined) return folder;
  }
  return undefined;
}

/** The sessions to list. */
export interface RowFilter {
  /** Words of the title, or a part of the id. */
  readonly text?: string | undefined;
  /** A part of the agent's name, in any case. */
  readonly agent?: string | undefined;
  /** The folder of the session, or one above it. */
  readonly cwd?: string | undefined;
  /** Used at this time or later. */
  readonly since?: Date | undefined;
}

const AT_ONCE = 4;
/** Time in milliseconds that counting continues after the answer, for the next question. */
const COUNT_ON_MS = 10_000;

const isBelow = (folder: string, above: string): boolean =>
  folder === above || folder.startsWith(above.endsWith('/') ? above : `${above}/`);

function admits({ text, agent, cwd, since }: RowFilter, row: SessionRow): boolean {
  const found = (part: string, whole = ''): boolean => whole.toLowerCase().includes(part.toLowerCase());
  return (
    (text === undefined || found(text, row.title) || row.id.startsWith(text)) &&
    (agent === undefined || found(agent, row.agent)) &&
    (cwd === undefined || (row.folder !== undefined && isBelow(row.folder, cwd))) &&
    (since === undefined || row.to >= since)
  );
}

/** Lists the sessions of a data folder with their titles and figures. */
export class SessionRows {
  readonly #dataDir: string;
  readonly #clientDir: string;
  readonly #titles = new SessionTitles();
  /** Parents of sessions that come from one recording. A parent never changes. */
  readonly #starters = new Map<string, SessionRow['parent']>();
  #known: Promise<KeptSessions<KnownFigures>> | undefined;

  constructor(dataDir: string, clientDir: string = dataDir) {
    this.#dataDir = dataDir;
    this.#clientDir = clientDir;
  }

  /**
   * Returns the rows that a filter admits, the most recently used first, with known titles and
   * figures. `described` completes those that are shown. A filter by text reads titles first.
   */
  async list(snapshot: StoreSnapshot, filter: RowFilter = {}): Promise<readonly SessionRow[]> {
    this.#known ??= KeptSessions.open(this.#dataDir, FIGURES);
    const roots = new Map<string, string | undefined>();
    const [known, checked, listed, imported, owners] = await Promise.all([
      this.#known,
      KeptSessions.open(this.#dataDir, CHECKS),
      listSessions(snapshot, [], (session) => {
        roots.set(session.id, session.roots?.[0]?.path);
        return true;
      }),
      importedSessions(this.#dataDir),
      sessionLockOwners(this.#clientDir),
    ]);
    const pids = new Map(owners.map(({ session, pid }) => [String(session), pid]));
    const ids = new Set<string>(listed.map(({ id }) => id));
    const parents = new Map<string, string | undefined>(listed.map(({ id, parent }) => [id, parent?.session]));
    const rows = listed.map((summary): SessionRow => {
      const { id, lastActivity: to, turns, steps } = summary;
      const noted = imported.get(id);
      const name = recordingOf(id);
      const whole = name === undefined ? undefined : imported.get(name);
      const parent = parentOf(summary, noted);
      const isPart = parent === undefined && noted === undefined && name !== undefined && ids.has(name);
      return {
        id,
        title: noted?.title || known.last(id)?.title || '',
        to,
        turns,
        steps,
        ...(isPart ? { isPart } : {}),
        ...defined({
          agent: noted?.agent ?? whole?.agent,
          // An import's root is not the folder of its session. A fork has the folder of its parent.
          folder:
            noted?.folder ??
            whole?.folder ??
            parentsFolder(id, parents, imported) ??
            ((noted ?? whole) === undefined ? roots.get(id) : undefined),
          parent,
          owner: pids.get(id),
          figures: known.of({ id, upto: steps, at: to.getTime() })?.figures,
          check: checked.of({ id, upto: steps, at: to.getTime() }),
        }),
      };
    });
    const { text, ...rest } = filter;
    const family = familiesOf(rows);
    const admitted = rows.filter((row) => admits(rest, row)).map((row) => ({ ...row, family }));
    if (text === undefined) return admitted;
    return (await this.described(snapshot, admitted)).filter((row) => admits(filter, row));
  }

  /** Returns rows with their titles, and with the sessions that started them. */
  async described(snapshot: StoreSnapshot, rows: readonly SessionRow[]): Promise<readonly SessionRow[]> {
    const untitled = rows.filter(({ title }) => title === '');
    const [placed, titles] = await Promise.all([
      this.withStarters(snapshot, rows),
      this.#titles.of(untitled, snapshot),
    ]);
    return placed.map((row) => ({ ...row, title: row.title || (titles.get(row.id) ?? '') }));
  }

  /** Returns rows with the sessions that started them, as their import recorded it. */
  async withStarters(snapshot: StoreSnapshot, rows: readonly SessionRow[]): Promise<readonly SessionRow[]> {
    const parts = rows.filter(({ id, isPart }) => isPart === true && !this.#starters.has(id));
    await pLimit(AT_ONCE).map(parts, async ({ id }) => {
      this.#starters.set(id, await readStarter(snapshot, sessionId(id)));
    });
    return rows.map(({ isPart, ...row }) =>
      isPart === true ? { ...row, ...defined({ parent: this.#starters.get(row.id) }) } : row,
    );
  }

  /** Returns the sub-agents of some rows by the rows' ids. */
  async #subAgents(
    snapshot: StoreSnapshot,
    rows: readonly SessionRow[],
  ): Promise<ReadonlyMap<string, readonly SessionRow[]>> {
    const found = new Map<string, readonly SessionRow[]>();
    for (const row of rows) {
      const near = nearOf(row);
      if (near.length > 0) found.set(row.id, startedBy(row.id, await this.withStarters(snapshot, near), starterOf));
    }
    return found;
  }

  /**
   * Returns rows with their figures. Waits at most `mostMs` milliseconds for figures that must be
   * counted. Rows that take longer have none, and counting continues for the next question.
   */
  async withFigures(
    snapshot: StoreSnapshot,
    rows: readonly SessionRow[],
    { mostMs }: { readonly mostMs: number },
  ): Promise<readonly SessionRow[]> {
    this.#known ??= KeptSessions.open(this.#dataDir, FIGURES);
    const known = await this.#known;
    const until = performance.now() + mostMs;
    const found = new Map<string, SessionFigures>();
    const subAgents = await this.#subAgents(snapshot, rows);
    const all = new Map([...rows, ...[...subAgents.values()].flat()].map((row) => [row.id, row]));
    const missing = [...all.values()].filter(({ figures }) => figures === undefined);
    const counting = pLimit(AT_ONCE).map(missing, async ({ id, steps, to, title }) => {
      if (performance.now() > until + COUNT_ON_MS) return;
      const figures = await sessionFigures(snapshot, sessionId(id));
      known.keep({ id, upto: steps, at: to.getTime() }, { title, figures });
      found.set(id, figures);
    });
    // A session that cannot be read has no figures. A question about that session reports the
    // damage.
    const saved = counting.then(
      () => known.save(),
      () => known.save(),
    );
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, mostMs);
    });
    await Promise.race([saved, late]);
    clearTimeout(timer);
    const figuresOf = (row: SessionRow): SessionFigures | undefined => row.figures ?? found.get(row.id);
    return rows.map((row) => {
      const own = subAgents.get(row.id)?.map((one) => figuresOf(one)?.spent) ?? [];
      const withSubAgents = sumWithSubAgents(figuresOf(row)?.spent, own);
      return { ...row, ...defined({ figures: figuresOf(row), withSubAgents }) };
    });
  }
}

function parentOf({ parent }: SessionSummary, noted: ImportedSession | undefined): SessionRow['parent'] {
  if (parent !== undefined) return { session: parent.session, at: parent.seq, kind: 'fork' };
  const { subagentOf } = noted ?? {};
  return subagentOf === undefined ? undefined : { session: subagentOf, kind: 'sub-agent' };
}

const rows = new WeakMap<ContextClient, SessionRows>();

/** Returns a client's list of sessions. Undefined if the server may not show its folders. */
export function rowsOf({ client, folders }: Pick<AskedPast, 'client' | 'folders'>): SessionRows | undefined {
  if (folders === undefined) return undefined;
  const known = rows.get(client) ?? new SessionRows(folders.dataDir, folders.clientDir);
  rows.set(client, known);
  return known;
}

import { listSessions, type SessionSummary } from '../../client/session/open-session.js';
import { requireSession } from '../../history/rebuild/find-session.js';
import { parseReference } from '../../history/rebuild/moment.js';
import { type PastContext, PastContexts } from '../../history/rebuild/past-context.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import { type CountTexts, countingOnce } from '../../history/rebuild/tokenizer.js';
import type { AssemblyProof } from '../../objects/assembly-proof.js';
import type { SessionId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import { withLedger } from '../../review/ask/context-report.js';
import { askOnce, begun } from '../../values/promises.js';
import { type AnnouncedTools, readAnnouncements, type ToolAnnouncement } from './announced-tools.js';
import { isReportOf, type ReportedMoment, type TyrumReport, tyrumReport, tyrumReportId } from './context-report.js';
import { TyrumError } from './tyrum-error.js';

/** Selects reports. */
export interface WantedReports {
  /** A session id or the beginning of one. Default: all visible sessions. */
  readonly conversation?: string | undefined;
  /** A turn, as `SESSION@turn:7`. */
  readonly turn?: string | undefined;
  /** 50 if omitted. */
  readonly limit?: number | undefined;
}

/** A report with its turn. */
export interface ReportRow {
  readonly turn: string;
  readonly at: Date;
  readonly report: TyrumReport;
}

/** A context for which a report can be made. */
interface Found extends ReportedMoment {
  readonly id: string;
  readonly turn: number;
  readonly at: number;
  /** The record of the context. Undefined if it was never handed out. */
  readonly proof: AssemblyProof | undefined;
}

const LISTED = 50;

/** Decides which sessions are visible. */
export interface ReportAccess {
  /** Returns the visible sessions among those given. */
  maySee(sessions: readonly SessionId[]): Promise<readonly SessionId[]>;
  /** Throws if the session is not visible. */
  require(session: SessionId): Promise<void>;
}

/** At the command line, every session is visible. */
const EVERYTHING: ReportAccess = { maySee: async (sessions) => sessions, require: async () => undefined };

/** Returns the id of a turn on Tyrum's surface. All our queries accept it. */
const turnId = ({ session, turn }: Pick<Found, 'session' | 'turn'>): string => `${session}@turn:${turn}`;

function turnOf(reference: string): { readonly session: string; readonly turn: number } {
  const { name, moment } = parseReference(reference);
  if (moment?.kind === 'turn' && moment.step === undefined) return { session: name, turn: moment.turn };
  throw new TyrumError(
    'invalid-settings',
    `turn_id is ${JSON.stringify(reference.slice(0, 200))}: give it as SESSION@turn:7, as in the list`,
  );
}

const rowOf = (found: Found, report: TyrumReport): ReportRow => ({
  turn: turnId(found),
  at: new Date(found.at),
  report,
});

/**
 * Returns when a step was acknowledged, in milliseconds since 1970. A context before the first step
 * gets the time of that step.
 */
const atOf = (steps: readonly Step[], step: number): number => (steps[step - 1] ?? steps[0])?.at ?? 0;

/**
 * The context reports of one timeline. They cover every handed-out context with a record. For an
 * imported session without records, they cover the context at the end of each turn. Reports are
 * made on request from stored data, so a context always gives the same report and id.
 */
export class TyrumReports {
  readonly #contexts = new Map<Timeline, PastContexts>();
  readonly #count: CountTexts;
  readonly #announced = new Map<SessionId, Promise<readonly ToolAnnouncement[]>>();

  constructor(
    readonly timeline: Timeline,
    count: CountTexts,
    readonly access: ReportAccess = EVERYTHING,
  ) {
    this.#count = countingOnce(count);
  }

  /**
   * Returns reports, newest first.
   * @throws {HistoryError} `unknown-session`, and errors of rebuilding a context
   * @throws {TyrumError} `invalid-settings` for an invalid turn
   */
  async list({ conversation, turn, limit = LISTED }: WantedReports): Promise<readonly ReportRow[]> {
    const wanted = turn === undefined ? undefined : turnOf(turn);
    const name = conversation ?? wanted?.session;
    const session = name === undefined ? undefined : await this.#named(name);
    if (wanted !== undefined && session !== undefined && (await this.#named(wanted.session)) !== session) return [];
    // Starts the read early, so that it runs in parallel with the next one.
    if (session !== undefined) begun(this.tools(session));
    const found = session === undefined ? await this.#newest(limit) : await this.#of(session);
    const rows = found.filter((one) => wanted === undefined || one.turn === wanted.turn).slice(0, limit);
    return this.#rows(rows);
  }

  /**
   * Returns the report with an id. Searches the named session. By default, searches the session
   * that the id belongs to, then that session's visible forks.
   * @throws {TyrumError} `unknown-report`
   * @throws {HistoryError} as `list`
   */
  async detail(id: string, conversation?: string): Promise<ReportRow> {
    for (const session of conversation === undefined ? await this.#sessionsOf(id) : [await this.#named(conversation)]) {
      const found = (await this.#of(session)).find((one) => one.id === id.toLowerCase());
      if (found !== undefined) return this.#row(found);
    }
    throw new TyrumError(
      'unknown-report',
      `there is no context report ${JSON.stringify(id)}; GET /context/list lists the existing reports`,
    );
  }

  /** Returns the report of a past context. */
  async of(context: PastContext): Promise<TyrumReport> {
    const { session, step } = context;
    const steps = await this.timeline.steps(session);
    const tools = await this.tools(session, step);
    return tyrumReport(await withLedger(context, this.#count), { at: atOf(steps, step), tools });
  }

  /** Returns the tools that the harness had reported by a step. Undefined if none. */
  async tools(session: SessionId, step = Number.POSITIVE_INFINITY): Promise<AnnouncedTools | undefined> {
    const known = await askOnce(this.#announced, session, () => readAnnouncements(this.timeline.present, session));
    return known.findLast(({ seq }) => seq <= step)?.tools;
  }

  /**
   * Returns the tools of a session, or of the most recently used one.
   * @throws {TyrumError} `unknown-report` if there is no session
   */
  async lastTools(
    conversation?: string,
  ): Promise<{ readonly session: SessionId; readonly tools: AnnouncedTools | undefined }> {
    const named = conversation === undefined ? undefined : await this.#named(conversation);
    const session = named ?? (await this.#sessions())[0]?.id;
    if (session === undefined) throw new TyrumError('unknown-report', 'there is no visible session');
    return { session, tools: await this.tools(session) };
  }

  /** Returns the visible session with a name, which may be abbreviated. */
  async #named(name: string): Promise<SessionId> {
    const session = await requireSession(this.timeline.present, name);
    await this.access.require(session);
    return session;
  }

  async #row(found: Found): Promise<ReportRow> {
    const { proof, session, turn } = found;
    const contexts = await this.#contextsOf(session);
    const context =
      proof === undefined ? contexts.at(session, { moment: { kind: 'turn', turn } }) : contexts.ofRecord(proof);
    return rowOf(found, await this.of(await context));
  }

  /** Reads the contexts of a session. Contexts with the same objects share what was read. */
  async #contextsOf(session: SessionId): Promise<PastContexts> {
    const own = await this.timeline.of(session);
    const contexts = this.#contexts.get(own) ?? new PastContexts(own);
    this.#contexts.set(own, contexts);
    return contexts;
  }

  /** Makes several reports. Reads the handed-out contexts of a session together, oldest first. */
  async #rows(found: readonly Found[]): Promise<readonly ReportRow[]> {
    const oldestFirst = found.toReversed();
    const proofs = oldestFirst.flatMap(({ proof }) => proof ?? []);
    const read = new Map<PastContexts, AssemblyProof[]>();
    for (const proof of proofs) {
      const contexts = await this.#contextsOf(proof.session);
      read.set(contexts, [...(read.get(contexts) ?? []), proof]);
    }
    const made = new Map<AssemblyProof, TyrumReport>();
    for (const [contexts, own] of read)
      for (const [i, report] of (await contexts.ofRecords(own, (context) => this.of(context))).entries())
        made.set(own[i] as AssemblyProof, report);
    const rows: ReportRow[] = [];
    for (const one of oldestFirst) {
      const report = one.proof === undefined ? undefined : made.get(one.proof);
      rows.unshift(report === undefined ? await this.#row(one) : rowOf(one, report));
    }
    return rows;
  }

  /**
   * Returns the visible sessions, including those with a running turn. The most recently used come
   * first.
   */
  async #sessions(): Promise<readonly SessionSummary[]> {
    const sessions = await listSessions(this.timeline.present, []);
    const seen = new Set(await this.access.maySee(sessions.map(({ id }) => id)));
    return sessions.filter(({ id }) => seen.has(id));
  }

  /**
   * Returns the visible sessions to which a report can belong: the session in its id, then the
   * forks of that session.
   */
  async #sessionsOf(report: string): Promise<readonly SessionId[]> {
    const sessions = await this.timeline.present.sessions();
    const parents = new Map(sessions.map(({ id, parent }) => [id, parent?.session]));
    const owner = sessions.find(({ id }) => isReportOf(report, id))?.id;
    if (owner === undefined) return [];
    const descends = (session: SessionId): boolean => {
      let one: SessionId | undefined = session;
      while (one !== undefined && one !== owner) one = parents.get(one);
      return one === owner;
    };
    const seen = await this.access.maySee(sessions.map(({ id }) => id).filter(descends));
    return [...seen].sort((a, b) => Number(b === owner) - Number(a === owner));
  }

  /** Returns the contexts of a session for which reports can be made, newest first. */
  async #of(session: SessionId): Promise<readonly Found[]> {
    const contexts = await this.#contextsOf(session);
    const [records, steps] = await Promise.all([
      contexts.records(session),
      this.timeline.steps(session),
      this.#count([]),
    ]);
    // In a fork, the first steps belong to the parent, so they are not passed on as this session's.
    if (steps[0]?.session === session) contexts.know(steps);
    const handedOut = records.map((proof): Found => {
      const { step, turn, sha256 } = proof;
      const moment = { session: proof.session, step, sha256 };
      return { ...moment, id: tyrumReportId(moment), turn, at: atOf(steps, step), proof };
    });
    if (handedOut.length > 0) return handedOut.reverse();
    // In any other session, a context that was never handed out has no report (decision E12).
    if (!(await this.timeline.isTranscript(session))) return [];
    const turns = await this.timeline.turns(session);
    return turns.toReversed().map(({ turn, last }): Found => {
      const moment = { session, step: last, sha256: undefined };
      return { ...moment, id: tyrumReportId(moment), turn, at: atOf(steps, last), proof: undefined };
    });
  }

  /** Returns the newest contexts of all sessions. */
  async #newest(limit: number): Promise<readonly Found[]> {
    let found: readonly Found[] = [];
    for (const session of await this.#sessions()) {
      const oldest = found[limit - 1];
      if (oldest !== undefined && oldest.at > session.lastActivity.getTime()) break;
      found = [...found, ...(await this.#of(session.id))].sort((a, b) => b.at - a.at).slice(0, limit);
    }
    return found;
  }
}

import { listSessions, type SessionSummary } from '../../client/session/open-session.js';
import { withLedger } from '../../history/ask/context-report.js';
import { parseReference } from '../../history/ask/reference.js';
import { type CountTexts, countingOnce } from '../../history/ask/tokenizer.js';
import { requireSession } from '../../history/rebuild/find-session.js';
import { type PastContext, PastContexts } from '../../history/rebuild/past-context.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import type { AssemblyProof } from '../../objects/assembly-proof.js';
import type { SessionId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import { askOnce } from '../../values/ask-once.js';
import { begun } from '../../values/begun.js';
import { type AnnouncedTools, readAnnouncements, type ToolAnnouncement } from './announced-tools.js';
import { isReportOf, type ReportedMoment, type TyrumReport, tyrumReport, tyrumReportId } from './context-report.js';
import { TyrumError } from './tyrum-error.js';

/** Which reports are asked for. */
export interface WantedReports {
  /** The session, by its id or the beginning of it; all that may be seen where left out. */
  readonly conversation?: string | undefined;
  /** A turn, as `SESSION@turn:7`. */
  readonly turn?: string | undefined;
  /** 50 if left out. */
  readonly limit?: number | undefined;
}

/** A report with the turn that it is of. */
export interface ReportRow {
  readonly turn: string;
  readonly at: Date;
  readonly report: TyrumReport;
}

/** A report that can be made. */
interface Found extends ReportedMoment {
  readonly id: string;
  readonly turn: number;
  readonly at: number;
  /** The record of a context that was handed out. */
  readonly proof: AssemblyProof | undefined;
}

const LISTED = 50;

/** Which sessions may be seen. */
export interface ReportAccess {
  /** Those of some sessions that may. */
  maySee(sessions: readonly SessionId[]): Promise<readonly SessionId[]>;
  /** Refuses a session that may not. */
  require(session: SessionId): Promise<void>;
}

/** A reviewer at the command line sees everything. */
const EVERYTHING: ReportAccess = { maySee: async (sessions) => sessions, require: async () => undefined };

/** What a turn is called on Tyrum's surface: the reference that every question of ours takes. */
const turnId = ({ session, turn }: Pick<Found, 'session' | 'turn'>): string => `${session}@turn:${turn}`;

function turnOf(reference: string): { readonly session: string; readonly turn: number } {
  const { name, moment } = parseReference(reference);
  if (moment?.kind === 'turn' && moment.step === undefined) return { session: name, turn: moment.turn };
  throw new TyrumError(
    'invalid-settings',
    `turn_id is ${JSON.stringify(reference.slice(0, 200))}: give it as SESSION@turn:7, as the list has it`,
  );
}

const rowOf = (found: Found, report: TyrumReport): ReportRow => ({ turn: turnId(found), at: new Date(found.at), report });

/** When a step of a session was acknowledged, milliseconds since 1970; of a context before the first step when that was. */
const atOf = (steps: readonly Step[], step: number): number => (steps[step - 1] ?? steps[0])?.at ?? 0;

/**
 * The context reports of one timeline: of every context that was handed out and a record kept of, or, of an imported session without records, as its context stood at
 * the end of each turn. Reports are made when they are asked for, from what the database keeps: the same context gives the same report under the same id.
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
   * Reports, newest first.
   * @throws {HistoryError} `unknown-session`, and what a rebuild throws
   * @throws {TyrumError} `invalid-settings` for a turn that is none
   */
  async list({ conversation, turn, limit = LISTED }: WantedReports): Promise<readonly ReportRow[]> {
    const wanted = turn === undefined ? undefined : turnOf(turn);
    const name = conversation ?? wanted?.session;
    const session = name === undefined ? undefined : await this.#named(name);
    if (wanted !== undefined && session !== undefined && (await this.#named(wanted.session)) !== session) return [];
    // What each of its reports needs is on its way beside them; without one nobody asks for it.
    if (session !== undefined) begun(this.tools(session));
    const found = session === undefined ? await this.#newest(limit) : await this.#of(session);
    const rows = found.filter((one) => wanted === undefined || one.turn === wanted.turn).slice(0, limit);
    return this.#rows(rows);
  }

  /**
   * The report of an id, which says whose it is: of the session that is named, else of that one, or of a fork of it where that one may not be seen.
   * @throws {TyrumError} `unknown-report`
   * @throws {HistoryError} as `list`
   */
  async detail(id: string, conversation?: string): Promise<ReportRow> {
    for (const session of conversation === undefined ? await this.#sessionsOf(id) : [await this.#named(conversation)]) {
      const found = (await this.#of(session)).find((one) => one.id === id.toLowerCase());
      if (found !== undefined) return this.#row(found);
    }
    throw new TyrumError('unknown-report', `there is no context report ${JSON.stringify(id)}; GET /context/list has those that there are`);
  }

  /** The report of a context of the past. */
  async of(context: PastContext): Promise<TyrumReport> {
    const { session, step } = context;
    const steps = await this.timeline.steps(session);
    const tools = await this.tools(session, step);
    return tyrumReport(await withLedger(context, this.#count), { at: atOf(steps, step), tools });
  }

  /** What the harness had told of a session's tools by a step; undefined where it told nothing. */
  async tools(session: SessionId, step = Number.POSITIVE_INFINITY): Promise<AnnouncedTools | undefined> {
    const known = await askOnce(this.#announced, session, () => readAnnouncements(this.timeline.present, session));
    return known.findLast(({ seq }) => seq <= step)?.tools;
  }

  /**
   * The tools of a session, or of the one that was used last.
   * @throws {TyrumError} `unknown-report` where there is no session
   */
  async lastTools(conversation?: string): Promise<{ readonly session: SessionId; readonly tools: AnnouncedTools | undefined }> {
    const named = conversation === undefined ? undefined : await this.#named(conversation);
    const session = named ?? (await this.#sessions())[0]?.id;
    if (session === undefined) throw new TyrumError('unknown-report', 'there is no session that may be seen here');
    return { session, tools: await this.tools(session) };
  }

  /** The session that a name says, whichever way it was asked for, if it may be seen. */
  async #named(name: string): Promise<SessionId> {
    const session = await requireSession(this.timeline.present, name);
    await this.access.require(session);
    return session;
  }

  async #row(found: Found): Promise<ReportRow> {
    const { proof, session, turn } = found;
    const contexts = await this.#contextsOf(session);
    const context = proof === undefined ? contexts.at(session, { moment: { kind: 'turn', turn } }) : contexts.ofRecord(proof);
    return rowOf(found, await this.of(await context));
  }

  /** Reads the contexts of a session: what is read of one is kept for all that find the same objects. */
  async #contextsOf(session: SessionId): Promise<PastContexts> {
    const own = await this.timeline.of(session);
    const contexts = this.#contexts.get(own) ?? new PastContexts(own);
    this.#contexts.set(own, contexts);
    return contexts;
  }

  /** Several rows; the contexts that were handed out are read together, oldest first. */
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

  /** The sessions that may be seen, most recently used first, also where their turns run. */
  async #sessions(): Promise<readonly SessionSummary[]> {
    const sessions = await listSessions(this.timeline.present, []);
    const seen = new Set(await this.access.maySee(sessions.map(({ id }) => id)));
    return sessions.filter(({ id }) => seen.has(id));
  }

  /** The sessions that a report can be of: that whose it is, then those that share its steps. */
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

  /** What can be reported of a session, newest first. */
  async #of(session: SessionId): Promise<readonly Found[]> {
    const contexts = await this.#contextsOf(session);
    const [records, steps] = await Promise.all([contexts.records(session), this.timeline.steps(session), this.#count([])]);
    // Those that a fork shares are its parent's.
    if (steps[0]?.session === session) contexts.know(steps);
    const handedOut = records.map((proof): Found => {
      const { step, turn, sha256 } = proof;
      const moment = { session: proof.session, step, sha256 };
      return { ...moment, id: tyrumReportId(moment), turn, at: atOf(steps, step), proof };
    });
    if (handedOut.length > 0) return handedOut.reverse();
    // What was not seen has no report (decision E12).
    if (!(await this.timeline.isImported(session))) return [];
    const turns = await this.timeline.turns(session);
    return turns.toReversed().map(({ turn, last }): Found => {
      const moment = { session, step: last, sha256: undefined };
      return { ...moment, id: tyrumReportId(moment), turn, at: atOf(steps, last), proof: undefined };
    });
  }

  /** The newest of all sessions. */
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

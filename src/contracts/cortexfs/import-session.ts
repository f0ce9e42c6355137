import { fileObjectId } from '../../client/file-access.js';
import type { ContextClient } from '../../client/session/context-client.js';
import type { ContextSession } from '../../client/session/context-session.js';
import { Timeline } from '../../history/rebuild/timeline.js';
import type { ContextRecord } from '../../objects/context-record.js';
import { type SessionId, sessionId, sessionObjectId } from '../../objects/ids.js';
import { type FilesystemSource, parseSource } from '../../objects/source.js';
import { readProjection } from '../projection/read-projection.js';
import {
  ComparedSteps,
  type Continuation,
  continueSession,
  type ExistingSession,
  plannedMark,
} from './compare-import.js';
import { CortexfsError } from './errors.js';
import { GivenSteps } from './given-steps.js';
import type { ImportClock } from './import-clock.js';
import { missingRecords, plannedRecords, recordKey } from './import-records.js';
import {
  isKeptRecord,
  KEPT_KINDS,
  type KeptImport,
  keptFiles,
  keptImports,
  keptLineOf,
  keptRecords,
  keptUpTo,
} from './kept-import.js';
import { IMPORT_KINDS, isCarried, PALIMPSEST_FILE } from './palimpsest-file.js';
import { type ImportPlan, planImport, sessionOf } from './plan-import.js';
import { readDirectory } from './read-directory.js';
import { SHOWN_KINDS } from './session-directory.js';

/** Options of an import. */
export interface ImportOptions {
  /** The target session. Default: the session named in our export, or else the folder's name. */
  readonly session?: string | undefined;
  /** True for a dry run. */
  readonly planOnly?: boolean;
}

/** The result of an import or a dry run. */
export interface ImportedDirectory {
  readonly session: SessionId;
  readonly outcome: 'created' | 'extended' | 'unchanged';
  /** The number of imported steps, and of their messages and calls. */
  readonly steps: number;
  readonly messages: number;
  readonly calls: number;
  /** The number of notes, approvals, pending calls and similar records. */
  readonly records: number;
  /** Number of lines of `messages.jsonl` and `events.jsonl` that the session already had. */
  readonly known: { readonly messages: number; readonly events: number };
  /** Skipped artifacts that are not text. */
  readonly leftOut: readonly string[];
}

/** Records per transaction. Pieces of stored files are large. */
const RECORDS_AT_ONCE = 8;
/** Maximum number of steps that wait for the database. */
const MOST_WAITING = 200;
/** Maximum wait for the database to store pending writes, in milliseconds. */
const DATABASE_WAIT_MS = 120_000;

interface TargetSession extends ExistingSession {
  readonly records: readonly ContextRecord[];
}

/** The work to do for a whole directory, or for the rest of an interrupted import. */
interface Work {
  readonly plan: ImportPlan;
  readonly continuation: Continuation;
  readonly target: TargetSession;
  /** Undefined if the session already stores all of the directory. */
  readonly kept: KeptImport | undefined;
}

async function readTarget(client: ContextClient, session: SessionId): Promise<TargetSession> {
  const timeline = await Timeline.open(await client.delivered());
  const exists = (await timeline.present.existing([sessionObjectId(session)])).length > 0;
  if (!exists) return { steps: [], projection: undefined, kept: [], records: [] };
  const [steps, records] = await Promise.all([
    timeline.steps(session),
    timeline.present.records(session, { kinds: [...KEPT_KINDS, ...IMPORT_KINDS] }),
  ]);
  const projection = await readProjection(timeline, session);
  const compared = new ComparedSteps({ steps, projection });
  const kept = keptImports(records.filter(isKeptRecord)).flatMap((one) => {
    const part = keptUpTo(one, steps.length, (seq) => compared.mark(seq));
    // If the session ends inside an import, return the whole import, because the next import
    // finishes it. Otherwise return only the part whose steps the session has.
    const isLast = steps.length === (part?.upto ?? one.after);
    return isLast ? one : (part ?? []);
  });
  return { steps, projection, kept, records: records.filter(isCarried) };
}

const turnsOf = (steps: TargetSession['steps']): ((seq: number) => number) => {
  const turns = new Map(steps.map(({ seq, turn }) => [seq, turn]));
  return (seq) => turns.get(seq) ?? 0;
};

/** Returns the files that differ from the previous import, with null for removed files. */
function changedFiles(derived: ReadonlyMap<string, string>, before: ReadonlyMap<string, string>): KeptImport['files'] {
  const changed = [...derived].filter(([path, text]) => before.get(path) !== text);
  const gone = [...before.keys()].filter((path) => !derived.has(path)).map((path) => [path, null] as const);
  return Object.fromEntries([...changed, ...gone]);
}

/** Returns what to store of a directory: new lines with their steps, and changed files. */
function keptOf(
  session: SessionId,
  plan: ImportPlan,
  { continuation, target }: Pick<Work, 'continuation' | 'target'>,
): KeptImport | undefined {
  const { seqs, missing } = continuation;
  const before = target.kept.at(-1);
  const files = changedFiles(plan.derived, keptFiles(target.kept));
  // A session without earlier imports was recorded here if it has steps, or if the directory is our
  // own export.
  const isNative = before === undefined && target.projection !== undefined && (target.steps.length > 0 || plan.hasOwn);
  const hasMore =
    plan.messages.length > continuation.messages ||
    plan.events.length > continuation.events ||
    Object.keys(files).length > 0;
  if (!hasMore || (isNative && missing.length === 0)) return undefined;
  const seqOfLine = new Map<number, { readonly seq: number; readonly said: string | null | undefined }>();
  for (const [i, { lines, message, call }] of plan.steps.entries()) {
    const place = { seq: seqs[i] ?? 0, said: message?.text ?? call?.content };
    for (const line of lines) seqOfLine.set(line, place);
  }
  let seq = 0;
  const messages = plan.messages.map((line, i) => {
    const place = seqOfLine.get(i + 1);
    seq = Math.max(seq, place?.seq ?? 0);
    return keptLineOf(place?.seq ?? seq, line, place?.said);
  });
  const events = plan.events.map((line, i) => {
    const place = plan.eventPlaces[i] ?? 0;
    return keptLineOf(place === 0 ? 0 : (seqs[place - 1] ?? 0), line, undefined);
  });
  const after = target.steps.length;
  const planned = plannedRecords(session, plan, { seqs, turnOf: turnsOf(target.steps) });
  const shown = [...target.records, ...planned].filter(({ kind }) => (SHOWN_KINDS as readonly string[]).includes(kind));
  return {
    number: (before?.number ?? 0) + 1,
    after,
    upto: after + missing.length,
    steps: missing.flatMap((place) => plan.steps[place] ?? []).map(plannedMark),
    messages: messages.slice(continuation.messages),
    messagesBefore: continuation.messages,
    events: events.slice(continuation.events),
    eventsBefore: continuation.events,
    files,
    hasOwn: plan.hasOwn,
    records: [...new Set(shown.map(recordKey))],
  };
}

/**
 * Returns the part of a directory that an earlier import began and did not finish. Undefined if
 * every import finished.
 */
function unfinishedPart(files: ReadonlyMap<string, string>, { kept, steps }: TargetSession): ImportPlan | undefined {
  const last = kept.at(-1);
  if (last === undefined || steps.length >= last.upto) return undefined;
  const part = {
    messages: last.messagesBefore + last.messages.length,
    events: last.eventsBefore + last.events.length,
    step: last.upto,
  };
  const raw = ['messages.jsonl', 'events.jsonl', ...(last.hasOwn ? [PALIMPSEST_FILE] : [])];
  const begun = new Map([...raw.map((path) => [path, files.get(path) ?? ''] as const), ...keptFiles(kept)]);
  const plan = planImport(begun, part);
  if (plan.messages.length === part.messages && plan.events.length === part.events) return plan;
  throw new CortexfsError(
    'unfinished',
    `an import of ${part.messages} messages and ${part.events} events was interrupted, ` +
      `but this directory has ${plan.messages.length} and ${plan.events.length}. ` +
      'First import the earlier directory again. Nothing was changed.',
  );
}

/** Returns true if an import was interrupted before it set the prompt. */
function lacksPrompt({ plan, target, continuation }: Work): boolean {
  const { projection, steps } = target;
  const has = projection?.entries.some((entry) => entry.kind === 'system' && entry.isPrompt) === true;
  return plan.prompt !== undefined && !has && !continuation.isOlder && steps.length <= (continuation.seqs.at(-1) ?? 0);
}

async function keepAll(session: ContextSession, records: readonly ContextRecord[]): Promise<void> {
  for (let at = 0; at < records.length; at += RECORDS_AT_ONCE)
    await session.keepRecords(records.slice(at, at + RECORDS_AT_ONCE));
}

class DirectoryImport {
  readonly #client: ContextClient;
  readonly #clock: ImportClock;
  readonly #session: SessionId;

  constructor(client: ContextClient, clock: ImportClock, session: SessionId) {
    this.#client = client;
    this.#clock = clock;
    this.#session = session;
  }

  /** Returns the work that brings the whole plan into the session. */
  work(plan: ImportPlan, target: TargetSession): Work {
    const continuation = continueSession(plan, target);
    const kept = continuation.isOlder ? undefined : keptOf(this.#session, plan, { continuation, target });
    return { plan, continuation, target, kept };
  }

  /** Returns the missing records that can be derived before the steps are written. */
  records({ plan, continuation, target }: Work, turnOf = turnsOf(target.steps)): readonly ContextRecord[] {
    if (continuation.isOlder) return [];
    return missingRecords(plannedRecords(this.#session, plan, { seqs: continuation.seqs, turnOf }), target.records);
  }

  isDone(work: Work): boolean {
    const { target, kept, continuation } = work;
    const isWhole = target.projection !== undefined && kept === undefined && continuation.missing.length === 0;
    return isWhole && !lacksPrompt(work) && this.records(work).length === 0;
  }

  /**
   * First writes the stored form of the directory, so that an interrupted import can resume. Then
   * writes the steps, and last the records.
   */
  async write(work: Work): Promise<void> {
    const { plan, continuation, target, kept } = work;
    const { missing, seqs } = continuation;
    const first = plan.steps[missing[0] ?? -1]?.exact?.step.at;
    const moments = [first, plan.prompt?.at].filter((at) => at !== undefined);
    if (target.projection === undefined)
      this.#clock.standAt(moments.length === 0 ? undefined : Math.max(0, Math.min(...moments) - 1));
    const session = await this.#client.openSession({ id: this.#session });
    try {
      if (kept !== undefined) await keepAll(session, keptRecords(this.#session, kept));
      const turns = new Map(target.steps.map(({ seq, turn }) => [seq, turn]));
      const known = await this.#knownFiles(plan);
      const given = new GivenSteps(this.#session, { plan, seqs, known });
      const made = new Map(session.state.marks.map(({ seq, call }) => [seq, call]));
      for (const [i, planned] of plan.steps.entries()) given.learn(planned, made.get(seqs[i] ?? 0));
      for (const place of missing) {
        const planned = plan.steps[place];
        if (planned === undefined) continue;
        await this.#prompt(session, plan, planned.exact?.step.at);
        this.#clock.standAt(planned.exact?.step.at);
        const { seq, turn } = await session.takeStep(given.given(planned));
        turns.set(seq, turn);
        if (this.#client.status.waiting > MOST_WAITING) await this.#client.backpressure(MOST_WAITING, DATABASE_WAIT_MS);
      }
      // An import that adds only notes keeps the session's prompt.
      if (kept !== undefined || missing.length > 0 || lacksPrompt(work)) await this.#prompt(session, plan, undefined);
      await this.#client.backpressure(0, DATABASE_WAIT_MS);
      await keepAll(
        session,
        this.records(work, (seq) => turns.get(seq) ?? 0),
      );
    } finally {
      this.#clock.standAt(undefined);
      await this.#client.closeSession(session);
    }
    await this.#client.backpressure(0, DATABASE_WAIT_MS);
  }

  /** Sets the prompt before the first step that is newer than the prompt, or at the end. */
  async #prompt(session: ContextSession, { prompt }: ImportPlan, before: number | undefined): Promise<void> {
    if (prompt === undefined || (before !== undefined && prompt.at !== undefined && before <= prompt.at)) return;
    if (prompt.at !== undefined) this.#clock.standAt(prompt.at);
    await session.setSystemPrompt(prompt.text);
  }

  /** Returns the files of a plan that the database knows. */
  async #knownFiles({ files }: ImportPlan): Promise<ReadonlySet<string>> {
    const ids = files.map(({ source }) => fileObjectId(parseSource(source) as FilesystemSource));
    const store = await this.#client.delivered({ others: false });
    return ids.length === 0 ? new Set() : new Set((await (await store.latest()).heads(ids)).keys());
  }
}

/**
 * Imports a session directory into a session. All files are read and checked first. If the session
 * exists, its content must be a prefix of the directory's, or the reverse. Data that no object can
 * hold becomes records. Repeating an import changes nothing, and finishes an interrupted one.
 * `clock` is the client's clock. Data from our own exports keeps its times.
 * @throws {CortexfsError} those of `readDirectory` and `planImport`; `conflict`, `unfinished`:
 *   nothing was changed
 * @throws {SessionError} `lease-held`, `other-roots`, `node-unavailable`
 */
export async function importDirectory(
  client: ContextClient,
  folder: string,
  { clock, session: wanted, planOnly = false }: ImportOptions & { readonly clock: ImportClock },
): Promise<ImportedDirectory> {
  const { files, leftOut } = await readDirectory(folder);
  const session = wanted === undefined ? sessionOf(folder, files) : sessionId(wanted);
  const whole = planImport(files);
  const run = new DirectoryImport(client, clock, session);
  let target = await readTarget(client, session);
  const isNew = target.projection === undefined;
  const begun = unfinishedPart(files, target);
  // Also plans the whole directory, so that a conflict is found before anything is written.
  let work = run.work(whole, target);
  const { missing, messages, events } = work.continuation;
  const brought = missing.map((place) => whole.steps[place]);
  const count = run.records(work).length;
  const isDone = begun === undefined && run.isDone(work);
  if (!planOnly && begun !== undefined) {
    await run.write(run.work(begun, target));
    target = await readTarget(client, session);
    work = run.work(whole, target);
  }
  if (!planOnly && !run.isDone(work)) await run.write(work);
  return {
    session,
    outcome: isDone ? 'unchanged' : isNew ? 'created' : 'extended',
    steps: missing.length,
    messages: brought.filter((step) => step?.message !== undefined).length,
    calls: brought.filter((step) => step?.call !== undefined).length,
    records: count,
    known: { messages, events },
    leftOut,
  };
}

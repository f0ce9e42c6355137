import { LRUCache } from 'lru-cache';
import { type DisplayPaths, metadataOf, type ObjectMetadata } from '../../assembly/metadata.js';
import { HistoryError } from '../../history/rebuild/history-error.js';
import { formatMoment, type When } from '../../history/rebuild/moment.js';
import type { Point, Timeline } from '../../history/rebuild/timeline.js';
import { TOKENIZER } from '../../history/rebuild/tokenizer.js';
import type { Json } from '../../objects/canonical-json.js';
import type { ContextRecord } from '../../objects/context-record.js';
import { type ObjectId, type SessionId, type Sha256, systemPromptObjectId } from '../../objects/ids.js';
import { keptArgsHash } from '../../objects/kept-args.js';
import type { SessionSets } from '../../objects/sets.js';
import { type FilesystemSource, parseSource } from '../../objects/source.js';
import type { Step } from '../../objects/step.js';
import { countTokens } from '../../review/ask/token-count.js';
import { applySteps, emptySession, type SessionState } from '../../session/session-state.js';
import { StoreError } from '../../store/errors.js';
import type { FoundVersion, Head } from '../../store/snapshot-rows.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';
import type { Entry, TokenCounter } from './entry.js';
import type { StoredCall } from './measured-entries.js';
import { type Projection, projectSession } from './project-session.js';
import type { ApprovalNote, PendingCall, ProjectedFile, ProjectionSource, SourceVersion } from './projection-source.js';

/**
 * The default token counter. It uses the tokenizer of all our figures, and adds the approximate
 * tokens of a chat format per message and call.
 */
export const HOUSE_COUNTER: TokenCounter = { name: TOKENIZER, count: countTokens, perMessage: 4, perCall: 8 };

function missing(id: ObjectId): StoreError {
  return new StoreError(
    'missing-part',
    `the chat names the call ${JSON.stringify(id)}, which the database does not hold at this basis`,
  );
}

/** Returns the whole arguments, by hash, of calls whose objects store only a reference to them. */
function keptTexts(
  snapshot: StoreSnapshot,
  versions: ReadonlyMap<ObjectId, FoundVersion>,
): Promise<ReadonlyMap<Sha256, string>> {
  const hashes = [...versions.values()].flatMap(({ version }) =>
    version.type === 'toolcall' ? (keptArgsHash(version.args) ?? []) : [],
  );
  return snapshot.texts(hashes);
}

function storedCall(
  { version, marks }: FoundVersion,
  metadata: ObjectMetadata<'toolcall'>,
  texts: ReadonlyMap<Sha256, string>,
): StoredCall {
  if (version.type !== 'toolcall') throw missing(metadata.id);
  const kept = keptArgsHash(version.args);
  return {
    metadata,
    args: version.args as Json,
    content: version.content,
    ...defined({ argsText: kept === undefined ? undefined : texts.get(kept), whole: marks.whole }),
  };
}

type NoteRecord = ContextRecord<'approval' | 'call'>;

/**
 * Returns the records of calls and approvals at or after step `first` that existed at a point in
 * time.
 */
async function recordsAt(
  timeline: Timeline,
  session: SessionId,
  { point: { snapshot, place }, first = 0 }: { readonly point: Point; readonly first?: number },
): Promise<readonly NoteRecord[]> {
  const wanted = { kinds: ['approval', 'call'], first, ...defined({ last: place?.seq }) } as const;
  if (place === undefined) return snapshot.records(session, wanted);
  const lineage = await timeline.present.lineage(session);
  return lineage === undefined ? [] : snapshot.records(lineage, wanted);
}

/**
 * Returns pending calls and approvals. An approval's first record gives its position, its last
 * record its state.
 */
function notesOf(records: readonly NoteRecord[]): Pick<ProjectionSource, 'pending' | 'approvals'> {
  const pending: PendingCall[] = [];
  const approvals = new Map<string, ApprovalNote>();
  for (const record of [...records].sort((a, b) => a.at - b.at)) {
    const { turn, seq, at } = record;
    if (record.kind === 'call') {
      const { native, tool, args, by } = record.body;
      pending.push({ native, tool, args: args as Json, by, at });
    } else {
      const { approval, state, text, tool, native, reason } = record.body;
      const before = approvals.get(approval);
      approvals.set(
        approval,
        before === undefined
          ? { approval, state, text, turn, seq, at, ...defined({ tool, native, reason }) }
          : { ...before, state, ...defined({ reason }) },
      );
    }
  }
  return { pending, approvals: [...approvals.values()] };
}

/** Caches the parts of a session that never change: its steps and its calls. */
class KnownSession {
  readonly calls = new Map<ObjectId, StoredCall>();
  readonly versions = new Map<ObjectId, SourceVersion>();
  readonly #session: SessionId;
  readonly #steps: Step[] = [];
  /** The session's state after the cached steps. */
  #state: SessionState;
  /** A transaction at which the last cached step existed. */
  #txId = -1;
  /** Records of settled approvals, and the step from which records are read again. */
  #settled: { readonly notes: readonly NoteRecord[]; readonly from: number; readonly txId: number } = {
    notes: [],
    from: 0,
    txId: -1,
  };

  constructor(session: SessionId) {
    this.#session = session;
    this.#state = emptySession(session);
  }

  /** Returns the sets after some of the cached steps. */
  setsAfter(steps: readonly Step[]): SessionSets {
    const { seq } = this.#state;
    if (steps.length < seq) return applySteps(emptySession(this.#session), steps).sets;
    if (steps.length > seq) this.#state = applySteps(this.#state, steps.slice(seq));
    return this.#state.sets;
  }

  /** Returns the records of calls and approvals at a point in time. */
  async notesAt(timeline: Timeline, point: Point): Promise<readonly NoteRecord[]> {
    const { notes, from, txId } = this.#settled;
    if (point.snapshot !== timeline.present || (point.snapshot.basis.txId ?? 0) < txId)
      return recordsAt(timeline, this.#session, { point });
    return [...notes, ...(await recordsAt(timeline, this.#session, { point, first: from }))];
  }

  /**
   * Caches the records of settled approvals. Before step `from`, no call or approval is pending, so
   * later reads begin there.
   */
  settle(notes: readonly NoteRecord[], { from, txId }: { readonly from: number; readonly txId: number }): void {
    if (txId < this.#settled.txId) return;
    this.#settled = { notes: notes.filter(({ kind, seq }) => kind === 'approval' && seq < from), from, txId };
  }

  async stepsAt(timeline: Timeline, point: Point): Promise<readonly Step[]> {
    const { place, snapshot } = point;
    if (place !== undefined)
      return this.#learnt(await timeline.steps(this.#session), timeline.present).slice(0, place.seq);
    const [head, lineage] = await Promise.all([snapshot.sessionHead(this.#session), snapshot.lineage(this.#session)]);
    const upto = head?.marks.upto;
    if (lineage === undefined || head === undefined) throw notYet(this.#session, point);
    if (this.#steps.length === 0 && snapshot === timeline.present)
      return this.#learnt(await timeline.steps(this.#session), snapshot);
    const isNow = snapshot === timeline.present && (snapshot.basis.txId ?? 0) >= this.#txId;
    if (!isNow) return this.#learnt(await snapshot.steps(this.#session), snapshot);
    const known = [...this.#steps];
    const newer = await snapshot.stepsFrom(lineage, {
      first: known.length + 1,
      upto: Math.max(upto ?? 0, known.length),
    });
    return this.#learnt([...known, ...newer], snapshot);
  }

  /** Returns the cached objects of the given steps, so that each step is measured once. */
  #learnt(steps: readonly Step[], { basis }: StoreSnapshot): readonly Step[] {
    for (const step of steps.slice(this.#steps.length)) if (step.seq === this.#steps.length + 1) this.#steps.push(step);
    this.#txId = Math.max(this.#txId, basis.txId ?? 0);
    return this.#steps.slice(0, steps.length);
  }
}

/** Returns the step of the first pending entry, or the last step if no entry is pending. */
function firstWaiting({ entries, running, seq }: Projection): number {
  const waits = new Set<string>(running?.approvals);
  const isWaiting = (entry: Entry): boolean =>
    waits.has(entry.id) || (entry.kind === 'assistant' && entry.calls.some(({ state }) => state === 'pending'));
  return Math.min(seq, ...entries.filter(isWaiting).map((entry) => entry.seq));
}

function notYet(session: SessionId, { moment, basis }: Point): HistoryError {
  return new HistoryError(
    'not-yet',
    `session ${session} did not exist at ${formatMoment(moment)}, transaction ${basis.txId ?? 'none'}; ` +
      `palimpsest log ${session} shows its turns`,
  );
}

/** Maximum number of cached sessions. */
const MOST_KNOWN = 8;

/**
 * Reads projections. Caches the parts of the last sessions that never change: steps, calls and
 * token counts. A repeated read costs only new steps and the session's files.
 *
 * Assumes that a record of a call or approval belongs to the session's last step or to a pending
 * entry, as its owner writes them. Use a new reader if a record of an earlier step was written.
 */
export class ProjectionReader {
  readonly #counter: TokenCounter;
  readonly #sessions = new LRUCache<SessionId, KnownSession>({ max: MOST_KNOWN });

  constructor(counter: TokenCounter = HOUSE_COUNTER) {
    this.#counter = counter;
  }

  /**
   * Returns the projection of a session at a moment: now, the end of a turn or step, a transaction,
   * or a time. Reads everything at one basis. The same moment gives the same value. A fork includes
   * its parent's steps. Files have their paths in the timeline.
   *
   * @throws {HistoryError} `beyond-end`, `not-yet` if the session has no such turn, or did not
   *   exist then
   * @throws {StoreError} `missing-part`, `corrupt-part`
   * @throws {XtdbError}
   */
  async read(timeline: Timeline, session: SessionId, when: When = {}): Promise<Projection> {
    return this.readAt(timeline, session, await timeline.find(when, session));
  }

  /** Reads like `read`, at a point that the timeline found. */
  async readAt(timeline: Timeline, session: SessionId, point: Point): Promise<Projection> {
    const known = this.#sessions.get(session) ?? new KnownSession(session);
    const [steps, records] = await Promise.all([known.stepsAt(timeline, point), known.notesAt(timeline, point)]);
    this.#sessions.set(session, known);
    const sets = known.setsAfter(steps);
    const { snapshot, place } = point;
    const prompt = systemPromptObjectId(place?.owner ?? session);
    const read = await readObjects(snapshot, { known, steps, sets, prompt, paths: timeline.paths });
    const { validTime, txId = 0 } = snapshot.basis;
    const basis = { validTime: validTime.getTime(), txId };
    const projection = projectSession(
      { session, basis, steps, sets, calls: known.calls, ...read, ...notesOf(records) },
      this.#counter,
    );
    if (snapshot === timeline.present) known.settle(records, { from: firstWaiting(projection), txId });
    return projection;
  }
}

/** Selects the objects of a session to read. */
interface WantedObjects {
  readonly known: KnownSession;
  readonly steps: readonly Step[];
  readonly sets: SessionSets;
  readonly prompt: ObjectId;
  readonly paths: DisplayPaths;
}

/** Reads and caches the prompt, the files and the calls that are not cached yet. */
async function readObjects(
  snapshot: StoreSnapshot,
  { known, steps, sets, prompt, paths }: WantedObjects,
): Promise<Pick<ProjectionSource, 'prompt' | 'files' | 'versions'>> {
  const calls = steps.flatMap(({ call }) => call?.id ?? []);
  const [active, pinned, made] = [new Set(sets.active), new Set(sets.pinned), new Set(calls)];
  const isKnown = (id: ObjectId): boolean => made.has(id) && known.calls.has(id);
  const ids = [...new Set([prompt, ...sets.index, ...calls])].filter((id) => !isKnown(id));
  const heads = await snapshot.heads(ids);
  const isShown = (id: ObjectId): boolean => id === prompt || made.has(id) || active.has(id) || pinned.has(id);
  const wanted = ids.flatMap((id): Head | readonly Head[] => (isShown(id) ? (heads.get(id) ?? []) : []));
  const found = await snapshot.versionsOf(wanted);
  const texts = await keptTexts(snapshot, found);
  const files: ProjectedFile[] = [];
  const versions = new Map<ObjectId, SourceVersion>();
  for (const id of ids) {
    const head = heads.get(id);
    if (head === undefined) continue;
    const { document, marks, validTime } = head;
    const version = { objectHash: document.object_hash as Sha256, validTime: validTime.getTime() };
    const metadata = metadataOf(document, marks, paths);
    const whole = found.get(id);
    if (metadata?.type === 'toolcall' && whole !== undefined && made.has(id)) {
      known.calls.set(id, storedCall(whole, metadata, texts));
      known.versions.set(id, version);
    } else versions.set(id, version);
    if (metadata?.type !== 'file') continue;
    const source = parseSource(document.source) as FilesystemSource;
    files.push({ metadata, source, active: active.has(id), pinned: pinned.has(id), content: whole?.version.content });
  }
  for (const id of calls) {
    const version = known.versions.get(id);
    if (version === undefined) throw missing(id);
    versions.set(id, version);
  }
  const text = found.get(prompt)?.version.content ?? '';
  const at = heads.get(prompt)?.validTime.getTime();
  return { prompt: at === undefined ? undefined : { text, at }, files, versions };
}

/** Reads one projection like `ProjectionReader.read`, without a cache. */
export function readProjection(
  timeline: Timeline,
  session: SessionId,
  { when = {}, counter = HOUSE_COUNTER }: { readonly when?: When; readonly counter?: TokenCounter } = {},
): Promise<Projection> {
  return new ProjectionReader(counter).read(timeline, session, when);
}

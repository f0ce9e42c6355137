import { basename } from 'node:path';
import { canonicalJson } from '../../objects/canonical-json.js';
import { HeadHashes } from '../../objects/head-hashes.js';
import { type ObjectId, type SessionId, sessionObjectId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import { systemPromptVersion } from '../../objects/versions.js';
import { applyStep, applySteps, emptySession, type SessionState } from '../../session/session-state.js';
import { marksOf } from '../../store/head.js';
import { type ObjectStore, type StoredPut, storedPut } from '../../store/object-store.js';
import { defined } from '../../values/defined.js';
import type { StoredDocument } from '../../xtdb/documents.js';
import type { DamagedJournal } from '../delivery/damaged-journal.js';
import { type HeadPosition, headsAt, turnHeads } from '../delivery/session-heads.js';
import type { SessionWrite } from '../delivery/session-write.js';
import { termOf } from './rescue-fork.js';

/** A session up to the last step that the database has. */
interface Reached {
  readonly state: SessionState;
  /** Undefined if the database has no head of the session. */
  readonly position: HeadPosition | undefined;
  readonly lease: StoredDocument | null;
  /** Whether an earlier record was lost, so that heads and guards differ from the journal's. */
  readonly isBroken: boolean;
}

const headIn = (puts: readonly StoredPut[], id: string): StoredPut | undefined =>
  puts.findLast(({ head }) => head['xt/id'] === id);

/**
 * Returns the key of a step. It is equal in every read of a journal. A damaged journal is read to
 * report its damage, and again for delivery.
 */
const placeOf = ({ session, seq }: Step): string => `${session}\0${seq}`;

/** Returns the ids that a step expects in the index. */
const namedBy = ({ changes }: Step): readonly ObjectId[] => [...(changes.activate ?? []), ...(changes.pin ?? [])];

/**
 * Returns the ids that lost steps must have added to the index, keyed by the first readable step
 * after each gap. They are the ids that this step and the next ones expect and that no readable
 * step added.
 */
function neededAfterGaps(writes: readonly SessionWrite[]): ReadonlyMap<string, readonly ObjectId[]> {
  const needed = new Map<string, ObjectId[]>();
  const sessions = new Map<SessionId, { last: number; indexed: Set<ObjectId>; ids: ObjectId[] }>();
  for (const { step } of writes) {
    if (step === undefined) continue;
    const known = sessions.get(step.session) ?? { last: -1, indexed: new Set(), ids: [] };
    sessions.set(step.session, known);
    if (step.seq !== known.last + 1) {
      known.ids = [];
      needed.set(placeOf(step), known.ids);
    }
    known.last = step.seq;
    for (const id of step.changes.index ?? []) known.indexed.add(id);
    for (const id of namedBy(step)) {
      if (known.indexed.has(id)) continue;
      known.indexed.add(id);
      known.ids.push(id);
    }
  }
  return needed;
}

/**
 * Bridges the gaps in a damaged journal (decision 0011). Steps with the event `lost` replace
 * missing steps. So all other steps keep their numbers, and readers see that the session has gaps.
 * Later heads are rebuilt, because the journal's heads cover the lost steps.
 */
export class StepBridge {
  readonly #store: ObjectStore;
  readonly #detail: string;
  readonly #needed: ReadonlyMap<string, readonly ObjectId[]>;
  readonly #reached = new Map<SessionId, Reached>();

  constructor(store: ObjectStore, { owner, damage, writes }: DamagedJournal) {
    this.#store = store;
    const places = damage.map(({ file, offset }) => `${basename(file)} at byte ${offset}`);
    this.#detail = `lost with the damaged journal ${owner}: ${places.join(', ')}`;
    this.#needed = neededAfterGaps(writes);
  }

  /**
   * Returns the write to plan. A retry reads the session again, because an earlier attempt may have
   * been applied.
   */
  async bridged(write: SessionWrite, attempt: number): Promise<SessionWrite> {
    const { session, lease, step } = write;
    if (lease === undefined) return write;
    const known = attempt === 1 ? this.#reached.get(session) : undefined;
    const reached = known ?? (await this.#read(session));
    const isOther = reached.lease !== null && termOf(reached.lease) !== termOf(lease);
    // The usual checks handle a takeover by another writer, a stored step and a session that exists
    // already.
    if (isOther || (step !== undefined && step.seq <= reached.state.seq) || (lease === null && reached.lease !== null))
      return write;
    const isGap = step !== undefined && step.seq > reached.state.seq + 1;
    const isBroken =
      reached.isBroken || isGap || (lease !== null && canonicalJson(lease) !== canonicalJson(reached.lease));
    const bridged = isBroken ? this.#over(write, reached) : write;
    this.#reached.set(session, after(bridged, { ...reached, isBroken }));
    return bridged;
  }

  /** Rebuilds a write that follows a gap. */
  #over(write: SessionWrite, reached: Reached): SessionWrite {
    const { step, heads, snapshot: _covered, assembly, ...plain } = write;
    const { lease } = reached;
    if (assembly !== undefined) return { ...write, lease };
    const { session, at } = write;
    const first = reached.position === undefined ? firstHeads(session, { at, term: termOf(write.lease) }) : undefined;
    const position = reached.position ?? first?.position;
    if (position === undefined) throw new Error('BUG: a session without a head');
    const own = heads.filter(({ head }) => head.type !== 'session' && head.type !== 'chat');
    const lost = step === undefined ? [] : this.#lostBefore(step, reached.state);
    const before = applySteps(reached.state, lost);
    const hashes = new HeadHashes(session);
    let made: readonly StoredPut[] = [];
    if (step?.opens !== undefined) made = turnHeads({ before, after: applyStep(before, step) }, position, hashes).puts;
    else if (step === undefined && own.length < heads.length && before.seq > position.upto)
      made = headsAt(before, { before: position, at: before.lastAt, term: position.term, hashes }).puts;
    return {
      ...plain,
      lease,
      heads: [...(first?.puts ?? []), ...made, ...own],
      ...defined({ step }),
      ...(lost.length > 0 ? { lost } : {}),
    };
  }

  #lostBefore(step: Step, state: SessionState): readonly Step[] {
    const { id, seq, turn } = state;
    const count = step.seq - seq - 1;
    const turns = step.turn - (step.opens === undefined ? 0 : 1) - turn;
    const index = (this.#needed.get(placeOf(step)) ?? []).filter((one) => !state.has(one));
    // Lost turns begin as late as possible, except that a session's first step always begins a
    // turn.
    const openedUpTo = (i: number): number => (i < 0 ? 0 : Math.max(turn === 0 ? 1 : 0, turns - (count - 1 - i)));
    return Array.from({ length: count }, (_, i): Step => {
      const opened = openedUpTo(i);
      const isLast = i === count - 1;
      return {
        session: id,
        seq: seq + 1 + i,
        turn: turn + opened,
        at: step.at,
        ...(opened > openedUpTo(i - 1) ? { opens: { rule: 'first-step' } } : {}),
        changes: isLast && index.length > 0 ? { index } : {},
        event: { kind: 'lost', detail: this.#detail },
      };
    });
  }

  async #read(session: SessionId): Promise<Reached> {
    const snapshot = await this.#store.latest();
    const id = sessionObjectId(session);
    const head = (await snapshot.heads([id])).get(id);
    if (head === undefined) return { state: emptySession(session), position: undefined, lease: null, isBroken: false };
    const state = applySteps(emptySession(session), await snapshot.steps(session));
    return {
      state,
      position: positionOf(head.document, head.validTime.getTime()),
      lease: head.document,
      isBroken: false,
    };
  }
}

/**
 * Returns the heads of a session whose creation was lost. The first heads of all sessions are
 * alike.
 */
function firstHeads(session: SessionId, { at, term }: { readonly at: number; readonly term: number }) {
  const { puts, position } = headsAt(emptySession(session), { at, term });
  const prompt = storedPut({ version: systemPromptVersion(session, null), validTime: new Date(position.at) });
  return { puts: [...puts, prompt], position };
}

function positionOf(lease: StoredDocument, at: number): HeadPosition {
  const { epoch: term = 1, upto = 0, parent } = marksOf(lease);
  return { term, upto, at, ...defined({ parent }) };
}

/** Returns the session's position after a write. */
function after({ step, lost = [], heads, session }: SessionWrite, before: Reached): Reached {
  const state = applySteps(before.state, [...lost, ...(step === undefined ? [] : [step])]);
  const put = headIn(heads, sessionObjectId(session));
  if (put === undefined) return { ...before, state };
  return { ...before, state, lease: put.head, position: positionOf(put.head, put.validTime?.getTime() ?? 0) };
}

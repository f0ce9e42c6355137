import { LRUCache } from 'lru-cache';
import { type DisplayPaths, metadataOf, type ObjectMetadata } from '../../assembly/metadata.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { ObjectVersion } from '../../objects/seal.js';
import type { Step } from '../../objects/step.js';
import { applySteps, emptySession, type SessionState } from '../../session/session-state.js';
import type { Lineage } from '../../store/lineage.js';
import type { ContextSnapshot } from './context-snapshot.js';
import { type ListingCall, listingCalls } from './listed-sources.js';

/** The metadata of calls contains no path. */
const CALL_PATHS: DisplayPaths = { display: ({ path }) => path };

/** Steps between two cached states. */
const KEEP_EVERY = 256;

/** Maximum UTF-16 units of a session's cached call outputs. */
const KEPT_UNITS = 4 * 1_048_576;

/** Caches the immutable data of one session: its steps, some states, its calls. */
export class SessionCache {
  readonly calls = new Map<ObjectId, ObjectMetadata>();
  /** Calls that a context showed in full. The next context usually shows them again. */
  readonly versions = new LRUCache<ObjectId, ObjectVersion>({
    maxSize: KEPT_UNITS,
    sizeCalculation: ({ content }) => (content?.length ?? 0) + 256,
  });
  readonly #steps: Step[] = [];
  readonly #kept: SessionState[];
  #last: SessionState;
  #reading: Promise<unknown> = Promise.resolve();
  #lineage: Promise<Lineage | undefined> | undefined;
  #isFresh = true;

  constructor(session: SessionId) {
    this.#last = emptySession(session);
    this.#kept = [this.#last];
  }

  /**
   * Stores the metadata of calls from pages of steps. A page with a call's step also has the call.
   */
  learnCalls(snapshot: ContextSnapshot, ids: readonly ObjectId[]): void {
    for (const id of ids) {
      const call = this.calls.has(id) ? undefined : snapshot.knownCall(id);
      const metadata = call === undefined ? undefined : metadataOf(call.document, call.marks, CALL_PATHS);
      if (metadata !== undefined) this.calls.set(id, metadata);
    }
  }

  /** Returns the cached versions of some objects. */
  keptOf(ids: readonly ObjectId[]): ReadonlyMap<ObjectId, ObjectVersion> {
    const kept = new Map<ObjectId, ObjectVersion>();
    for (const id of ids) {
      const version = this.versions.get(id);
      if (version !== undefined) kept.set(id, version);
    }
    return kept;
  }

  /** Caches steps that begin with the first one. Does nothing if steps are cached or being read. */
  know(steps: readonly Step[]): void {
    if (this.#isFresh) for (const step of steps) this.#steps.push(step);
    this.#isFresh = false;
  }

  /** Returns the calls that added many objects, up to a step, from the steps read so far. */
  listings(upto: number): readonly ListingCall[] {
    return listingCalls(this.#steps.slice(0, upto));
  }

  /**
   * Returns the session after a step, or after the last step of a snapshot. Undefined if the
   * snapshot has fewer steps.
   */
  async stateAt(
    snapshot: ContextSnapshot,
    seq: number | undefined,
    later?: ContextSnapshot,
  ): Promise<SessionState | undefined> {
    this.#isFresh = false;
    const reading = this.#reading.then(() =>
      seq === undefined ? this.#readAll(snapshot) : this.#readUpTo(snapshot, seq, later),
    );
    this.#reading = reading.catch(() => undefined);
    const wanted = await reading;
    if (this.#steps.length < wanted) return undefined;
    let state =
      this.#last.seq <= wanted
        ? this.#last
        : (this.#kept[Math.floor(wanted / KEEP_EVERY)] ?? emptySession(this.#last.id));
    while (state.seq < wanted) {
      const next = Math.min(wanted, state.seq - (state.seq % KEEP_EVERY) + KEEP_EVERY);
      state = applySteps(state, this.#steps.slice(state.seq, next));
      if (state.seq === this.#kept.length * KEEP_EVERY) this.#kept.push(state);
    }
    this.#last = state;
    return state;
  }

  /** Returns the lineage of the session's steps. Undefined if the snapshot lacks it. */
  async lineage(snapshot: ContextSnapshot): Promise<Lineage | undefined> {
    this.#lineage ??= snapshot.lineage(this.#last.id);
    const found = await this.#lineage.catch(() => undefined);
    if (found !== undefined) return found;
    // A later snapshot may have the session, so a failed look-up is not cached.
    this.#lineage = undefined;
    return snapshot.lineage(this.#last.id);
  }

  async #readUpTo(snapshot: ContextSnapshot, seq: number, later: ContextSnapshot | undefined): Promise<number> {
    const first = this.#steps.length + 1;
    const lineage = first > seq ? undefined : await this.lineage(snapshot);
    if (lineage !== undefined)
      for (const step of await snapshot.stepsAlong(lineage, { first, last: seq }, later)) this.#steps.push(step);
    return seq;
  }

  async #readAll(snapshot: ContextSnapshot): Promise<number> {
    const steps = await snapshot.steps(this.#last.id);
    for (const step of steps.slice(this.#steps.length)) this.#steps.push(step);
    return steps.length;
  }
}

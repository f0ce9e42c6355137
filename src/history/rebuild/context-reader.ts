import type { AssemblyInput } from '../../assembly/layout.js';
import { type DisplayPaths, metadataOf, type ObjectMetadata } from '../../assembly/metadata.js';
import type { ShownAhead } from '../../objects/assembly-proof.js';
import { type ObjectId, type SessionId, type Sha256, sessionObjectId, systemPromptObjectId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import { applyStep, emptySession, type SessionState } from '../../session/session-state.js';
import { findVersion } from '../../store/find-version.js';
import { contentPartHash } from '../../store/head.js';
import type { Stretch } from '../../store/lineage.js';
import type { Head, StoreSnapshot } from '../../store/store-snapshot.js';

/** A session's state and everything that its context is made of, at a basis. */
export interface ReadContext {
  readonly state: SessionState;
  readonly input: Omit<AssemblyInput, 'options'>;
}

/** What a context was made of that no transaction was waited for (decision 0010). */
export interface AheadOf {
  /** The newest of everything at its basis; undefined where nothing was read. */
  readonly basis: StoreSnapshot | undefined;
  /** A later moment, which has everything that was on its way. */
  readonly present: StoreSnapshot;
  readonly shown: readonly ShownAhead[];
  /** Whose prompt it was: not its own where its steps were put into a fork. */
  readonly prompt: ObjectId;
}

/** Steps between two states that are kept. */
const KEEP_EVERY = 64;

/** What never changes of one session: its steps, states along the way, the metadata of its calls. */
class SessionShelf {
  readonly calls = new Map<ObjectId, ObjectMetadata>();
  readonly #steps: Step[] = [];
  readonly #kept: SessionState[];
  #last: SessionState;
  #reading: Promise<unknown> = Promise.resolve();
  #lineage: Promise<readonly Stretch[] | undefined> | undefined;

  constructor(session: SessionId) {
    this.#last = emptySession(session);
    this.#kept = [this.#last];
  }

  /** The session after a step, read up to it where it is not yet; undefined when the snapshot does not hold so many. */
  async stateAt(snapshot: StoreSnapshot, seq: number): Promise<SessionState | undefined> {
    const reading = this.#reading.then(() => this.#readUpTo(snapshot, seq));
    this.#reading = reading.catch(() => undefined);
    await reading;
    if (this.#steps.length < seq) return undefined;
    let state = this.#last.seq <= seq ? this.#last : (this.#kept[Math.floor(seq / KEEP_EVERY)] ?? this.#kept[0]);
    for (const step of this.#steps.slice(state?.seq ?? 0, seq)) {
      state = applyStep(state ?? emptySession(step.session), step);
      if (state.seq === this.#kept.length * KEEP_EVERY) this.#kept.push(state);
    }
    if (state !== undefined) this.#last = state;
    return state;
  }

  /** Whose steps the session's are; none where a snapshot does not hold it. */
  async lineage(snapshot: StoreSnapshot): Promise<readonly Stretch[]> {
    this.#lineage ??= snapshot.lineage(this.#last.id);
    const found = await this.#lineage.catch(() => undefined);
    if (found !== undefined) return found;
    // A later snapshot may hold it.
    this.#lineage = undefined;
    return (await snapshot.lineage(this.#last.id)) ?? [];
  }

  async #readUpTo(snapshot: StoreSnapshot, seq: number): Promise<void> {
    const first = this.#steps.length + 1;
    if (first > seq) return;
    for (const step of await snapshot.stepsAlong(this.#last.id, await this.lineage(snapshot), { first, last: seq })) this.#steps.push(step);
  }
}

/**
 * Reads contexts of the past. What cannot change is read once and kept: steps and calls, whose documents are written once, and texts, which are called
 * by their hashes. Everything else is read at the basis of each context: the prompt, and what was known of files.
 */
export class ContextReader {
  /** The texts in parts of their own that contexts were read with, and an object that each belongs to. */
  readonly texts = new Map<Sha256, ObjectId>();
  readonly #shelves = new Map<SessionId, SessionShelf>();

  /** Which of some steps of a session a snapshot holds. */
  async stepsThere(snapshot: StoreSnapshot, session: SessionId, seqs: readonly number[]): Promise<ReadonlySet<number>> {
    return snapshot.stepsThere(await this.#shelf(session).lineage(snapshot), seqs);
  }

  /**
   * The context of a session after a step, at a snapshot. Undefined when the session or the step is not there at that basis. Throws StoreError and
   * DocumentError for what is missing or damaged.
   */
  async read(snapshot: StoreSnapshot, session: SessionId, step: number, paths: DisplayPaths): Promise<ReadContext | undefined> {
    const shelf = this.#shelf(session);
    const state = await shelf.stateAt(snapshot, step);
    if (state === undefined) return undefined;
    const { index, active } = state.sets;
    const prompt = systemPromptObjectId(session);
    const own = [sessionObjectId(session), prompt];
    const fresh = index.filter((id) => !shelf.calls.has(id));
    const heads = await snapshot.heads([...new Set([...own, ...fresh, ...active])]);
    if (!heads.has(sessionObjectId(session))) return undefined;
    return this.#contextOf(snapshot, state, { heads, prompt, paths });
  }

  /**
   * The context of a session after a step as it was made without waiting for a transaction: what it showed ahead of its basis is found by its hash, wherever it
   * stands in the object's history. Undefined when the step is not there. Throws as `read` does, StoreError `missing-part` for a version that is not there.
   */
  async readAhead(session: SessionId, step: number, of: AheadOf, paths: DisplayPaths): Promise<ReadContext | undefined> {
    const { basis, present, shown, prompt } = of;
    const shelf = this.#shelf(session);
    const state = await shelf.stateAt(present, step);
    if (state === undefined) return undefined;
    const { index, active } = state.sets;
    const named = new Map(await Promise.all(shown.map(async (one) => [one.id, await findVersion(present, one)] as const)));
    const asked = [...new Set([prompt, ...index.filter((id) => !shelf.calls.has(id)), ...active])].filter((id) => !named.has(id));
    const heads = new Map<string, Head>(await basis?.heads(asked));
    // A call is written once, with the step that names it: whatever the basis has.
    const calls = asked.filter((id) => !heads.has(id));
    for (const [id, head] of await present.heads(calls)) if (head.document.type === 'toolcall') heads.set(id, head);
    for (const [id, head] of named) heads.set(id, head);
    return this.#contextOf(present, state, { heads, prompt, paths });
  }

  async #contextOf(
    snapshot: StoreSnapshot,
    state: SessionState,
    { heads, prompt, paths }: { readonly heads: ReadonlyMap<string, Head>; readonly prompt: ObjectId; readonly paths: DisplayPaths },
  ): Promise<ReadContext> {
    const { index, active } = state.sets;
    const shelf = this.#shelf(state.id);
    const known = new Map<ObjectId, ObjectMetadata>();
    for (const [id, { document, marks }] of heads) {
      const metadata = metadataOf(document, marks, paths);
      if (metadata === undefined) continue;
      if (metadata.type === 'toolcall') shelf.calls.set(id as ObjectId, metadata);
      else known.set(id as ObjectId, metadata);
    }
    const metadata = (id: ObjectId): ObjectMetadata | undefined => known.get(id) ?? shelf.calls.get(id);
    const wanted = [prompt, ...active].flatMap((id): Head | readonly Head[] => heads.get(id) ?? []);
    for (const { document } of wanted) {
      const hash = contentPartHash(document);
      if (hash !== undefined) this.texts.set(hash, document['xt/id'] as ObjectId);
    }
    const versions = await snapshot.versionsOf(wanted);
    return {
      state,
      input: {
        systemPrompt: versions.get(prompt)?.version.content ?? null,
        pool: index.flatMap((id) => metadata(id) ?? []),
        turns: state.turns,
        active: active.flatMap((id) => {
          const described = metadata(id);
          const found = versions.get(id);
          return described === undefined || found === undefined ? [] : [{ metadata: described, content: found.version.content }];
        }),
      },
    };
  }

  #shelf(session: SessionId): SessionShelf {
    const shelf = this.#shelves.get(session) ?? new SessionShelf(session);
    this.#shelves.set(session, shelf);
    return shelf;
  }
}

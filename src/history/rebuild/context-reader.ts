import { type AssemblyInput, activeObject } from '../../assembly/layout.js';
import { type DisplayPaths, metadataOf, type ObjectMetadata } from '../../assembly/metadata.js';
import type { ShownAhead } from '../../objects/assembly-proof.js';
import {
  type ObjectId,
  type SessionId,
  type Sha256,
  sessionObjectId,
  systemPromptObjectId,
} from '../../objects/ids.js';
import type { ObjectVersion } from '../../objects/seal.js';
import type { SessionSets } from '../../objects/sets.js';
import type { Step } from '../../objects/step.js';
import type { SessionState } from '../../session/session-state.js';
import { contentPartHash } from '../../store/head.js';
import type { LoggedWrites } from '../../store/logged-writes.js';
import type { FoundVersion, Head } from '../../store/snapshot-rows.js';
import { type ContextSnapshot, type ForeseenObjects, findShown, readStubs } from './context-snapshot.js';
import { SessionCache } from './session-cache.js';

/** A session's state at a basis, with all input of its context. */
export interface ReadContext {
  readonly state: SessionState;
  readonly input: Omit<AssemblyInput, 'options'>;
}

/** Selects a context to read, and how it displays paths. */
export interface WantedContext {
  readonly session: SessionId;
  /** The last step that the context includes; default: the last one in the snapshot. */
  readonly step?: number;
  readonly paths: DisplayPaths;
  /** The objects of the context; default: those of the session's sets. */
  readonly objects?: (state: SessionState) => Pick<SessionSets, 'index' | 'active'>;
}

/** One of many contexts to read together, with the versions newer than its basis. */
export interface ForeseenContext extends WantedContext {
  readonly step: number;
  /** The valid time of its basis; undefined if it has none. */
  readonly moment: number | undefined;
  readonly shown: readonly ShownAhead[];
}

/** The sources of a context that was made without waiting for a transaction (decision 0010). */
export interface AheadOf {
  /** The snapshot at its basis. Undefined if the context needed no read. */
  readonly basis: ContextSnapshot | undefined;
  /** A later snapshot, which includes every write that was under way. */
  readonly present: ContextSnapshot;
  readonly shown: readonly ShownAhead[];
  /** The session's prompt. After a rescue, the prompt of the original session. */
  readonly prompt: ObjectId;
}

/** The heads from which a context is rendered, before their texts are read. */
interface FoundHeads extends Pick<SessionSets, 'index' | 'active'> {
  readonly heads: ReadonlyMap<string, Head>;
  /** Cached calls, whose heads are not read again. */
  readonly kept: ReadonlyMap<ObjectId, ObjectVersion>;
  readonly prompt: ObjectId;
  readonly paths: DisplayPaths;
}

const setsOf = ({ sets }: SessionState): SessionSets => sets;

function isOneOf(ids: readonly ObjectId[]): (shown: ShownAhead) => boolean {
  const asked = new Set(ids);
  return ({ id }) => asked.has(id);
}

function isTextKnown({ document }: Head, writes: LoggedWrites | undefined): boolean {
  const hash = contentPartHash(document);
  return hash === undefined || writes === undefined || writes.isTextOf(hash, document['xt/id'] as ObjectId);
}

/**
 * Reads contexts of the past. Caches steps, calls, and texts by their hashes, because each is
 * written once. Reads the prompt and the heads of files at the basis of each context.
 *
 * @throws {StoreError} `missing-part`, `corrupt-part`
 * @throws {DocumentError} `hash-mismatch` if an object does not match its own hashes
 */
export class ContextReader {
  /**
   * Hashes of the separately stored texts that contexts showed, each with an object that has it.
   */
  readonly texts = new Map<Sha256, ObjectId>();
  readonly #usesListings: boolean;
  readonly #sessions = new Map<SessionId, SessionCache>();
  readonly #described = new WeakMap<
    Head,
    { readonly paths: DisplayPaths; readonly metadata: ObjectMetadata | undefined }
  >();

  /**
   * With `usesListings`, takes paths of unread files from the outputs that listed them. Without it,
   * reads every source from the database, so a missing document is noticed.
   */
  constructor({ usesListings = true }: { readonly usesListings?: boolean } = {}) {
    this.#usesListings = usesListings;
  }

  /**
   * Caches the steps of one session. They begin with its first step. Ignored if steps of that
   * session are cached already.
   */
  know(steps: readonly Step[]): void {
    const [first] = steps;
    if (first !== undefined) this.#known(first.session).know(steps);
  }

  /** Returns which of the given steps of a session a snapshot holds. */
  async existingSteps(
    snapshot: ContextSnapshot,
    session: SessionId,
    seqs: readonly number[],
  ): Promise<ReadonlySet<number>> {
    const lineage = await this.#known(session).lineage(snapshot);
    return lineage === undefined ? new Set() : snapshot.existingSteps(lineage, seqs);
  }

  /**
   * Reads ahead for many contexts of the past: the newest heads of all their objects, and the texts
   * of the objects that a context shows. With `writes`, it omits texts that may have been stored
   * after their documents; these are read when shown. Throws the errors of the reads.
   */
  async foresee(
    present: ContextSnapshot,
    wanted: readonly ForeseenContext[],
    writes?: LoggedWrites,
  ): Promise<ForeseenObjects> {
    const ids = new Set<string>();
    const inFull: (readonly [ObjectId, (head: Head) => boolean])[] = [];
    for (const { session, step, moment = Number.NEGATIVE_INFINITY, shown } of wanted) {
      const known = this.#known(session);
      const state = await known.stateAt(present, step);
      if (state === undefined) continue;
      const { index, active } = state.sets;
      const prompt = systemPromptObjectId(session);
      known.learnCalls(present, index);
      const kept = known.keptOf(active);
      const ahead = new Map(shown.map(({ id, object_hash }) => [id, object_hash]));
      for (const id of [sessionObjectId(session), prompt, ...ahead.keys()]) ids.add(id);
      for (const id of index) if (!known.calls.has(id)) ids.add(id);
      for (const id of [prompt, ...active]) {
        if (kept.has(id)) continue;
        ids.add(id);
        inFull.push([
          id,
          ({ document, validTime }) => validTime.getTime() <= moment || document.object_hash === ahead.get(id),
        ]);
      }
    }
    const read = await present.heads([...ids]);
    const heads = new Map([...ids].map((id) => [id, read.get(id)]));
    const texts = new Set(
      inFull.flatMap(([id, isShown]) => [read.get(id)].filter((head) => head !== undefined && isShown(head))),
    );
    const shownHeads = [...texts].flatMap((head) => (head === undefined || !isTextKnown(head, writes) ? [] : [head]));
    const versions = new Map<Head, FoundVersion>();
    const found = await present.versionsOf(shownHeads);
    for (const head of shownHeads) {
      const version = found.get(head.document['xt/id'] as ObjectId);
      if (version !== undefined) versions.set(head, version);
    }
    return { present, heads, versions, writes };
  }

  /**
   * Returns a context of a session at a snapshot. Undefined if the basis has no such session or
   * step.
   *
   * Step pages that are newer than the basis are read from the snapshot `later`. The caller ensures
   * that the basis has the step.
   */
  async read(
    snapshot: ContextSnapshot,
    { session, step, paths, objects = setsOf }: WantedContext,
    later?: ContextSnapshot,
  ): Promise<ReadContext | undefined> {
    const known = this.#known(session);
    const state = await known.stateAt(snapshot, step, later);
    if (state === undefined) return undefined;
    const { index, active } = objects(state);
    const prompt = systemPromptObjectId(session);
    const own = [sessionObjectId(session), prompt];
    known.learnCalls(snapshot, index);
    const fresh = index.filter((id) => !known.calls.has(id));
    const kept = known.keptOf(active);
    const shown = [...own, ...active.filter((id) => !kept.has(id))];
    const listings = this.#usesListings ? known.listings(state.seq) : [];
    const stubs = await readStubs(snapshot, { ids: fresh, shown: new Set(shown), listings });
    const heads = await snapshot.heads([...new Set([...shown, ...fresh.filter((id) => !stubs.has(id))])]);
    if (!heads.has(sessionObjectId(session))) return undefined;
    return this.#contextOf(snapshot, state, {
      heads: new Map([...heads, ...stubs]),
      kept,
      prompt,
      paths,
      index,
      active,
    });
  }

  /**
   * Returns a context that was made without waiting for a transaction. If it showed a version newer
   * than its basis, the version is found by its hash in the object's history. Undefined if the step
   * does not exist.
   */
  async readAhead(
    { session, step, paths, objects = setsOf }: WantedContext,
    of: AheadOf,
  ): Promise<ReadContext | undefined> {
    const { basis, present, shown, prompt } = of;
    const known = this.#known(session);
    const state = await known.stateAt(present, step);
    if (state === undefined) return undefined;
    const { index, active } = objects(state);
    known.learnCalls(present, index);
    const isAsked = objects === setsOf ? () => true : isOneOf([prompt, ...index, ...active]);
    const named = new Map(
      await Promise.all(shown.filter(isAsked).map(async (one) => [one.id, await findShown(present, one)] as const)),
    );
    const kept = known.keptOf(active.filter((id) => !named.has(id)));
    const isUnread = (id: ObjectId): boolean => !named.has(id) && !kept.has(id);
    const asked = [...new Set([prompt, ...index.filter((id) => !known.calls.has(id)), ...active])].filter(isUnread);
    const heads = new Map<string, Head>(await basis?.heads(asked));
    // A call is written once, together with its step, so the present has the same version as the
    // basis.
    const calls = asked.filter((id) => !heads.has(id));
    for (const [id, head] of await present.heads(calls)) if (head.document.type === 'toolcall') heads.set(id, head);
    for (const [id, head] of named) heads.set(id, head);
    return this.#contextOf(present, state, { heads, kept, prompt, paths, index, active });
  }

  async #contextOf(
    snapshot: ContextSnapshot,
    state: SessionState,
    { heads, kept, prompt, paths, index, active }: FoundHeads,
  ): Promise<ReadContext> {
    const { calls, versions: keeping } = this.#known(state.id);
    const found = new Map<ObjectId, ObjectMetadata>();
    for (const [id, head] of heads) {
      const metadata = this.#metadataOf(head, paths);
      if (metadata === undefined) continue;
      if (metadata.type === 'toolcall') calls.set(id as ObjectId, metadata);
      else found.set(id as ObjectId, metadata);
    }
    const metadata = (id: ObjectId): ObjectMetadata | undefined => found.get(id) ?? calls.get(id);
    const wanted = [prompt, ...active].flatMap((id): Head | readonly Head[] => heads.get(id) ?? []);
    for (const { document } of wanted) {
      const hash = contentPartHash(document);
      if (hash !== undefined) this.texts.set(hash, document['xt/id'] as ObjectId);
    }
    const fresh = await snapshot.versionsOf(wanted);
    for (const [id, { version }] of fresh) if (version.type === 'toolcall') keeping.set(id, version);
    const version = (id: ObjectId): ObjectVersion | undefined => fresh.get(id)?.version ?? kept.get(id);
    return {
      state,
      input: {
        systemPrompt: version(prompt)?.content ?? null,
        pool: index.flatMap((id) => metadata(id) ?? []),
        turns: state.turns,
        active: active.flatMap((id) => {
          const [described, read] = [metadata(id), version(id)];
          return described === undefined || read === undefined ? [] : [activeObject(described, read)];
        }),
      },
    };
  }

  /**
   * Returns an object's metadata. Reuses the metadata of the same head if paths are displayed the
   * same way.
   */
  #metadataOf(head: Head, paths: DisplayPaths): ObjectMetadata | undefined {
    const known = this.#described.get(head);
    if (known?.paths === paths) return known.metadata;
    const metadata = metadataOf(head.document, head.marks, paths);
    this.#described.set(head, { paths, metadata });
    return metadata;
  }

  #known(session: SessionId): SessionCache {
    const known = this.#sessions.get(session) ?? new SessionCache(session);
    this.#sessions.set(session, known);
    return known;
  }
}

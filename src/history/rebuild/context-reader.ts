import type { AssemblyInput } from '../../assembly/layout.js';
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

/** A session's state and everything that its context is made of, at a basis. */
export interface ReadContext {
  readonly state: SessionState;
  readonly input: Omit<AssemblyInput, 'options'>;
}

/** Which context of a session is read, and how paths are shown in it. */
export interface WantedContext {
  readonly session: SessionId;
  /** The last step that the context includes; the last one that the snapshot holds where absent. */
  readonly step?: number;
  readonly paths: DisplayPaths;
  /** The objects that it is to be made of; those of the session's sets where absent. */
  readonly objects?: (state: SessionState) => Pick<SessionSets, 'index' | 'active'>;
}

/** A context of many that are to be read, and what it shows ahead of its basis. */
export interface ForeseenContext extends WantedContext {
  readonly step: number;
  /** The valid time of its basis; undefined where it has none. */
  readonly moment: number | undefined;
  readonly shown: readonly ShownAhead[];
}

/** What a context was made of that no transaction was waited for (decision 0010). */
export interface AheadOf {
  /** The newest of everything at its basis; undefined where nothing was read. */
  readonly basis: ContextSnapshot | undefined;
  /** A later moment, which has everything that was on its way. */
  readonly present: ContextSnapshot;
  readonly shown: readonly ShownAhead[];
  /** Whose prompt it was: not its own where its steps were put into a fork. */
  readonly prompt: ObjectId;
}

/** What a context is rendered from, before its texts are read. */
interface FoundHeads extends Pick<SessionSets, 'index' | 'active'> {
  readonly heads: ReadonlyMap<string, Head>;
  /** Calls whose heads were not read, since they were read before. */
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
 * Reads contexts as they stood. What cannot change is read once and kept: steps and calls, whose documents are written once, and texts, which are called
 * by their hashes. Everything else is read at the basis of each context: the prompt, and what was known of files.
 *
 * @throws {StoreError} `missing-part`, `corrupt-part` – something that a context is made of is not there, or is not what was written
 * @throws {DocumentError} `hash-mismatch` – an object does not fit its own hashes
 */
export class ContextReader {
  /** The texts in parts of their own that contexts were read with, and an object that each belongs to. */
  readonly texts = new Map<Sha256, ObjectId>();
  readonly #sessions = new Map<SessionId, SessionCache>();
  readonly #described = new WeakMap<
    Head,
    { readonly paths: DisplayPaths; readonly metadata: ObjectMetadata | undefined }
  >();

  /** Takes in the steps of one session from its first on, unless some of them were read here. */
  know(steps: readonly Step[]): void {
    const [first] = steps;
    if (first !== undefined) this.#known(first.session).know(steps);
  }

  /** Which of some steps of a session a snapshot holds. */
  async existingSteps(
    snapshot: ContextSnapshot,
    session: SessionId,
    seqs: readonly number[],
  ): Promise<ReadonlySet<number>> {
    const lineage = await this.#known(session).lineage(snapshot);
    return lineage === undefined ? new Set() : snapshot.existingSteps(lineage, seqs);
  }

  /**
   * Reads at once what many contexts of the past are most likely made of: the newest heads of all of their objects, and the texts of those that one of them shows.
   * With `writes`, texts that may have come later than what holds them are left to be read where they are shown. Throws what reading them one by one throws.
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
   * A context of a session at a snapshot. Undefined when the session or the step is not there at that basis. The caller that names a step and a `later` snapshot sees to it
   * that the basis has the step: what was put into pages since then is read from there.
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
    const stubs = await readStubs(snapshot, fresh, new Set(shown));
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
   * A context of a session as it was made without waiting for a transaction: what it showed ahead of its basis is found by its hash, wherever it stands
   * in the object's history. Undefined when the step is not there.
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
    // A call is written once, with the step that names it: whatever the basis has.
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
          return described === undefined || read === undefined ? [] : [{ metadata: described, content: read.content }];
        }),
      },
    };
  }

  /** What is said of an object: what was said of the same head before, where paths are shown in the same way. */
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

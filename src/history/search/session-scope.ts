import { type ObjectId, type SessionId, systemPromptObjectId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import type { HistoryHead } from '../../store/snapshot-rows.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { askOnce } from '../../values/promises.js';
import type { Basis } from '../../xtdb/db-snapshot.js';
import type { CountedFall } from '../rebuild/counted-fall.js';
import type { When } from '../rebuild/moment.js';
import { fallsAmong, type SessionRequest } from '../rebuild/session-requests.js';
import type { Point, Timeline } from '../rebuild/timeline.js';
import type { Presence } from '../rebuild/transcript-presence.js';
import { bandWays, type Exposure, exposureOf, exposureOfMessage, type Ways } from './exposure.js';

/** The presence of a system prompt. Every request begins with it. */
const ALWAYS: readonly Presence[] = [{ from: 0, until: Number.POSITIVE_INFINITY, whole: true, at: Infinity }];

/** The versions of objects that the sessions of one search share. */
export type SharedHistories = Map<ObjectId, Promise<readonly HistoryHead[]>>;

/** A session at the basis of a search. Each part is read once, when it is first needed. */
export class SessionScope {
  readonly snapshot: StoreSnapshot;
  readonly basis: Basis;
  readonly #timeline: Timeline;
  readonly #heads: SharedHistories;
  #steps: Promise<readonly Step[]> | undefined;
  #ways: Promise<Ways> | undefined;
  #requests: Promise<readonly SessionRequest[]> | undefined;
  #falls: Promise<readonly CountedFall[]> | undefined;

  private constructor(
    readonly session: SessionId,
    timeline: Timeline,
    { snapshot, basis, shared }: Pick<Point, 'snapshot' | 'basis'> & { readonly shared: SharedHistories },
  ) {
    this.#timeline = timeline;
    this.snapshot = snapshot;
    this.basis = basis;
    this.#heads = this.isShared ? shared : new Map();
  }

  /**
   * Opens a session. `shared` belongs to one moment: sessions without versions of their own use it
   * together. @throws {HistoryError} `beyond-end`, `not-yet`
   */
  static async open(
    asked: Timeline,
    session: SessionId,
    { when, shared = new Map() }: { readonly when: When; readonly shared?: SharedHistories },
  ): Promise<SessionScope> {
    const timeline = await asked.of(session);
    return new SessionScope(session, timeline, { ...(await timeline.find(when, session)), shared });
  }

  /** The paths that name its files. */
  get paths(): Timeline['paths'] {
    return this.#timeline.paths;
  }

  /** Whether this session has the same file versions as every other session. */
  get isShared(): boolean {
    return this.snapshot.documents.names === undefined;
  }

  /** Returns the steps at the basis. */
  steps(): Promise<readonly Step[]> {
    const isPresent = this.snapshot === this.#timeline.present;
    this.#steps ??= isPresent ? this.#timeline.steps(this.session) : this.snapshot.steps(this.session);
    return this.#steps;
  }

  /** Returns one step. Undefined if it is not known at the basis. */
  async step(seq: number): Promise<Step | undefined> {
    if (this.#steps !== undefined) return (await this.#steps).find((step) => step.seq === seq);
    // A range query would scan every step of the session.
    return this.snapshot.step(this.session, seq);
  }

  /** Returns the objects of the session's index, and its system prompt, newest first. */
  async objects(): Promise<readonly ObjectId[]> {
    return [...[...(await this.#states()).keys()].toReversed(), systemPromptObjectId(this.session)];
  }

  /** Returns whether an object is in the session's index, or is its system prompt. */
  async knows(object: ObjectId): Promise<boolean> {
    return object === systemPromptObjectId(this.session) || (await this.#states()).has(object);
  }

  /** Returns the versions of an object up to the basis. */
  heads(object: ObjectId): Promise<readonly HistoryHead[]> {
    return askOnce(this.#heads, object, () => this.snapshot.historyOfHeads(object));
  }

  /** Returns the contexts that had a message. */
  async messageExposure(seq: number): Promise<Exposure> {
    const requests = await this.#contexts();
    const { told } = await this.#timeline.transcript(this.session);
    const until = told.entries.find(({ step }) => step.seq === seq)?.until ?? Number.POSITIVE_INFINITY;
    return exposureOfMessage(requests, { seq, until });
  }

  /** Returns the contexts that had a version of an object, in full or as a line. */
  async versionExposure(object: ObjectId, { txId, validTime }: HistoryHead): Promise<Exposure> {
    const [requests, ways, heads] = await Promise.all([this.#contexts(), this.#states(), this.heads(object)]);
    const place = heads.findIndex((head) => head.txId === txId && head.validTime.getTime() === validTime.getTime());
    // Every context begins with the prompt.
    const always = [{ step: 0, state: 'active' }] as const;
    const isPrompt = object === systemPromptObjectId(this.session);
    const way = isPrompt ? always : ways.get(object);
    const presences = isPrompt ? ALWAYS : await this.#presences(object);
    return exposureOf({ requests, way, presences }, { heads, place });
  }

  /** Returns the falls of the provider's count that the transcript does not explain. */
  falls(): Promise<readonly CountedFall[]> {
    this.#falls ??= Promise.all([this.#timeline.requests(this.session), this.steps()]).then(([requests, steps]) =>
      fallsAmong(requests, steps),
    );
    return this.#falls;
  }

  #states(): Promise<Ways> {
    this.#ways ??= this.steps().then((steps) => bandWays(steps));
    return this.#ways;
  }

  /** Returns which requests of a transcript had an object. */
  async #presences(object: ObjectId): Promise<readonly Presence[]> {
    if (!(await this.#timeline.isTranscript(this.session))) return [];
    return (await (await this.#timeline.transcript(this.session)).presences()).get(object) ?? [];
  }

  #contexts(): Promise<readonly SessionRequest[]> {
    this.#requests ??= Promise.all([this.#timeline.requests(this.session), this.steps()]).then(([requests, steps]) => {
      const last = steps.at(-1)?.seq ?? 0;
      return requests.filter(({ kind, step }) => kind !== 'unseen' && step <= last);
    });
    return this.#requests;
  }
}

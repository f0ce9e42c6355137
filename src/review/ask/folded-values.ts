import { performance } from 'node:perf_hooks';
import pLimit from 'p-limit';
import type { EdnValue } from '../../edn/values.js';
import { HistoryError } from '../../history/rebuild/history-error.js';
import { chatObjectId, type ObjectId, sessionObjectId } from '../../objects/ids.js';
import type { ObjectVersion } from '../../objects/seal.js';
import type { StoredSession } from '../../store/snapshot-rows.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { distinctRows } from '../../xtdb/datalog.js';
import { nestedValue } from '../../xtdb/documents.js';
import { constantsOf, isVariable } from './query-terms.js';
import type { Reached } from './reached-entities.js';
import { type FoldedType, foldedTypes } from './ssot-attributes.js';

/**
 * An object and one value of its attribute. An attribute with several values has a row for each, as
 * in the database.
 */
export type FoldedRow = readonly [id: string, value: EdnValue];

/** Maximum number of chats or sessions that a query folds for one attribute. */
const MOST_SESSIONS = 1_000;
/** Number of sessions that are folded concurrently. */
const SESSIONS_AT_ONCE = 8;

const ID_OF = { chat: chatObjectId, session: sessionObjectId } as const;

/** The time limit of a query, including the reads that it needs. */
export interface Deadline {
  readonly timeoutMs: number;
  /** On the clock of `performance.now`. */
  readonly at: number;
}

/**
 * The documents of the chats and sessions that a query can reach, at a basis. They equal the output
 * of `show`: folded from heads and steps, with checked hashes. Each is folded once.
 */
export class FoldedValues {
  readonly #snapshot: StoreSnapshot;
  readonly #reached: Reached;
  readonly #deadline: Deadline;
  readonly #documents = new Map<string, Promise<ObjectVersion | undefined>>();
  readonly #limit = pLimit(SESSIONS_AT_ONCE);
  #sessions: Promise<readonly StoredSession[]> | undefined;
  #running: Promise<readonly StoredSession[]> | undefined;

  constructor(snapshot: StoreSnapshot, reached: Reached, deadline: Deadline) {
    this.#snapshot = snapshot;
    this.#reached = reached;
    this.#deadline = deadline;
  }

  /**
   * Returns the rows of a folded attribute for the objects that a term of the query can match.
   *
   * @throws {HistoryError} `query-too-wide` if the term matches more sessions than one query folds;
   * `query-timeout`
   */
  async rows(attribute: string, entity: EdnValue): Promise<readonly FoldedRow[]> {
    const types = foldedTypes(attribute);
    return this.#rowsOf(await this.#idsOf(types, entity), attribute);
  }

  /**
   * Returns the ids of the chats and sessions with steps after their heads. An attribute of kind
   * `running` must be folded only for these objects.
   */
  async runningIds(attribute: string): Promise<readonly ObjectId[]> {
    this.#running ??= this.#all().then((sessions) => this.#snapshot.running(sessions));
    const sessions = await this.#running;
    return foldedTypes(attribute).flatMap((type) => sessions.map(({ id }) => ID_OF[type](id)));
  }

  /** Returns the rows of an attribute of some objects. */
  async #rowsOf(ids: readonly string[], attribute: string): Promise<readonly FoldedRow[]> {
    const documents = await this.documents(ids);
    return documents.flatMap((document) => {
      const value = (document as unknown as Readonly<Record<string, unknown>>)[attribute];
      if (value === undefined) return [];
      const values = Array.isArray(value) ? value.map((one) => nestedValue(one)) : [nestedValue(value)];
      return distinctRows(values.map((one) => [one])).map(([one]) => [document['xt/id'], one ?? null] as const);
    });
  }

  /** Returns the rows of an attribute of kind `running` for objects from `runningIds`. */
  runningRows(ids: readonly ObjectId[], attribute: string): Promise<readonly FoldedRow[]> {
    return this.#rowsOf(ids, attribute);
  }

  async #idsOf(types: readonly FoldedType[], entity: EdnValue): Promise<readonly string[]> {
    const narrowed = constantsOf(entity) ?? (isVariable(entity) ? await this.#reached(entity) : undefined);
    if (narrowed === undefined) return (await this.#all()).flatMap(({ id }) => types.map((type) => ID_OF[type](id)));
    return narrowed.filter(
      (id): id is string => typeof id === 'string' && types.some((type) => id.startsWith(`${type}:`)),
    );
  }

  #all(): Promise<readonly StoredSession[]> {
    this.#sessions ??= this.#snapshot.sessions();
    return this.#sessions;
  }

  /** Returns the documents of some chats and sessions. Unknown ids are absent. */
  async documents(ids: readonly string[]): Promise<readonly ObjectVersion[]> {
    if (ids.length > MOST_SESSIONS) {
      const why = `the query reaches ${ids.length} chats and sessions, but one query folds at most ${MOST_SESSIONS}`;
      throw new HistoryError(
        'query-too-wide',
        `${why}: name the ones you need, as in [?s :session_id "S"], or through :in and --args`,
      );
    }
    const found = await Promise.all(ids.map((id) => this.#document(id)));
    return found.filter((document) => document !== undefined);
  }

  #document(id: string): Promise<ObjectVersion | undefined> {
    const known = this.#documents.get(id);
    if (known !== undefined) return known;
    const reading = this.#limit(async () => {
      if (performance.now() > this.#deadline.at) {
        const seconds = this.#deadline.timeoutMs / 1_000;
        throw new HistoryError(
          'query-timeout',
          `the sessions of the query were not folded after ${seconds} s: name fewer, or give it more time`,
        );
      }
      const found = await this.#snapshot.get(id);
      return found?.version.type === 'chat' || found?.version.type === 'session' ? found.version : undefined;
    });
    this.#documents.set(id, reading);
    return reading;
  }
}

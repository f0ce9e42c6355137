import pLimit, { type LimitFunction } from 'p-limit';
import type { ContextClient } from '../../client/session/context-client.js';
import type { HarnessSession } from '../../harness/harness-session.js';
import { Timeline } from '../../history/rebuild/timeline.js';
import { sessionObjectId } from '../../objects/ids.js';
import { StoreError } from '../../store/errors.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import type { Projection } from '../projection/project-session.js';
import { HOUSE_COUNTER, ProjectionReader } from '../projection/read-projection.js';
import { NO_VIEW, type ViewState } from '../projection/shrink-view.js';
import { viewRecords } from '../projection/view-records.js';
import { AmplifierError } from './amplifier-error.js';
import { type AmplifierMessage, type NamedMessage, namedEntries } from './amplifier-message.js';
import { type MessagesView, messagesView, type ViewWish } from './amplifier-view.js';
import { filledMessage, type GivenMessage, sameKey, whole } from './kept-shape.js';
import { ListRecords, readRecordedList, SURFACE } from './list-records.js';
import { countMessages, isRunOf, type ListedEntry, listedEntries, listedMessages } from './message-list.js';
import { type AddedMessages, MessageTaker, type TakenList } from './take-messages.js';

/**
 * How a list of messages was set: as the first list, or as a continuation, a subset or a
 * replacement of the recorded list.
 */
export type ListOutcome = 'imported' | 'extended' | 'ignored' | 'replaced';

/** A view with the sizes of the whole list and of the previous view. */
export interface ListView extends Omit<MessagesView, 'messages'> {
  readonly messages: readonly AmplifierMessage[];
  /** Number of messages in the whole list. */
  readonly all: number;
  /** Number of messages of the list that were in the previous view. */
  readonly before: number;
}

/** Session state cached between requests. */
interface Known {
  readonly serial: LimitFunction;
  reader: ProjectionReader;
  /** The recorded list. No other process writes it while this one holds the session. */
  list: TakenList;
  state: ViewState;
}

/** The current list. The projection is undefined if the database does not have the session yet. */
interface ReadList {
  readonly projection: Projection | undefined;
  readonly listed: readonly ListedEntry[];
  readonly snapshot: StoreSnapshot;
}

const KNOWN = new WeakMap<HarnessSession, Promise<Known>>();

/** Returns true if `part` is a subsequence of `all`. */
function isWithin(part: readonly string[], all: readonly string[]): boolean {
  let at = 0;
  for (const key of part) {
    const found = all.indexOf(key, at);
    if (found < 0) return false;
    at = found + 1;
  }
  return true;
}

/** Restores the blocks that were stored apart from their messages. */
async function filled(
  messages: readonly GivenMessage[],
  snapshot: StoreSnapshot,
): Promise<readonly AmplifierMessage[]> {
  const hashes = messages.flatMap(({ long }) => long.map(({ sha256 }) => sha256));
  const texts = await snapshot.texts(hashes);
  const missing = hashes.find((hash) => !texts.has(hash));
  if (missing !== undefined)
    throw new StoreError('missing-part', `the database lacks the block ${missing}, to which a message refers`);
  return messages.map((one) => filledMessage(one, texts));
}

/**
 * A session as Amplifier's context manager, contract 2.1. Amplifier's Python module builds contract
 * 1.0 on it. The list consists of the session's messages since the last clear. Records keep the
 * message fields that the chat lacks. Views are rendered and never stored; their decisions are
 * recorded.
 */
export class AmplifierContext {
  readonly #client: ContextClient;
  readonly #session: HarnessSession;

  constructor(client: ContextClient, session: HarnessSession) {
    this.#client = client;
    this.#session = session;
  }

  /**
   * Adds messages. A message that is sent again is added only once. The budget does not limit the
   * list. A result whose call is unknown gets a call without arguments.
   *
   * Messages added before a failure stay and are recognised when they are sent again.
   */
  async add(messages: readonly NamedMessage[]): Promise<AddedMessages> {
    const known = await this.#known();
    return known.serial(() => this.#add(messages, known));
  }

  /** Returns the whole list as it was given. */
  async messages(): Promise<readonly AmplifierMessage[]> {
    const known = await this.#known();
    return known.serial(async () => {
      const { listed, snapshot } = await this.#read(known);
      return filled(listedMessages(listed, known.list), snapshot);
    });
  }

  /**
   * Sets a whole list. If no list exists, imports it. Appends a continuation and ignores a subset.
   * Any other list needs `replace`.
   * @throws {AmplifierError} `other-history`
   */
  async set(
    messages: readonly NamedMessage[],
    { replace = false }: { readonly replace?: boolean } = {},
  ): Promise<ListOutcome> {
    const known = await this.#known();
    return known.serial(async () => {
      const ours = listedMessages((await this.#read(known)).listed, known.list).map(sameKey);
      const theirs = messages.flatMap((one) => namedEntries(one, 0).map(({ message }) => sameKey(whole(message))));
      if (ours.length === 0) {
        await this.#add(messages, known);
        return 'imported';
      }
      // The list is a repeated request, so only missing messages and records are added.
      if (!replace && isRunOf(messages, this.#session.session.state.marksAfter(known.list.from))) {
        await this.#add(messages, known);
        return 'imported';
      }
      if (isWithin(theirs, ours)) return 'ignored';
      if (ours.every((key, i) => theirs[i] === key)) {
        let at = 0;
        const more = messages.filter((one) => {
          const first = at;
          at += namedEntries(one, 0).length;
          return first >= ours.length;
        });
        await this.#add(more, known);
        return 'extended';
      }
      if (!replace) {
        throw new AmplifierError(
          'other-history',
          `the session has ${ours.length} messages. ` +
            `The ${theirs.length} given messages neither continue them nor are a subset of them: ` +
            'clear the list, or set it with replace',
        );
      }
      await this.#clear(known);
      await this.#add(messages, known);
      return 'replaced';
    });
  }

  /**
   * Clears the list and returns the number of messages it had. The session keeps all turns, its
   * index and earlier versions.
   */
  async clear(): Promise<number> {
    const known = await this.#known();
    return known.serial(async () => {
      const count = countMessages((await this.#read(known)).listed, known.list);
      if (count > 0) await this.#clear(known);
      return count;
    });
  }

  /**
   * Returns the list within a token limit. Decisions of earlier views still apply; new decisions
   * are recorded before the view is returned.
   * @throws {ProjectionError} `invalid-budget`, `budget-too-small`
   */
  async view(wish: ViewWish): Promise<ListView> {
    const known = await this.#known();
    return known.serial(async () => {
      const { projection, listed, snapshot } = await this.#read(known);
      const { list, state } = known;
      const { view, messages } = messagesView(listed, { kept: list, wish, counter: HOUSE_COUNTER, state });
      const { shrunk } = view;
      if (shrunk !== undefined && projection !== undefined) {
        const purpose = { target: SURFACE, surface: SURFACE, trigger: 'token_pressure', at: this.#client.now() };
        await this.#session.session.keepRecords(viewRecords(projection, view, purpose));
        known.state = view.state;
      }
      const gone = new Set<string>(state.gone);
      const before = listed.filter(({ entry }) => !gone.has(entry.id)).length;
      return { view, messages: await filled(messages, snapshot), all: countMessages(listed, list), before };
    });
  }

  async #add(messages: readonly NamedMessage[], known: Known): Promise<AddedMessages> {
    const taker = new MessageTaker(this.#client, this.#session, known.list);
    try {
      return await taker.take(messages);
    } finally {
      if (taker.isLate) known.reader = new ProjectionReader();
    }
  }

  async #clear(known: Known): Promise<void> {
    await this.#session.setSystemPrompt(null);
    await this.#session.session.keepRecords([new ListRecords(this.#session, () => this.#client.now()).cleared()]);
    known.list = { ...known.list, bySeq: new Map(), prompts: [], from: this.#session.session.state.seq };
    known.state = NO_VIEW;
  }

  async #known(): Promise<Known> {
    const known = KNOWN.get(this.#session) ?? this.#readKnown();
    KNOWN.set(this.#session, known);
    return known.catch((error: unknown) => {
      KNOWN.delete(this.#session);
      throw error;
    });
  }

  async #readKnown(): Promise<Known> {
    const store = await this.#client.delivered({ others: false });
    const { state, ...list } = await readRecordedList(await store.latest(), this.#session);
    return { serial: pLimit(1), reader: new ProjectionReader(), list: { ...list, isBeginning: true }, state };
  }

  async #read({ reader, list }: Known): Promise<ReadList> {
    const timeline = await Timeline.open(await this.#client.delivered({ others: false }), this.#client.files);
    const { present: snapshot } = timeline;
    const { id } = this.#session;
    const exists = (await snapshot.existing([sessionObjectId(id)])).length > 0;
    const projection = exists ? await reader.read(timeline, id) : undefined;
    return { projection, snapshot, listed: projection === undefined ? [] : listedEntries(projection, list) };
  }
}
